"""`foretype bench flood`: whether one client that asks far too often is felt by another."""

from __future__ import annotations

import argparse
from typing import Any

from daemon.bench import flood
from daemon.cli.measuring import add, show


def register(kinds: Any) -> None:
    """Add the measurement to those of `foretype bench`."""
    words = f"a typist beside a client that asks {flood.RATE} times a second: times, refusals, memory"
    parser = add(kinds, "flood", words, None)
    words = "how long the flood lasts; all takes twice as long (default: 1)"
    parser.add_argument("--minutes", type=_minutes, default=1.0, metavar="M", help=words)
    parser.set_defaults(run=_run_flood)


def _minutes(text: str) -> float:
    value = float(text)
    if not 0.0 < value < 1000.0:
        raise argparse.ArgumentTypeError("must be above 0 and below 1000")
    return value


def _run_flood(arguments: argparse.Namespace) -> int:
    plan = flood.Plan(arguments.minutes, arguments.seed, arguments.model)
    return show(arguments, lambda report: flood.run(plan, report))
