"""OpenAI's `/v1/completions` and Mistral's `/fim/completions`: one question, answered in two shapes.

`best_of`, `user`, penalties and what else is unknown are ignored: the answer is the likeliest one already.
`echo` and `logprobs` are refused, for a client that asks would take what comes for something else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from daemon.doors import llama, options, prompts, tabby
from daemon.doors.answers import prompt_tokens, shown, stream
from daemon.doors.house import HOUSE, House
from daemon.doors.options import Number
from daemon.doors.several import several
from daemon.doors.wire import DONE, parse, read_body, reply, within
from daemon.errors import BadRequest
from daemon.nouns import Completion, CompletionRequest

DOOR, FIM_DOOR = "openai", "fim"


class StreamOptions(msgspec.Struct, frozen=True):
    """Of `stream_options`."""

    include_usage: bool | None = None


class Ask(prompts.Ours, frozen=True, kw_only=True):
    """Body of both. Unknown fields are ignored; `null` is as good as absent."""

    prompt: str | list[Any] | None = None
    suffix: str | None = None
    max_tokens: Number | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Number | None = None
    seed: Number | None = None
    random_seed: Number | None = None
    """Mistral's name of it."""
    n: Number | None = None
    stop: options.Stops = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    echo: Any = None
    logprobs: Any = None
    messages: Any = None


class _Tabbys(msgspec.Struct, frozen=True):
    segments: Any = None
    debug_options: Any = None


@dataclass(frozen=True)
class _Shape:
    """What one of the two calls its objects, and where a text stands in them."""

    whole: str
    chunk: str
    text: Callable[[str], dict[str, Any]]
    piece: Callable[[str], dict[str, Any]]
    usage_last: bool
    """The usage of a stream comes with its last piece, and unasked."""


_OPENAI = _Shape(
    "text_completion",
    "text_completion",
    lambda text: {"text": text, "logprobs": None},
    lambda text: {"text": text, "logprobs": None},
    usage_last=False,
)
_MISTRAL = _Shape(
    "chat.completion",
    "chat.completion.chunk",
    lambda text: {"message": {"role": "assistant", "content": text, "tool_calls": None}},
    lambda text: {"delta": {"role": "assistant", "content": text}},
    usage_last=True,
)


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [
        ("POST", "/v1/completions", any_completions),
        ("POST", "/fim/completions", fim),
        ("POST", "/v1/fim/completions", fim),
        ("POST", "/v1/chat/completions", prompts.chat),
    ]


async def any_completions(request: web.Request) -> web.StreamResponse:
    """Two dialects have this address: Tabby's clients send `segments`, or `debug_options`."""
    raw = await read_body(request)
    found = parse(raw, _Tabbys)
    if found.segments is not None or found.debug_options is not None:
        return await tabby.completions(request, raw)
    return await completions(request, raw)


async def completions(request: web.Request, raw: bytes) -> web.StreamResponse:
    """`choices[].text`, whole or as events that end in `[DONE]`."""
    return await _answered(request, parse(raw, Ask), DOOR, _OPENAI)


async def fim(request: web.Request) -> web.StreamResponse:
    """`choices[].message.content`, or events with `choices[].delta.content`."""
    return await _answered(request, parse(await read_body(request), Ask), FIM_DOOR, _MISTRAL)


async def _answered(request: web.Request, body: Ask, door: str, shape: _Shape) -> web.StreamResponse:
    house = request.app[HOUSE]
    ask = _request(request, body, house, door)
    wanted = body.n or 1
    if not body.stream:
        found = await several(request, ask, wanted)
        choices = [_choice(shape.text(shown(done)), n, done) for n, done in enumerate(found)]
        return reply({**_envelope(ask, house, shape.whole, choices), "usage": _usage(found)})
    asked_usage = bool(body.stream_options and body.stream_options.include_usage)
    more: dict[str, Any] = {"usage": None} if asked_usage and not shape.usage_last else {}

    def chunk(*choices: dict[str, Any]) -> dict[str, Any]:
        return {**_envelope(ask, house, shape.chunk, choices), **more}

    def last(found: Sequence[Completion]) -> Iterator[dict[str, Any]]:
        for n, done in enumerate(found):
            ending = chunk(_choice(shape.piece(shown(done) if n else ""), n, done))
            if shape.usage_last and n + 1 == len(found):
                ending["usage"] = _usage(found)
            yield ending
        if more:
            yield {**chunk(), "usage": _usage(found)}

    return await stream(
        request,
        lambda on_text: several(request, ask, wanted, on_text),
        lambda text: chunk(_choice(shape.piece(text), 0, None)),
        last,
        DONE,
    )


def _request(request: web.Request, body: Ask, house: House, door: str) -> CompletionRequest:
    prompts.no_messages(body.messages)
    if body.echo:
        raise BadRequest("`echo` is not done: an answer is what belongs at the cursor", "Leave the field out")
    if body.logprobs:
        raise BadRequest("`logprobs` are not told", "Leave the field out")
    within("n", body.n or 1, 0, 2**31)
    text = prompts.one_text(body.prompt, fallback=None if body.suffix is None else "")
    return prompts.asked(
        request,
        door,
        body,
        prompts.question(request, text, body.suffix),
        limits=options.limits(house, body.max_tokens, body.stop, lines=body.lines),
        sampling=options.sampling(
            house,
            body.temperature,
            body.top_p,
            body.top_k,
            body.random_seed if body.seed is None else body.seed,
        ),
        warm=body.max_tokens == 0,
    )


def _envelope(
    ask: CompletionRequest, house: House, kind: str, choices: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": ask.id,
        "object": kind,
        "created": int(time.time()),
        "model": llama.model_name(house.engine),
        "choices": choices,
    }


def _choice(text: dict[str, Any], index: int, done: Completion | None) -> dict[str, Any]:
    """`stop_reason` is vLLM's: the stop string; here also any other reason in our own words."""
    if done is None:
        return {"index": index, **text, "finish_reason": None}
    finish = "length" if done.stop in llama.CUT else "stop"
    return {"index": index, **text, "finish_reason": finish, "stop_reason": done.stop_word or done.stop}


def _usage(found: Sequence[Completion]) -> dict[str, Any]:
    prompt = prompt_tokens(found[0])
    written = sum(done.counters.generated for done in found)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": found[0].counters.reused},
    }
