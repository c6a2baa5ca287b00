"""`POST /v1/documents`: an editor tells what is open, what changed and where the person is."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from aiohttp import web

from daemon.doors.answers import client_key
from daemon.doors.house import HOUSE, Documents
from daemon.doors.wire import read_json, reply, within
from daemon.errors import BadRequest

DOOR = "documents"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Body of `POST /v1/documents`. Others are ignored."""

    event: Literal["open", "change", "close", "visit", "focus", "accepted"]
    path: str
    text: str | None = None
    """The whole text with `open` and `change`, the completion with `accepted`."""
    version: int | None = None
    """Grows with the client's changes; a change older than one already told is ignored."""
    line: int | None = None
    """From 0, with `visit`."""
    language: str | None = None
    client: str | None = None


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [("POST", "/v1/documents", documents)]


async def documents(request: web.Request) -> web.Response:
    """An empty object: nothing is ever told back."""
    body = await read_json(request, Told)
    if not body.path or "\0" in body.path:
        raise BadRequest("`path` must name a file")
    within("version", body.version or 0, -(2**53), 2**53)
    within("line", body.line or 0, 0, 2**31)
    house = request.app[HOUSE]
    _tell(house.documents, body, client_key(request, DOOR, body.client))
    house.feedback.changed(body.path)
    return reply({})


def _tell(mirror: Documents, body: Told, client: str) -> None:
    if body.event in ("close", "visit", "focus"):
        if body.event == "close":
            mirror.close(client, body.path)
        else:
            mirror.visit(client, body.path, body.line if body.line is not None else -1)
        return
    if body.text is None:
        raise BadRequest(f"`{body.event}` needs `text`")
    if body.event == "accepted":
        mirror.accepted(client, body.path, body.text)
    elif body.event == "open":
        mirror.open(client, body.path, body.text, body.language, body.version or 0)
    else:
        mirror.change(client, body.path, body.text, body.version, language=body.language)
