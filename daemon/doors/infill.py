"""llama-server's `/infill`, for llama.vim, llama.vscode and whatever else speaks it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from aiohttp import web

from daemon.documents import positions
from daemon.doors import llama
from daemon.doors.answers import MAX_MS, MAX_TOKENS, answer, client_key, new_id, streamed
from daemon.doors.house import HOUSE, House
from daemon.doors.native import MAX_STOPS
from daemon.doors.wire import read_json, reply, within
from daemon.errors import BadRequest
from daemon.nouns import Completion, CompletionRequest, Extra, Limits, Lines, Sampling

DOOR = "infill"
ALTERNATIVE_TEMPERATURE = 0.4
MAX_ALTERNATIVES = 8
LEAST_S = 0.05
"""Added to the time that further texts may take."""
Number = int | float


class Chunk(msgspec.Struct, frozen=True):
    """One of `input_extra`. Its `time` is a list from Vim and a number from VS Code: not looked at."""

    text: str | None = None
    filename: str | None = None


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Body of `POST /infill`. Unknown fields are ignored; `null` is as good as absent."""

    input_prefix: str | None = None
    input_suffix: str | None = None
    prompt: str | None = None
    """Belongs to the end of the prefix."""
    input_extra: tuple[Chunk, ...] | None = None
    n_predict: Number | None = None
    t_max_predict_ms: Number | None = None
    n_indent: Number | None = None
    n_cmpl: Number | None = None
    stop: tuple[str, ...] | str | None = None
    stream: bool | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Number | None = None
    seed: Number | None = None
    cache_prompt: bool | None = None
    response_fields: tuple[str, ...] | None = None
    client: str | None = None
    path: str | None = None
    """Ours: llama-server has no field for the current file."""
    language: str | None = None
    lines: Lines | None = None


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [("POST", "/infill", infill)]


async def infill(request: web.Request) -> web.StreamResponse:
    """One object, or an array of at most `n_cmpl`."""
    house = request.app[HOUSE]
    body = await read_json(request, Ask)
    ask = _request(body, house, client_key(request, DOOR, body.client))
    if body.stream:
        return await streamed(
            request,
            ask,
            piece=llama.piece,
            last=lambda done: _shown(done, body, ask, house, streaming=True),
        )
    wanted = min(int(body.n_cmpl or 1), MAX_ALTERNATIVES)
    if wanted <= 1:
        return reply(_shown(await answer(request, ask), body, ask, house))
    found = await _several(request, ask, wanted)
    return reply([_shown(done, body, ask, house, index=index) for index, done in enumerate(found)])


async def _several(request: web.Request, ask: CompletionRequest, wanted: int) -> list[Completion]:
    """The answer and further texts, all different; all are worked on at once, from one evaluated prompt.

    The first is what the person waits for: the others are less urgent, and may take as long again as it did,
    within the request's limit.
    """
    begun = time.monotonic()
    asks = [ask, *(_alternative(ask, seed) for seed in range(1, 1 if ask.warm else wanted))]
    tasks = [asyncio.create_task(answer(request, one)) for one in asks]
    try:
        first, *others = tasks
        done = await first
        if done.stop in llama.UNFINISHED or not others:
            return [done]
        taken = time.monotonic() - begun
        left = min((ask.limits.milliseconds or MAX_MS) / 1000 - taken, taken + LEAST_S)
        ready, _ = await asyncio.wait(others, timeout=max(left, 0.0))
        texts = {done.text}
        found = [done]
        for other in (task.result() for task in others if task in ready and task.exception() is None):
            if other.stop not in (*llama.UNFINISHED, "time") and other.text and other.text not in texts:
                texts.add(other.text)
                found.append(other)
        return found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _alternative(ask: CompletionRequest, seed: int) -> CompletionRequest:
    replace = msgspec.structs.replace
    return replace(
        ask,
        id=new_id(),
        alternative=True,
        limits=replace(ask.limits, deadline=ask.limits.milliseconds or MAX_MS),
        sampling=replace(ask.sampling, temperature=ALTERNATIVE_TEMPERATURE, seed=seed),
    )


def _request(body: Ask, house: House, client: str) -> CompletionRequest:
    place = positions.pair((body.input_prefix or "") + (body.prompt or ""), body.input_suffix or "")
    return CompletionRequest(
        id=new_id(),
        client=client,
        door=DOOR,
        prefix=place.prefix,
        suffix=place.suffix,
        path=body.path or None,
        language=body.language or None,
        newline=place.newline,
        extras=tuple(Extra(text=c.text, filename=c.filename or "") for c in body.input_extra or () if c.text),
        limits=_limits(body, house),
        sampling=_sampling(body, house),
        replaces=False,
        warm=body.n_predict == 0,
        cache=body.cache_prompt is not False,
    )


def _limits(body: Ask, house: House) -> Limits:
    """`t_max_predict_ms` counts only once a line is complete, so it never shortens the first one."""
    defaults = house.settings.complete
    tokens = defaults.max_tokens if body.n_predict is None or body.n_predict < 0 else body.n_predict
    after_line = body.t_max_predict_ms if (body.t_max_predict_ms or 0) > 0 else None
    indent = body.n_indent if (body.n_indent or 0) > 0 else None
    within("n_predict", tokens, 0, 2**31)
    within("t_max_predict_ms", after_line or 1, 0, 2**62)
    within("n_indent", indent or 1, 0, 2**31)
    within("n_cmpl", body.n_cmpl or 1, 0, 2**31)
    stops = (body.stop,) if isinstance(body.stop, str) else body.stop or ()
    if len(stops) > MAX_STOPS:
        raise BadRequest(f"`stop` holds more than {MAX_STOPS} strings")
    return Limits(
        lines=body.lines or defaults.lines,
        tokens=max(1, min(int(tokens), MAX_TOKENS)),
        milliseconds=min(max(int(after_line or 0), defaults.time_ms), MAX_MS),
        milliseconds_after_line=None if after_line is None else min(int(after_line), MAX_MS),
        stop=tuple(s for s in stops if s),
        indent=None if indent is None else int(indent),
    )


def _sampling(body: Ask, house: House) -> Sampling:
    defaults = house.settings.complete
    temperature = defaults.temperature if body.temperature is None else body.temperature
    top_p = defaults.top_p if body.top_p is None else body.top_p
    top_k = Sampling().top_k if body.top_k is None else body.top_k
    seed = body.seed or 0
    within("temperature", temperature, -(2**31), 2**31)
    within("top_p", top_p, -(2**31), 2**31)
    within("top_k", top_k, -(2**31), 2**31)
    within("seed", seed, -(2**63), 2**64)
    return Sampling(
        temperature=min(max(float(temperature), 0.0), 5.0),
        top_p=min(max(float(top_p), 0.0), 1.0),
        top_k=max(int(top_k), 0),
        seed=int(seed) & 0xFFFFFFFF if seed > 0 else 0,
    )


def _shown(
    done: Completion,
    body: Ask,
    ask: CompletionRequest,
    house: House,
    *,
    index: int = 0,
    streaming: bool = False,
) -> dict[str, Any]:
    prompt = (body.input_prefix or "") + (body.prompt or "")
    whole = llama.final(done, ask, llama.model_name(house.engine), prompt, index=index, streaming=streaming)
    return llama.flatten(whole, body.response_fields)
