"""`POST /v1/documents`: an editor tells what is open, what changed and where the person is."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from aiohttp import web

from daemon.documents.held import Copy, Edit, Held
from daemon.doors.answers import client_key
from daemon.doors.house import HOUSE
from daemon.doors.wire import read_json, reply, within
from daemon.errors import BadRequest, NotKept

DOOR = "documents"
MOST_EDITS = 10_000
HELD: web.AppKey[Held] = web.AppKey("held", Held)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Body of `POST /v1/documents`. Others are ignored."""

    event: Literal["open", "change", "edit", "close", "visit", "focus", "accepted"]
    path: str
    text: str | None = None
    """The whole text with `open` and `change`, the completion with `accepted`."""
    version: int | None = None
    """Grows with the client's changes; a change older than one already told is ignored. With `edit`: of what
    the edits make."""
    base: int | None = None
    """With `edit`, the version told before, which the edits change."""
    edits: tuple[Edit, ...] = ()
    """One after the other; offsets in code points of the text as the client holds it, CRLF, CR and byte order
    mark included."""
    length: int | None = None
    """With `edit`: code points of what the edits make."""
    crc32: int | None = None
    """With `edit`: CRC-32 of the UTF-8 of what the edits make."""
    line: int | None = None
    """From 0, with `visit`."""
    language: str | None = None
    client: str | None = None


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [("POST", "/v1/documents", documents)]


async def documents(request: web.Request) -> web.Response:
    """An empty object. 409 `resync` to an edit of what is not held, 409 `not_kept` where nothing may be."""
    body = await read_json(request, Told)
    if not body.path or "\0" in body.path:
        raise BadRequest("`path` must name a file")
    within("version", body.version or 0, -(2**53), 2**53)
    within("line", body.line or 0, 0, 2**31)
    _tell(request.app, body, client_key(request, DOOR, body.client))
    request.app[HOUSE].feedback.changed(body.path)
    return reply({})


def _tell(app: web.Application, body: Told, client: str) -> None:
    mirror = app[HOUSE].documents
    if body.event in ("close", "visit", "focus"):
        if body.event == "close":
            mirror.close(client, body.path)
            app[HELD].drop(client, body.path)
        else:
            mirror.visit(client, body.path, body.line if body.line is not None else -1)
    elif body.event == "edit":
        _edit(app, body, client)
    elif body.text is None:
        raise BadRequest(f"`{body.event}` needs `text`")
    elif body.event == "accepted":
        mirror.accepted(client, body.path, body.text)
    else:
        _whole(app, body, client, body.text)


def _whole(app: web.Application, body: Told, client: str, text: str) -> None:
    mirror, opened = app[HOUSE].documents, body.event == "open"
    if opened:
        kept = mirror.open(client, body.path, text, body.language, body.version or 0)
    else:
        kept = mirror.change(client, body.path, text, body.version, language=body.language)
    if body.version is None:
        app[HELD].drop(client, body.path)
    else:
        copy = Copy(body.version, text if kept else None, body.language)
        app[HELD].take(client, body.path, copy, opened=opened)


def _edit(app: web.Application, body: Told, client: str) -> None:
    version, base, length, crc32 = body.version, body.base, body.length, body.crc32
    if version is None or base is None or length is None or crc32 is None:
        raise BadRequest("`edit` needs `version`, `base`, `length` and `crc32`")
    within("edits", len(body.edits), 1, MOST_EDITS)
    within("version", version, base + 1, 2**53)
    text, language = app[HELD].edited(client, body.path, base, body.edits, length, crc32)
    kept = app[HOUSE].documents.change(client, body.path, text, version, language=language)
    app[HELD].take(client, body.path, Copy(version, text if kept else None, language))
    if not kept:
        raise NotKept("Nothing of this document is kept", "Send its text with each request")
