"""`foretype bench batch`: requests that share the engine's ticks."""

from __future__ import annotations

import argparse
from typing import Any

from daemon.bench import batch
from daemon.cli.measuring import add, show


def register(kinds: Any) -> None:
    """Add the measurement to those of `foretype bench`."""
    words = "many requests in the same ticks: rates, a keystroke beside a long answer, mixed load, settings"
    parser = add(kinds, "batch", words, 100)
    words = "of mixed load in which nobody may wait for ever (default: 0)"
    parser.add_argument("--minutes", type=float, default=0.0, metavar="N", help=words)
    parser.add_argument("--knobs", action="store_true", help="what the engine's settings do to the rates")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    a = arguments
    plan = batch.Plan(a.limit, a.seed, a.model, a.minutes, a.knobs)
    return show(a, lambda report: batch.run(plan, report))
