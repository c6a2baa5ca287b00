"""Tabby's dialect, for tabby-agent and the editors it serves: completions by segments, events, health."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import platform
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from aiohttp import web

from daemon.documents import positions
from daemon.doors import llama, options, prompts
from daemon.doors.answers import answer, client_key, new_id
from daemon.doors.feedback import Told, tell
from daemon.doors.house import HOUSE, House
from daemon.doors.ledger import explained
from daemon.doors.options import Number
from daemon.doors.steady import Steady
from daemon.doors.wire import parse, read_json, reply, within
from daemon.errors import BadRequest, ForetypeError, Loading
from daemon.nouns import Completion, CompletionRequest, Extra, Sampling

DOOR = "tabby"
STEADY: web.AppKey[Steady] = web.AppKey("steady", Steady)
SPOKEN = "v0.30.0"
"""Whose dialect this is. Clients look at it: of a server older than 0.9 they do not ask the settings that
keep them from sending usage to their maker."""
NEXT_EDIT = "next_edit_suggestion"


class Piece(msgspec.Struct, frozen=True):
    """A declaration, or a snippet. The score of one is not looked at: the order says the same."""

    filepath: str = ""
    body: str = ""


class Version(msgspec.Struct, frozen=True):
    """How tabby-agent sends a text with its cursor."""

    content: str = ""


class EditHistory(msgspec.Struct, frozen=True):
    """Of the edited file. The text as it is now is the whole document, where segments are a window."""

    current_version: str | Version | None = None


class Segments(msgspec.Struct, frozen=True, kw_only=True):
    """What is around the cursor, and what the editor found elsewhere."""

    prefix: str | None = None
    suffix: str | None = None
    filepath: str | None = None
    declarations: tuple[Piece, ...] | None = None
    relevant_snippets_from_changed_files: tuple[Piece, ...] | None = None
    relevant_snippets_from_recently_opened_files: tuple[Piece, ...] | None = None
    clipboard: str | None = None
    edit_history: EditHistory | None = None


class Debug(msgspec.Struct, frozen=True, kw_only=True):
    """Questions about the prompt."""

    raw_prompt: str | None = None
    return_snippets: bool | None = None
    return_prompt: bool | None = None
    disable_retrieval_augmented_code_completion: bool | None = None


class Ask(prompts.Ours, frozen=True, kw_only=True):
    """Body of `POST /v1/completions` with `segments`. Others are ignored; `null` is as good as absent."""

    segments: Segments | None = None
    temperature: Number | None = None
    seed: Number | None = None
    mode: str | None = None
    debug_options: Debug | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Body of `POST /v1/events`."""

    type: str
    completion_id: str | None = None
    elapsed: float | None = None


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [
        ("POST", "/v1/events", events),
        ("GET", "/v1/health", health),
        ("POST", "/v1/health", health),
        ("GET", "/v1beta/server_setting", server_setting),
    ]


async def completions(request: web.Request, raw: bytes) -> web.StreamResponse:
    """One choice. Its text is empty where there is nothing to say, and for next-edit suggestions, which no
    model here is trained on."""
    body, house = parse(raw, Ask), request.app[HOUSE]
    debug = body.debug_options or Debug()
    ask = _request(request, body, debug)
    extras = request.app[STEADY].extras(ask.client, ask.path or "", ask.extras)
    ask = msgspec.structs.replace(ask, extras=extras)
    mode = body.mode or "standard"
    done = None if mode == NEXT_EDIT else await answer(request, ask)
    text = done.text if done is not None and done.stop not in llama.UNFINISHED else ""
    shown: dict[str, Any] = {"id": ask.id, "choices": [{"index": 0, "text": text}], "mode": mode}
    if debug.return_prompt or debug.return_snippets:
        shown["debug_data"] = await _debug(house, debug, done)
    return reply(shown)


def _request(request: web.Request, body: Ask, debug: Debug) -> CompletionRequest:
    house = request.app[HOUSE]
    segments = body.segments or Segments()
    raw = debug.raw_prompt
    if raw is None and body.segments is None:
        raise BadRequest("There is no document", "Give `segments`, or `debug_options.raw_prompt`")
    prefix, suffix, whole = (raw, "", False) if raw is not None else _document(segments)
    place = positions.pair(prefix, suffix)
    alone = raw is not None or bool(debug.disable_retrieval_augmented_code_completion)
    path = None if raw is not None else path_of(segments.filepath or "") or body.path or None
    return CompletionRequest(
        id=new_id(),
        client=client_key(request, DOOR, body.client),
        door=DOOR,
        prefix=place.prefix,
        suffix=place.suffix,
        path=path,
        language=body.language or None,
        whole=whole,
        newline=place.newline,
        extras=() if raw is not None else _extras(segments),
        limits=options.limits(house, None, lines=body.lines),
        sampling=_sampling(body, house),
        replaces=False,
        context="none" if alone or prompts.context_wish(request) == "off" else "auto",
    )


