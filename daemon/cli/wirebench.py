"""`foretype bench wire`: do recorded clients get what they need?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from daemon.bench import replaying
from daemon.cli.measuring import add, show

_RECORDED = Path(__file__).resolve().parent.parent.parent / "tests/data/wire"
"""Only in a checkout."""


def register(kinds: Any) -> None:
    """Add the measurement to those of `foretype bench`."""
    words = "recorded sessions of editors, sent again: is every answer one that its client can use?"
    parser = add(kinds, "wire", words, None)
    words = "a recording (.jsonl); may be given again (default: those of the checkout)"
    parser.add_argument("--session", type=Path, action="append", metavar="FILE", help=words)
    parser.set_defaults(run=_run_wire)


def _run_wire(arguments: argparse.Namespace) -> int:
    a = arguments
    files = a.session or sorted(_RECORDED.glob("*.jsonl"))
    return show(a, lambda report: replaying.run(files, a.seed, a.model, report))
