"""`foretype bench polish`: what accepting answers does to real files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from daemon.bench import polishing
from daemon.cli.measuring import add, positive, show


def register(kinds: Any) -> None:
    """Add the measurement to those of `foretype bench`."""
    words = "answers accepted in real files: lines that stand there twice, lost brackets, foreign indentation"
    parser = add(kinds, "polish", words, polishing.LIMIT)
    parser.add_argument("--n", type=positive, dest="limit", metavar="N", help="the same as --limit")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--tasks", type=Path, metavar="FILE", help="single-line tasks (.jsonl.gz)")
    what.add_argument("--root", type=Path, metavar="REPO", help="places in the files of this folder")
    parser.set_defaults(run=_run_polish)


def _run_polish(arguments: argparse.Namespace) -> int:
    a = arguments
    plan = polishing.Plan(a.tasks, a.root, a.limit, a.seed, a.model)
    return show(a, lambda report: polishing.run(plan, report))
