"""The request ledger: `GET /v1/ledger?last=N`, `GET /v1/ledger/ID`, `POST /v1/ledger/ID/replay`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from daemon import paths
from daemon.doors.house import HOUSE, House
from daemon.doors.wire import reply
from daemon.errors import BadRequest
from daemon.observe.audit import composition, explanation, summary
from daemon.observe.entries import Entry
from daemon.replay import replay
from indexer.errors import VocabularyUnusable
from indexer.vocabulary import load

_LAST = 20
MOST = 10_000
"""Rows that are told at once."""


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [
        ("GET", "/v1/ledger", audit),
        ("GET", "/v1/ledger/{id}", explain),
        ("POST", "/v1/ledger/{id}/replay", again),
    ]


async def audit(request: web.Request) -> web.Response:
    """The newest `last` rows, oldest first, how many of them were audited and do not add up, and what their
    prompts are made of together; no source text."""
    asked = request.query.get("last", str(_LAST))
    if not asked.isdecimal() or not 1 <= int(asked) <= MOST:
        raise BadRequest(f"`last` must be a number from 1 to {MOST}")
    entries = await request.app[HOUSE].ledger.last(int(asked))
    return reply(await asyncio.to_thread(_audited, entries))


def _audited(entries: list[Entry]) -> msgspec.Raw:
    """Megabytes for a thousand rows: encoded beside the loop."""
    sums = composition(entries)
    counts = {"audited": sums["audited"], "audit_wrong": len(sums["wrong"])}
    body = {**counts, "entries": [summary(entry) for entry in entries], "composition": sums}
    return msgspec.Raw(msgspec.json.encode(body))


async def explain(request: web.Request) -> web.Response:
    """One row with its exact prompt and answer, as long as they are kept. ID may be the beginning of one."""
    house = request.app[HOUSE]
    entry = await house.ledger.find(request.match_info["id"])
    return reply(await asyncio.to_thread(lambda: msgspec.Raw(msgspec.json.encode(explained(house, entry)))))


def explained(house: House, entry: Entry) -> dict[str, Any]:
    """The row with its exact prompt and answer. Not for the loop."""
    return explanation(entry, _pieces(house, entry) if entry.content else [])


def _pieces(house: House, entry: Entry) -> list[bytes]:
    """The vocabulary that the row's ids are of: of the loaded model, or of an earlier one."""
    profile = house.engine.profile
    loaded = profile is not None and profile.model.sha256 == entry.sha256
    file = paths.vocabulary_dir() / f"{entry.sha256}.msgpack"
    try:
        return load(Path(house.engine.vocabulary[0]) if loaded else file).pieces
    except VocabularyUnusable:
        return []


async def again(request: web.Request) -> web.Response:
    """Evaluate the same tokens anew and compare; see daemon/replay.py."""
    house = request.app[HOUSE]
    entry = await house.ledger.find(request.match_info["id"])
    return reply(msgspec.to_builtins(await replay(house.engine, entry)))
