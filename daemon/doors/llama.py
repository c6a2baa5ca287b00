"""llama-server's reply shapes and its small GET doors, beside `/infill` in infill.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from daemon.doors.answers import shown
from daemon.doors.house import HOUSE, TRAFFIC
from daemon.doors.wire import reply, scrub
from daemon.engine.protocol import Engine
from daemon.errors import Loading
from daemon.machine import EngineProfile
from daemon.nouns import Completion, CompletionRequest, StopReason

UNFINISHED: tuple[StopReason, ...] = ("cancelled", "superseded", "engine", "off")
"""Stops after which a text is not worth showing."""
_STOP_TYPES: dict[str, str] = {"eos": "eos", "word": "word", **dict.fromkeys(UNFINISHED, "none")}
"""Everything else is a limit, as llama-server calls its own dedent and time stops."""
CUT: tuple[StopReason, ...] = ("limit", "time", "window")
"""Stops that OpenAI's and Ollama's dialects call `length`."""
_ABSENT = object()


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [
        ("GET", "/health", health),
        ("GET", "/props", props),
        ("GET", "/slots", slots),
        ("GET", "/v1/models", models),
        ("GET", "/models", models),
    ]


def model_name(engine: Engine) -> str:
    """Name of the loaded model, or nothing while none is."""
    return engine.profile.model.name if engine.profile else ""


def piece(text: str) -> dict[str, Any]:
    """One event of a stream."""
    return {
        "content": text,
        "index": 0,
        "tokens": [],
        "stop": False,
        "id_slot": 0,
        "tokens_predicted": 0,
        "tokens_evaluated": 0,
    }


def final(
    done: Completion,
    ask: CompletionRequest,
    model: str,
    prompt: str,
    *,
    index: int = 0,
    streaming: bool = False,
) -> dict[str, Any]:
    """The full reply. When streaming, the text has been sent already."""
    work = done.counters
    return {
        "id": done.id,
        "content": "" if streaming else shown(done),
        "index": index,
        "tokens": [],
        "id_slot": 0,
        "stop": True,
        "model": model,
        "tokens_predicted": work.generated,
        "tokens_evaluated": work.prompt,
        "generation_settings": settings(ask),
        "prompt": prompt,
        "has_new_line": "\n" in done.text,
        "truncated": done.stop == "window",
        "stop_type": _STOP_TYPES.get(done.stop, "limit"),
        "stopping_word": done.stop_word,
        "tokens_cached": work.prompt + work.generated,
        "timings": timings(done),
    }


def settings(ask: CompletionRequest) -> dict[str, Any]:
    """`generation_settings`, as far as we have them."""
    return {
        "n_predict": 0 if ask.warm else ask.limits.tokens,
        "max_tokens": 0 if ask.warm else ask.limits.tokens,
        "seed": ask.sampling.seed,
        "temperature": ask.sampling.temperature,
        "top_k": ask.sampling.top_k,
        "top_p": ask.sampling.top_p,
        "stop": list(ask.limits.stop),
        "n_indent": ask.limits.indent or 0,
        "t_max_predict_ms": ask.limits.milliseconds_after_line or -1,
        "samplers": ["top_k", "top_p", "temperature"],
        "speculative.n_max": 0,
    }


def timings(done: Completion) -> dict[str, Any]:
    """`prompt_n` counts tokens that were evaluated; reused ones are `cache_n`."""
    work, times = done.counters, done.timings
    predicted_ms = max(0.0, times.total - times.queued - times.prompt)
    return {
        "cache_n": work.reused,
        **_rate("prompt", work.evaluated, times.prompt),
        **_rate("predicted", work.generated, predicted_ms),
    }


def _rate(name: str, count: int, milliseconds: float) -> dict[str, Any]:
    return {
        f"{name}_n": count,
        f"{name}_ms": round(milliseconds, 3),
        f"{name}_per_token_ms": round(milliseconds / count, 3) if count else 0.0,
        f"{name}_per_second": round(count / milliseconds * 1000, 3) if milliseconds else 0.0,
    }


def flatten(whole: dict[str, Any], fields: Sequence[str] | None) -> dict[str, Any]:
    """Only `fields`, each path as one key (`timings/prompt_n`); unknown ones are left out. No fields: all."""
    if not fields:
        return whole
    flat: dict[str, Any] = {}
    for path in fields:
        value: Any = whole
        for name in path.split("/"):
            value = value.get(name, _ABSENT) if isinstance(value, dict) else _ABSENT
        if value is not _ABSENT:
            flat[path] = value
    return flat


async def health(request: web.Request) -> web.Response:
    """200 once the model is loaded; editors ask this to show that a server is there."""
    state = request.app[HOUSE].engine.state
    if state.phase in ("ready", "unloaded"):  # the next request loads it
        return reply({"status": "ok"})
    message = scrub(state.detail) if state.phase == "failed" else "Loading model"
    error = {"code": 503, "message": message or "No model", "type": "unavailable_error"}
    return reply({"error": error}, status=503)


def _profile(request: web.Request) -> EngineProfile:
    profile = request.app[HOUSE].engine.profile
    if profile is None:
        raise Loading("Loading model")
    return profile


def _defaults(request: web.Request, profile: EngineProfile) -> dict[str, Any]:
    ask = request.app[HOUSE].settings.complete
    return {
        "id": 0,
        "n_ctx": profile.context,
        "speculative": False,
        "is_processing": bool(request.app[TRAFFIC].works),
        "params": {
            "n_predict": ask.max_tokens,
            "temperature": ask.temperature,
            "top_p": ask.top_p,
            "top_k": 40,
            "stop": [],
            "samplers": ["top_k", "top_p", "temperature"],
        },
    }


async def props(request: web.Request) -> web.Response:
    """Facts of the server. The model is named, not located: paths stay in the house."""
    profile = _profile(request)
    return reply(
        {
            "default_generation_settings": _defaults(request, profile),
            "total_slots": 1,
            "model_alias": profile.model.name,
            "model_path": profile.model.name,
            "modalities": {"vision": False, "audio": False},
            "endpoint_slots": True,
            "endpoint_props": False,
            "endpoint_metrics": False,
            "chat_template": "",
            "build_info": f"foretype {request.app[HOUSE].hello().get('version', '')}".strip(),
            "is_sleeping": False,
        }
    )


async def slots(request: web.Request) -> web.Response:
    """One slot, however many sequences are resident."""
    return reply([_defaults(request, _profile(request))])


async def models(request: web.Request) -> web.Response:
    """The one model, in OpenAI's list; an empty list while none is loaded."""
    profile = request.app[HOUSE].engine.profile
    if profile is None:
        return reply({"object": "list", "data": []})
    facts = profile.model
    entry = {
        "id": facts.name,
        "object": "model",
        "created": int(request.app[HOUSE].hello().get("started", 0)),
        "owned_by": "foretype",
        "meta": {
            "n_vocab": facts.vocabulary,
            "n_ctx_train": facts.trained_context,
            "size": facts.weights_bytes,
            "architecture": facts.architecture,
            "fim": facts.fim.usable,
        },
    }
    return reply({"object": "list", "data": [entry]})
