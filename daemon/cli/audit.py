"""`foretype audit`: what prompts were made of, as bars."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from daemon.cli import rows

_Body = dict[str, Any]
_WIDTH = 40
"""Characters of the longest bar."""
_SOURCES = 15


def register(subparsers: Any) -> None:
    """Add the command."""
    words = "show what the prompts of the last requests were made of"
    parser = subparsers.add_parser("audit", help=words, description=words)
    parser.add_argument("--last", type=int, default=20, metavar="N", help="how many requests (default: 20)")
    rows.add_options(parser, one=False)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    body = rows.ask(arguments, "GET", f"{rows.LEDGER}?last={arguments.last}")
    if not arguments.json:
        _draw(body)
    return 1 if body.get("audit_wrong") else 0


def _draw(body: _Body) -> None:
    from rich.text import Text  # noqa: PLC0415 - `--json` needs no colours

    from daemon.cli import palette  # noqa: PLC0415

    console = palette.console()
    entries, sums = body.get("entries", []), body.get("composition", {})
    longest = max((_tokens(entry) for entry in entries), default=0)
    for entry in entries:
        bar = Text()
        for segment, cells in zip(entry["segments"], _cells(entry["segments"], longest), strict=True):
            bar.append("█" * cells, palette.style(segment))
        console.print(Text(_line(entry)), bar)
    for line in _totals(sums):
        console.print(line)
    for name, parts in (("tier", sums.get("kinds", [])), ("source", sums.get("sources", [])[:_SOURCES])):
        if parts:
            console.print(f"\nby {name}")
        for part in parts:
            share = part["tokens"] / max(1, sums["prompt"])
            bar = Text("█" * round(share * _WIDTH), palette.style(part))
            words = f"{palette.label(part):<14} {part['tokens']:>8} {share:>6.1%} "
            console.print(Text(words), bar, Text(palette.visible(part.get("source", ""))))


def _tokens(entry: _Body) -> int:
    return sum(segment["tokens"] for segment in entry["segments"])


def _line(entry: _Body) -> str:
    work = entry["counters"]
    at = time.strftime("%H:%M:%S", time.localtime(entry["when"]))
    shared = f", run of {entry['coalesced']}" if entry.get("coalesced") else ""
    shared = f", known: {entry['recall']}" if entry.get("recall") else shared
    return (
        f"{at} {entry['id']} {entry['stop']:<10} {work['prompt']:>5} = {work['reused']:>5} reused + "
        f"{work['evaluated']:>4} evaluated, {entry['timings']['total']:>5.0f} ms{shared}"
    )


def _cells(segments: list[_Body], longest: int) -> Iterator[int]:
    """Characters for each segment, so that the ends of bars stand where the sums are."""
    at = drawn = 0
    for segment in segments:
        at += segment["tokens"]
        end = round(at * _WIDTH / max(1, longest))
        yield end - drawn
        drawn = end


def _totals(sums: _Body) -> Iterator[str]:
    yield (
        f"{sums.get('requests', 0)} requests, {sums.get('prompt', 0)} prompt tokens = "
        f"{sums.get('reused', 0)} reused + {sums.get('evaluated', 0)} evaluated; "
        f"{sums.get('generated', 0)} generated; {sums.get('audited', 0)} requests audited"
    )
    if wrong := sums.get("wrong"):
        yield f"these do not add up: {', '.join(wrong)}"
