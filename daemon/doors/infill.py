"""llama-server's `/infill`, for llama.vim, llama.vscode and whatever else speaks it."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from daemon.documents import positions
from daemon.doors import llama, options, prompts
from daemon.doors.answers import answer, client_key, new_id, streamed
from daemon.doors.house import HOUSE, House
from daemon.doors.options import Number
from daemon.doors.several import several
from daemon.doors.wire import read_json, reply, within
from daemon.nouns import Completion, CompletionRequest, Extra, Limits

DOOR = "infill"


class Chunk(msgspec.Struct, frozen=True):
    """One of `input_extra`. Its `time` is a list from Vim and a number from VS Code: not looked at."""

    text: str | None = None
    filename: str | None = None


class Options(prompts.Ours, frozen=True, kw_only=True):
    """What `/infill` and `/completion` share. Unknown fields are ignored; `null` is as good as absent."""

    n_predict: Number | None = None
    t_max_predict_ms: Number | None = None
    n_indent: Number | None = None
    n_cmpl: Number | None = None
    stop: options.Stops = None
    stream: bool | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Number | None = None
    seed: Number | None = None
    cache_prompt: bool | None = None
    response_fields: tuple[str, ...] | None = None


class Ask(Options, frozen=True, kw_only=True):
    """Body of `POST /infill`."""

    input_prefix: str | None = None
    input_suffix: str | None = None
    prompt: str | None = None
    """Belongs to the end of the prefix."""
    input_extra: tuple[Chunk, ...] | None = None


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [("POST", "/infill", infill)]


async def infill(request: web.Request) -> web.StreamResponse:
    """One object, or an array of at most `n_cmpl`; or events."""
    house = request.app[HOUSE]
    body = await read_json(request, Ask)
    prompt = (body.input_prefix or "") + (body.prompt or "")
    place = positions.pair(prompt, body.input_suffix or "")
    ask = CompletionRequest(
        id=new_id(),
        client=client_key(request, DOOR, body.client),
        door=DOOR,
        prefix=place.prefix,
        suffix=place.suffix,
        path=body.path or None,
        language=body.language or None,
        newline=place.newline,
        extras=tuple(Extra(text=c.text, filename=c.filename or "") for c in body.input_extra or () if c.text),
        limits=limits(body, house),
        sampling=options.sampling(house, body.temperature, body.top_p, body.top_k, body.seed),
        replaces=False,
        warm=body.n_predict == 0,
        context="none" if prompts.context_wish(request) == "off" else "auto",
        cache=body.cache_prompt is not False,
    )
    return await answered(request, body, ask, prompt)


async def answered(
    request: web.Request, body: Options, ask: CompletionRequest, prompt: str
) -> web.StreamResponse:
    """The reply of llama-server to `ask`, in the way that `body` wants it; `prompt` is what it repeats."""

    def shown(done: Completion, index: int = 0, streaming: bool = False) -> dict[str, Any]:
        model = llama.model_name(request.app[HOUSE].engine)
        whole = llama.final(done, ask, model, prompt, index=index, streaming=streaming)
        return llama.flatten(whole, body.response_fields)

    if body.stream:
        return await streamed(request, ask, llama.piece, lambda done: shown(done, streaming=True))
    wanted = int(body.n_cmpl or 1)
    if wanted <= 1:
        return reply(shown(await answer(request, ask)))
    return reply([shown(done, index) for index, done in enumerate(await several(request, ask, wanted))])


def limits(body: Options, house: House) -> Limits:
    """See options.limits: its `after_line` is `t_max_predict_ms`."""
    after_line = body.t_max_predict_ms if (body.t_max_predict_ms or 0) > 0 else None
    indent = body.n_indent if (body.n_indent or 0) > 0 else None
    within("t_max_predict_ms", after_line or 1, 0, 2**62)
    within("n_indent", indent or 1, 0, 2**31)
    within("n_cmpl", body.n_cmpl or 1, 0, 2**31)
    return options.limits(
        house,
        body.n_predict,
        body.stop,
        field="n_predict",
        lines=body.lines,
        after_line=after_line,
        indent=indent,
    )
