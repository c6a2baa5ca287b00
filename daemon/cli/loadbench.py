"""`foretype bench load`: what the engine does for many at once."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from daemon.bench import load
from daemon.cli.measuring import add, positive, show


def register(kinds: Any) -> None:
    """Add the measurement to those of `foretype bench`."""
    words = "many streams typing at once, against a naive pipeline: times, answers/s, KV memory, most streams"
    parser = add(kinds, "load", words, None)
    usual = ",".join(map(str, load.STREAMS))
    parser.add_argument(
        "--streams", type=_counts, default=load.STREAMS, metavar="A,B", help=f"how many (default: {usual})"
    )
    words = f"time that each number of streams types on each side (default: {load.SECONDS})"
    parser.add_argument("--seconds", type=positive, default=load.SECONDS, metavar="S", help=words)
    words = "type in copies of this folder's files (default: generated ones)"
    parser.add_argument("--root", type=Path, metavar="DIR", help=words)
    parser.set_defaults(run=_run_load)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(sorted({positive(part) for part in text.split(",")}))


def _run_load(arguments: argparse.Namespace) -> int:
    a = arguments
    plan = load.Plan(a.streams, a.root, float(a.seconds), a.seed, a.model)
    return show(a, lambda report: load.run(plan, report))
