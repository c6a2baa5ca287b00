"""`POST /v1/feedback`: an editor tells what became of an answer. `GET /v1/stats?days=N`: of all of them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from aiohttp import web

from daemon.doors.house import HOUSE, House
from daemon.doors.wire import read_json, reply, within
from daemon.errors import BadRequest
from daemon.observe.acceptance import Kind

_DAYS = 30
_MOST_DAYS = 36_500


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Body of `POST /v1/feedback`. Others are ignored."""

    id: str
    """Of the answer."""
    kind: Literal["shown", "accepted", "word", "line", "dismissed"]
    """`accepted` is the whole of it."""
    characters: int | None = None
    """Code points accepted so far; without it, as far as `kind` says."""
    elapsed_ms: float | None = None
    """How long it was shown."""


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [("POST", "/v1/feedback", feedback), ("GET", "/v1/stats", stats)]


async def feedback(request: web.Request) -> web.Response:
    """An empty object, also for answers that are not known any more."""
    body = await read_json(request, Told)
    within("characters", body.characters or 0, 0, 2**31)
    within("elapsed_ms", body.elapsed_ms or 0, 0, 2**53)
    tell(request.app[HOUSE], body)
    return reply({})


def tell(house: House, told: Told) -> None:
    """Pass it on, and count what was told."""
    if told.kind == "shown":
        known = house.feedback.shown(told.id)
    elif told.kind == "dismissed":
        known = house.feedback.dismissed(told.id, told.elapsed_ms)
    else:
        kind: Kind = told.kind
        known = house.feedback.accepted(told.id, kind, told.characters, told.elapsed_ms)
    house.metrics.count("feedback", told.kind if known else "unknown")


async def stats(request: web.Request) -> web.Response:
    """Counts and shares of the last `days`, all together and by language, window, tiers and door."""
    asked = request.query.get("days", str(_DAYS))
    if not asked.isdecimal() or not 1 <= int(asked) <= _MOST_DAYS:
        raise BadRequest(f"`days` must be a number from 1 to {_MOST_DAYS}")
    figures = await request.app[HOUSE].ledger.figures(int(asked))
    return reply({"days": int(asked), **figures})
