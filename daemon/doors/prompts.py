"""What a prompt of another dialect asks: a document and a cursor, or a text to be evaluated as it was sent.

The header `x-foretype-context: off` leaves the repository's code and our own order out of one request; `on`
takes a rendered prompt apart whatever the settings say.
"""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from daemon.documents import positions
from daemon.doors.answers import client_key, new_id
from daemon.doors.house import HOUSE
from daemon.doors.preambles import Bare, take_off
from daemon.doors.templates import take_apart
from daemon.errors import BadRequest
from daemon.nouns import CompletionRequest, Extra, Limits, Lines, Sampling

CONTEXT_HEADER = "x-foretype-context"
_NO_CHAT = "Foretype completes code and does not chat"
_SEND = "Send the text before the cursor as `prompt`, and the text after it as `suffix`"


class Question(msgspec.Struct, frozen=True):
    """What a prompt asks, LF only; `rendered` is the prompt itself where it is to be evaluated as sent."""

    prefix: str
    suffix: str
    newline: str
    path: str = ""
    language: str = ""
    extras: tuple[Extra, ...] = ()
    rendered: str = ""
    off: bool = False
    """No context but what was sent."""


def question(request: web.Request, prompt: str, suffix: str | None) -> Question:
    """Of a prompt with the text after the cursor, of a rendered one, or of plain text before a cursor."""
    house = request.app[HOUSE]
    said = context_wish(request)
    found = None if suffix else take_apart(prompt)
    again = said == "on" or (said != "off" and house.settings.doors.retemplate)
    if found is not None:
        house.metrics.count("rendered", found.family if again else "as sent")
    before, after = (found.prefix, found.suffix) if found else (prompt, suffix or "")
    place = positions.pair(before, after)
    if not suffix and (said == "off" or (found is not None and not again)):
        return Question(place.prefix, place.suffix, place.newline, rendered=prompt, off=True)
    bare = take_off(place.prefix) if again else Bare(place.prefix)
    return Question(
        prefix=bare.text,
        suffix=place.suffix,
        newline=place.newline,
        path=bare.path or (found.path if found else ""),
        language=bare.language,
        extras=(*(found.extras if found else ()), *bare.extras),
        off=said == "off",
    )


def context_wish(request: web.Request) -> str:
    """`off`, `on`, or nothing."""
    said = request.headers.get(CONTEXT_HEADER, "").strip().lower()
    return said if said in ("off", "on") else ""


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """What any dialect may say besides, for which none has a field."""

    client: str | None = None
    path: str | None = None
    language: str | None = None
    lines: Lines | None = None


def asked(
    request: web.Request,
    door: str,
    body: Ours,
    question: Question,
    *,
    limits: Limits,
    sampling: Sampling,
    warm: bool = False,
    cache: bool = True,
) -> CompletionRequest:
    """The request. A text as it was sent is ended by nothing but what its client said."""
    if question.rendered:
        limits = msgspec.structs.replace(limits, lines=body.lines or "free")
    return CompletionRequest(
        id=new_id(),
        client=client_key(request, door, body.client),
        door=door,
        prefix=question.prefix,
        suffix=question.suffix,
        path=body.path or question.path or None,
        language=body.language or question.language or None,
        newline=question.newline,
        extras=question.extras,
        limits=limits,
        sampling=sampling,
        replaces=False,
        warm=warm,
        context="none" if question.off else "auto",
        cache=cache,
        rendered=question.rendered,
    )


def one_text(prompt: str | list[Any] | None, *, fallback: str | None = None) -> str:
    """The one text of `prompt`, else `fallback`. Raises BadRequest where there is none, or several."""
    if isinstance(prompt, str):
        return prompt
    if not prompt and fallback is not None:
        return fallback
    if not prompt:
        raise BadRequest("There is no `prompt`", _SEND)
    if any(isinstance(part, int | list) for part in prompt):
        raise BadRequest("`prompt` holds token ids", "Send text")
    if len(prompt) > 1:
        raise BadRequest("`prompt` holds several texts", "Ask once for each")
    if not isinstance(prompt[0], str):
        raise BadRequest("`prompt` must be a string, or a list of one")
    return prompt[0]


def no_messages(messages: object) -> None:
    """Raises BadRequest for the body of a chat."""
    if messages is not None:
        raise BadRequest(f"`messages` are for a chat: {_NO_CHAT}", _SEND)


async def chat(request: web.Request) -> web.StreamResponse:
    """What a client of a chat is told, in the shape of its dialect; clients ask again after a 5xx."""
    raise BadRequest(_NO_CHAT, "Choose another server for chat, and this one for autocomplete")
