"""`foretype replay ID`: the same tokens evaluated anew; is the answer the same?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from daemon.cli import rows

_PATIENCE_S = 600.0
"""A long prompt without its cache, on a slow machine."""
_NEAR = 0.1
"""Logits closer than this may change places with the shape of a batch."""


def register(subparsers: Any) -> None:
    """Add the command."""
    words = "evaluate a request again without the cache and say whether the answer is the same"
    parser = subparsers.add_parser(
        "replay", help=words, description=f"{words}: exit status 0 when it is, 1 when it is not"
    )
    rows.add_options(parser, one=True)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    body = rows.ask(arguments, "POST", f"{rows.row(arguments)}/replay", _PATIENCE_S)
    for line in () if arguments.json else _lines(body):
        print(line)
    return 0 if body["same"] else 1


def _lines(body: dict[str, Any]) -> Iterator[str]:
    work, times = body["counters"], body["timings"]
    why = f" ({body['why']})" if body["why"] else ""
    yield f"{body['id']}: {'the same answer' if body['same'] else 'another answer'}{why}"
    yield f"{work['evaluated']} tokens evaluated, {work['generated']} generated in {times['total']:.0f} ms"
    if body["same"]:
        return
    for name in ("recorded", "replayed"):
        yield f"{name:<9} {body[name][: body['at']]!r} then {body[name][body['at'] :]!r}"
    yield f"stops     {body['recorded_stop']}, now {body['replayed_stop']}"
    if body["margin"] is not None:
        near = ": either was as good" if body["margin"] < _NEAR else ""
        yield f"margin    the best token there leads by {body['margin']:.3f}{near}"