def _document(segments: Segments) -> tuple[str, str, bool]:
    """(prefix, suffix, whether that is all): the whole text where it is sent and holds the window once."""
    prefix, suffix = segments.prefix or "", segments.suffix or ""
    version = segments.edit_history.current_version if segments.edit_history else None
    text = version.content if isinstance(version, Version) else version or ""
    window = prefix + suffix
    at = text.find(window) if window and segments.filepath else -1
    if at < 0 or text.find(window, at + 1) >= 0:
        return prefix, suffix, False
    cursor = at + len(prefix)
    return text[:cursor], text[cursor:], True


def path_of(name: str) -> str:
    """A file name as tabby-agent sends it: relative to a workspace or a repository, or a URI; escaped."""
    if "://" not in name:
        return unquote(name)
    path = unquote(urlsplit(name).path)
    return path[1:] if path[2:3] == ":" else path  # file:///C:/…


def _extras(segments: Segments) -> tuple[Extra, ...]:
    """What changes least first, and of each list the best last: where there is no room, the first ones go."""
    pieces = [
        *reversed(segments.relevant_snippets_from_recently_opened_files or ()),
        *reversed(segments.relevant_snippets_from_changed_files or ()),
        *reversed(segments.declarations or ()),
    ]
    found = [Extra(text=one.body, filename=path_of(one.filepath)) for one in pieces if one.body.strip()]
    if (segments.clipboard or "").strip():
        found.append(Extra(text=segments.clipboard or "", kind="clipboard"))
    return tuple(found)


def _sampling(body: Ask, house: House) -> Sampling:
    """Who asks with a temperature and without a seed wants another answer each time."""
    found = options.sampling(house, body.temperature, None, seed=body.seed)
    if body.seed is None and found.temperature > 0:
        return msgspec.structs.replace(found, seed=secrets.randbelow(2**32))
    return found


async def _debug(house: House, debug: Debug, done: Completion | None) -> dict[str, Any]:
    """The prompt and what of other files is in it, as far as the ledger keeps texts."""
    told: dict[str, Any] = {}
    if done is not None:
        with contextlib.suppress(ForetypeError):
            entry = await house.ledger.find(done.id)
            told = await asyncio.to_thread(explained, house, entry)
    parts, found = told.get("prompt") or (), dict[str, Any]()
    if debug.return_prompt:
        found["prompt"] = "".join(part["text"] for part in parts)
    if debug.return_snippets:
        found["snippets"] = [
            {"filepath": part["source"], "body": part["text"], "score": 1.0}
            for part in parts
            if part["kind"] in ("context", "extra")
        ]
    return found


async def events(request: web.Request) -> web.Response:
    """200 and nothing else, also for answers that are not known any more."""
    body = await read_json(request, Event)
    within("elapsed", body.elapsed or 0, 0, 2**53)
    part = request.query.get("select_kind", "")
    kinds = {
        "view": "shown",
        "dismiss": "dismissed",
        "select": part if part in ("line", "word") else "accepted",
    }
    if (kind := kinds.get(body.type)) is None:
        raise BadRequest("`type` must be view, select or dismiss")
    told = {"id": body.completion_id or "", "kind": kind, "elapsed_ms": body.elapsed}
    tell(request.app[HOUSE], msgspec.convert(told, Told))
    return web.Response()


async def health(request: web.Request) -> web.Response:
    """Facts of the server. An error until a model was loaded: a client that is told of a server without a
    model does not ask again, one that is told of none does."""
    house = request.app[HOUSE]
    profile = house.engine.profile
    if profile is None or house.engine.state.phase in ("failed", "stopped"):
        raise Loading("Loading model")
    gpu = profile.backend != "CPU"
    device = profile.backend.lower()
    cuda = [profile.device] if profile.backend == "CUDA" else []
    local = {"model_id": profile.model.name, "device": device, "cuda_devices": cuda}
    hello = house.hello()
    return reply(
        {
            "model": profile.model.name,
            "device": device,
            "arch": platform.machine(),
            "cpu_info": _processor(),
            "cpu_count": os.cpu_count() or 1,
            "accelerators": [{"display_name": profile.device}] if gpu else [],
            "cuda_devices": cuda,
            "models": {"completion": {"local": local}},
            "version": {
                "build_date": "",
                "build_timestamp": "",
                "git_sha": str(hello.get("build", "")),
                "git_describe": f"{SPOKEN}-foretype-{hello.get('version', '')}",
            },
        }
    )


@functools.cache
def _processor() -> str:
    """Its name where Linux tells it; asking other systems would start a process."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


async def server_setting(request: web.Request) -> web.Response:
    """Nothing leaves this machine; the client's own usage reports neither."""
    return reply({"disable_client_side_telemetry": True})
