"""`foretype bench paging`: switching among more files than the context has room for."""

from __future__ import annotations

import argparse
from typing import Any

from daemon.bench import paging
from daemon.cli.measuring import add, positive, show


def register(kinds: Any) -> None:
    """Add the measurement to those of `foretype bench`."""
    words = "switch among more files than fit: page-in against evaluation, ceilings, restart, damage"
    parser = add(kinds, "paging", words, paging.FILES)
    words = f"of each file's prompt (default: {paging.TOKENS})"
    parser.add_argument("--tokens", type=positive, default=paging.TOKENS, metavar="N", help=words)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    a = arguments
    plan = paging.Plan(a.limit, a.tokens, a.seed, a.model)
    return show(a, lambda report: paging.run(plan, report))
