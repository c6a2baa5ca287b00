"""Ollama's dialect, for completions: `/api/generate` and what clients ask around it. One model, by any name.

Ollama takes a body of any content type; here it must be JSON, as the guard says. Editor extensions send that.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web

from daemon.doors import llama, options, prompts
from daemon.doors.answers import answer, prompt_tokens, shown, streamed
from daemon.doors.house import HOUSE, House
from daemon.doors.options import Number
from daemon.doors.wire import LINES, read_json, reply
from daemon.errors import Loading
from daemon.machine import EngineProfile, ModelFacts
from daemon.nouns import Completion, CompletionRequest

DOOR = "ollama"
VERSION = "0.9.0"
"""Of the Ollama whose interface this is; clients ask for a lowest one."""
_NS = 1_000_000
"""Nanoseconds in a millisecond."""
_LONG = "2100-01-01T00:00:00Z"
"""When the model goes: as long as the daemon runs it stays."""
_INSERT = "{{ if .Suffix }}{{ .Prompt }}<fill>{{ .Suffix }}{{ else }}{{ .Prompt }}{{ end }}"
"""Says to clients that a suffix is understood: they look for its name. The layout is our own."""
_TEXT = "{{ .Prompt }}"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Of `options`, what makes sense here."""

    num_predict: Number | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Number | None = None
    seed: Number | None = None
    stop: options.Stops = None


class Ask(prompts.Ours, frozen=True, kw_only=True):
    """Body of `POST /api/generate`. Others (`system`, `template`, `raw`, `format`, `context`) are ignored."""

    model: str | None = None
    prompt: str | None = None
    suffix: str | None = None
    stream: bool | None = None
    """Absent is true."""
    options: Options | None = None
    keep_alive: Any = None
    messages: Any = None


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [
        ("POST", "/api/generate", generate),
        ("POST", "/api/chat", prompts.chat),
        ("POST", "/api/show", show),
        ("GET", "/api/tags", tags),
        ("GET", "/api/ps", running),
        ("GET", "/api/version", version),
    ]


async def generate(request: web.Request) -> web.StreamResponse:
    """One object, or a line for each piece and one with `"done":true`. Without a text the model is loaded."""
    house = request.app[HOUSE]
    body = await read_json(request, Ask)
    prompts.no_messages(body.messages)
    name = llama.model_name(house.engine) or body.model or ""
    if not body.prompt and not body.suffix:
        return _loaded(house, name, body.keep_alive)
    ask = _request(request, body, house)

    def line(text: str, done: bool = False) -> dict[str, Any]:
        return {"model": name, "created_at": _now(), "response": text, "done": done}

    if body.stream is not False:
        return await streamed(request, ask, line, lambda done: {**line("", True), **_told(done)}, LINES)
    done = await answer(request, ask)
    return reply({**line(shown(done), True), **_told(done)})


def _request(request: web.Request, body: Ask, house: House) -> CompletionRequest:
    wishes = body.options or Options()
    return prompts.asked(
        request,
        DOOR,
        body,
        prompts.question(request, body.prompt or "", body.suffix),
        limits=options.limits(
            house, wishes.num_predict, wishes.stop, field="options.num_predict", lines=body.lines
        ),
        sampling=options.sampling(house, wishes.temperature, wishes.top_p, wishes.top_k, wishes.seed),
        warm=wishes.num_predict == 0,
    )


def _loaded(house: House, name: str, keep_alive: Any) -> web.Response:
    """The model is there or comes; it also stays when it is told to go, for others may be using it."""
    if house.engine.profile is None:
        raise Loading("Loading model")
    reason = "unload" if keep_alive in (0, "0", "0s", "0m") else "load"
    return reply({"model": name, "created_at": _now(), "response": "", "done": True, "done_reason": reason})


def _told(done: Completion) -> dict[str, Any]:
    """Reason, counts and nanoseconds. `context`, the ids of a chat so far, is empty."""
    work, times = done.counters, done.timings
    length = done.stop in llama.CUT
    return {
        "done_reason": "length" if length else "load" if done.stop == "warm" else "stop",
        "context": [],
        "total_duration": int(times.total * _NS),
        "load_duration": 0,
        "prompt_eval_count": prompt_tokens(done),
        "prompt_eval_duration": int(times.prompt * _NS),
        "eval_count": work.generated,
        "eval_duration": int(max(0.0, times.total - times.queued - times.prompt) * _NS),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


async def show(request: web.Request) -> web.Response:
    """Facts of the model. Clients look for `.Suffix` in its template and for `insert` in what it can do; they
    ask once, perhaps before it is loaded."""
    await read_json(request, Ask)
    house = request.app[HOUSE]
    profile = house.engine.profile
    insert = profile is None or profile.model.fim.usable
    return reply(
        {
            "modelfile": "",
            "parameters": f"num_ctx {profile.context if profile else house.settings.engine.context}",
            "template": _INSERT if insert else _TEXT,
            "details": _details(profile),
            "model_info": _info(profile.model) if profile else {},
            "capabilities": ["completion", "insert"] if insert else ["completion"],
            "modified_at": _since(house),
        }
    )


def _info(facts: ModelFacts) -> dict[str, Any]:
    return {
        "general.architecture": facts.architecture,
        "general.name": facts.name,
        f"{facts.architecture}.context_length": facts.trained_context,
    }


async def tags(request: web.Request) -> web.Response:
    """The models: the loaded one, or none."""
    return _models(request, lambda house: {"modified_at": _since(house)})


async def running(request: web.Request) -> web.Response:
    """The models in memory."""
    profile = request.app[HOUSE].engine.profile
    on_card = profile.model.weights_bytes if profile and profile.backend != "CPU" else 0
    more = {"expires_at": _LONG, "size_vram": on_card, "context_length": profile.context if profile else 0}
    return _models(request, lambda _: more)


async def version(request: web.Request) -> web.Response:
    """See VERSION."""
    return reply({"version": VERSION})


def _models(request: web.Request, more: Callable[[House], dict[str, Any]]) -> web.Response:
    house = request.app[HOUSE]
    if (profile := house.engine.profile) is None:
        return reply({"models": []})
    facts = profile.model
    entry = {
        "name": facts.name,
        "model": facts.name,
        "size": facts.weights_bytes,
        "digest": facts.sha256,
        "details": _details(profile),
        **more(house),
    }
    return reply({"models": [entry]})


def _details(profile: EngineProfile | None) -> dict[str, Any]:
    family = profile.model.architecture if profile else ""
    return {
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": [family] if family else [],
        "parameter_size": "",
        "quantization_level": "",
    }


def _since(house: House) -> str:
    started = float(house.hello().get("started", 0))
    return datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
