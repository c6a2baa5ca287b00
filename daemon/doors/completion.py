"""llama-server's `/completion`: a prompt and nothing else, mostly one that the client rendered itself."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from daemon.doors import infill, options, prompts
from daemon.doors.house import HOUSE
from daemon.doors.wire import read_json

DOOR = "completion"


class Ask(infill.Options, frozen=True, kw_only=True):
    """Body of `POST /completion`. Unknown fields are ignored; `null` is as good as absent."""

    prompt: str | list[Any] | None = None
    messages: Any = None


def routes() -> list[tuple[str, str, Any]]:
    """Method, path, handler."""
    return [
        ("POST", "/completion", completion),
        ("POST", "/completions", completion),
        ("POST", "/chat/completions", prompts.chat),
    ]


async def completion(request: web.Request) -> web.StreamResponse:
    """One object, or an array of at most `n_cmpl`; or events."""
    house = request.app[HOUSE]
    body = await read_json(request, Ask)
    prompts.no_messages(body.messages)
    text = prompts.one_text(body.prompt)
    ask = prompts.asked(
        request,
        DOOR,
        body,
        prompts.question(request, text, None),
        limits=infill.limits(body, house),
        sampling=options.sampling(house, body.temperature, body.top_p, body.top_k, body.seed),
        warm=body.n_predict == 0,
        cache=body.cache_prompt is not False,
    )
    return await infill.answered(request, body, ask, text)
