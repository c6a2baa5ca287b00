"""The native dialect: `POST /v1/complete` takes a document and a cursor and answers all that is known."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from aiohttp import web

from daemon.documents import positions
from daemon.doors.answers import MAX_MS, MAX_TOKENS, answer, client_key, new_id, streamed
from daemon.doors.documents import HELD
from daemon.doors.house import HOUSE, TRAFFIC, House
from daemon.doors.options import MAX_STOPS
from daemon.doors.wire import read_json, reply, within
from daemon.errors import BadRequest
from daemon.nouns import Completion, CompletionRequest, Extra, Limits, Lines, Range, Sampling
from daemon.settings import Complete

DOOR = "native"


class Cursor(msgspec.Struct, frozen=True):
    """`line` (from 0) and `character` in units of `encoding`, or `offset` in code points. Clamped."""

    line: int | None = None
    character: int = 0
    encoding: Literal["utf-8", "utf-16", "utf-32"] = "utf-16"
    offset: int | None = None


class Snippet(msgspec.Struct, frozen=True):
    """Other text that may help."""

    text: str
    filename: str = ""
    kind: Literal["snippet", "diagnostic", "clipboard"] = "snippet"


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Body of `POST /v1/complete`: `text` and `cursor`, `version` of `path` and `cursor`, or `prefix`
    and `suffix`. Others are ignored."""

    text: str | None = None
    cursor: Cursor | None = None
    prefix: str | None = None
    suffix: str | None = None
    path: str | None = None
    version: int | None = None
    """In place of `text`: the version of `path` that this `client` told `/v1/documents` last. 409 `resync`
    where the daemon holds another one."""
    crc32: int | None = None
    """Of the UTF-8 of that version: 409 `resync` where it is not what the daemon holds."""
    language: str | None = None
    client: str | None = None
    extras: tuple[Snippet, ...] = ()
    max_tokens: int | None = None
    """0 is a warm-up, as `warm` is."""
    time_ms: int | None = None
    """For generating, counted from the end of prompt evaluation."""
    deadline_ms: int | None = None
    """For everything; after it nobody waits for the answer."""
    lines: Lines | None = None
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    top_p: float | None = None
    seed: int = 0
    replaces: bool = True
    """False from a client that can only insert: then nothing after the cursor is ever to be replaced."""
    trigger: Literal["auto", "manual"] = "auto"
    """`manual`: a person asks for it by hand."""
    comments: bool = False
    strings: bool = False
    """Whether an answer is wanted inside of these too, whatever the settings say."""
    warm: bool = False
    stream: bool = False
    raw: bool = False
    """Also answer with the generation as it was before polish."""
    anchor_lines: int | None = None
    heal: bool = True
    context: Literal["auto", "none", "now"] = "auto"
    window: Literal["auto", "simple", "medium", "complex"] = "auto"
    cache: bool = True
    margins: bool = False
    recall: bool = True
    """False: the model runs for it, whatever was answered before."""


class Place(msgspec.Struct, frozen=True):
    """The document inside (LF only) and as the client sent it."""

    prefix: str
    suffix: str
    newline: str
    outer: str
    clamped: bool = False


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [
        ("POST", "/v1/complete", complete),
        ("GET", "/v1/hello", hello),
        ("POST", "/v1/stop", stop),
        ("GET", "/v1/status", status),
    ]


async def complete(request: web.Request) -> web.StreamResponse:
    """One completion, whole or as events: `{"text":…}` for each piece, then the whole with `"done":true`."""
    body = await read_json(request, Ask)
    house, client = request.app[HOUSE], client_key(request, DOOR, body.client)
    body = _told(body, request.app, client)
    place = _place(body)
    ask = _request(body, place, house, client)
    if body.stream:
        return await streamed(
            request,
            ask,
            piece=lambda text: {"text": text},
            last=lambda done: {**_answer(done, body, place, house), "done": True},
        )
    return reply(_answer(await answer(request, ask), body, place, house))


def _told(body: Ask, app: web.Application, client: str) -> Ask:
    """With the text of the version that it names."""
    if body.version is None or body.text is not None or body.prefix is not None:
        return body
    if not body.path:
        raise BadRequest("`version` needs `path`")
    text, language = app[HELD].copy(client, body.path, body.version, body.crc32)
    return msgspec.structs.replace(body, text=text, language=body.language or language)


