"""`foretype stats`: what became of the answers that were shown, how much of what was taken still stands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from daemon.cli import rows

_Body = dict[str, Any]
_COUNTS = ("whole", "line", "word", "typed", "over", "dismissed", "left")
_TITLES = ("shown", "taken", *_COUNTS[:5], "away", "left", "30 s", "2 min", "5 min")
_KEPT = ("kept_30", "kept_120", "kept_300")
_MOST = 12
"""Rows of one kind that are drawn; `--json` has all."""
_LEGEND = """
taken   share of the shown: whole, to the end of a line, or of a word
typed   by hand, all of it
over    something else was typed in its place
away    dismissed by the person
left    they went elsewhere, or another answer came
30 s …  how much of what was taken (tokens) still stood by then"""


def register(subparsers: Any) -> None:
    """Add the command."""
    words = "show what became of the answers: shown, taken, typed over, and how much of it still stands"
    parser = subparsers.add_parser("stats", help=words, description=words)
    parser.add_argument("--days", type=int, default=30, metavar="N", help="how far back (default: 30)")
    rows.add_options(parser, one=False)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    body = rows.ask(arguments, "GET", f"/v1/stats?days={arguments.days}")
    if not arguments.json:
        _draw(body)
    return 0


def _draw(body: _Body) -> None:
    from rich.table import Table  # noqa: PLC0415 - `--json` needs no tables

    from daemon.cli import palette  # noqa: PLC0415

    total = body.get("total", {})
    console = palette.console()
    if not total.get("answers"):
        console.print(f"no answers in the last {body.get('days')} days")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for title in _TITLES:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_row(*_row("all", total))
    for kind, found in body.get("by", {}).items():
        table.add_row(f"by {kind}", style="bold")
        for one in found[:_MOST]:
            table.add_row(*_row(palette.visible(str(one["name"])) or "–", one))
    console.print(table)
    console.print(_LEGEND)


def _row(name: str, sums: _Body) -> Iterator[str]:
    yield name
    yield str(sums["shown"])
    yield f"{sums['share']:.0%}"
    for count in _COUNTS:
        yield str(sums[count] or "–")
    for kept in _KEPT:
        yield "–" if sums[kept] is None else f"{sums[kept]:.0%}"