def _place(body: Ask) -> Place:
    if body.text is not None:
        if body.cursor is None:
            raise BadRequest("`text` needs a `cursor`", 'Give {"line":…,"character":…} or {"offset":…}')
        return _split(body.text, body.cursor)
    if body.prefix is None and body.suffix is None:
        raise BadRequest("There is no document", "Give `text` and `cursor`, or `prefix` and `suffix`")
    before, after = body.prefix or "", body.suffix or ""
    found = positions.pair(before, after)
    return Place(found.prefix, found.suffix, found.newline, before + after)


def _split(text: str, cursor: Cursor) -> Place:
    if cursor.offset is not None:
        found = positions.split_at(text, cursor.offset)
    elif cursor.line is not None:
        found = positions.split(text, cursor.line, cursor.character, cursor.encoding)
    else:
        raise BadRequest("`cursor` needs `line` and `character`, or `offset`")
    return Place(found.prefix, found.suffix, found.newline, text, found.clamped)


def _request(body: Ask, place: Place, house: House, client: str) -> CompletionRequest:
    defaults = house.settings.complete
    tokens = defaults.max_tokens if body.max_tokens is None else body.max_tokens
    time_ms = defaults.time_ms if body.time_ms is None else body.time_ms
    within("max_tokens", tokens, 0, MAX_TOKENS)
    within("time_ms", time_ms, 1, MAX_MS)
    _check(body)
    return CompletionRequest(
        id=new_id(),
        client=client,
        door=DOOR,
        prefix=place.prefix,
        suffix=place.suffix,
        path=body.path or None,
        language=body.language or None,
        whole=body.text is not None,
        newline=place.newline,
        extras=tuple(Extra(text=s.text, filename=s.filename, kind=s.kind) for s in body.extras if s.text),
        limits=Limits(
            lines=body.lines or defaults.lines,
            tokens=max(tokens, 1),
            milliseconds=time_ms,
            deadline=body.deadline_ms,
            stop=tuple(s for s in body.stop if s),
        ),
        sampling=_sampling(body, defaults),
        replaces=body.replaces,
        manual=body.trigger == "manual",
        comments=body.comments,
        strings=body.strings,
        warm=body.warm or tokens == 0,
        anchor_lines=body.anchor_lines,
        heal=body.heal,
        context=body.context,
        window=body.window,
        cache=body.cache,
        margins=body.margins,
        recall=body.recall,
    )


def _sampling(body: Ask, defaults: Complete) -> Sampling:
    temperature = defaults.temperature if body.temperature is None else body.temperature
    top_p = defaults.top_p if body.top_p is None else body.top_p
    within("temperature", temperature, 0, 5)
    within("top_p", top_p, 0, 1)
    within("seed", body.seed, 0, 2**32 - 1)
    return Sampling(temperature=temperature, top_p=top_p, seed=body.seed)


def _check(body: Ask) -> None:
    """Of what has no default in the settings. Raises BadRequest."""
    within("deadline_ms", MAX_MS if body.deadline_ms is None else body.deadline_ms, 1, MAX_MS)
    within("anchor_lines", body.anchor_lines or 0, -1, 100_000)
    if len(body.stop) > MAX_STOPS:
        raise BadRequest(f"`stop` holds more than {MAX_STOPS} strings")


def _answer(done: Completion, body: Ask, place: Place, house: House) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(done)
    if not body.raw:
        del found["raw"]
    if not body.margins:
        del found["margins"], found["tokens"]
    replaced = Range(start=outer(place.outer, done.replace.start), end=outer(place.outer, done.replace.end))
    profile = house.engine.profile
    return {
        **found,
        "replace": msgspec.to_builtins(replaced),
        "clamped": place.clamped,
        "model": profile.model.name if profile else "",
    }


def outer(text: str, inner: int) -> int:
    """The offset in `text` as the client sent it of offset `inner` in its LF-only form without BOM.

    Every pass counts the CRLFs that begin before its guess; the guess only grows and is exact when it stays.
    """
    base = inner + text.startswith("\ufeff")
    guess = base
    while (found := base + text.count("\r\n", 0, guess + 1)) != guess:
        guess = found
    return guess


async def hello(request: web.Request) -> web.Response:
    """Who runs here. Frozen: every build understands every other's."""
    return reply(request.app[HOUSE].hello())


async def stop(request: web.Request) -> web.Response:
    """End in order. Frozen, as hello is."""
    request.app[HOUSE].stop()
    return reply({"stopping": True})


async def status(request: web.Request) -> web.Response:
    """Everything a person may want to know; what was counted at the doors is under `metrics`, who waits there
    under `flow`."""
    house = request.app[HOUSE]
    flow = request.app[TRAFFIC].facts()
    return reply({"metrics": house.metrics.snapshot(), "flow": flow, **await house.status()})
