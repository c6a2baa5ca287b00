"""Ask the pipeline on behalf of a client: a dropped connection cancels, a stopping daemon says so."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from aiohttp import web

from daemon.doors.house import HOUSE, TRAFFIC, House, OnText, Traffic
from daemon.doors.rates import TooFast
from daemon.doors.wire import EVENTS, Events, Form, error_body, known
from daemon.errors import ForetypeError, Overloaded
from daemon.nouns import UNANSWERED, Completion, CompletionRequest, Range, StopReason

T = TypeVar("T")

MAX_TOKENS = 4096
MAX_MS = 600_000
MAX_CLIENT = 200


def new_id() -> str:
    """A request id nobody can guess."""
    return f"cmpl-{secrets.token_hex(8)}"


def shown(done: Completion) -> str:
    """The text of an answer; none where it came too late for its cursor."""
    return "" if done.stop == "superseded" else done.text


def prompt_tokens(done: Completion) -> int:
    """Tokens of the prompt; of a run that another request counts, by its parts."""
    return done.counters.prompt or sum(segment.tokens for segment in done.segments)


def client_key(request: web.Request, door: str, named: str | None) -> str:
    """Whose newest request wins: the name in the body, that in `x-client-id`, or the door and User-Agent."""
    name = named or request.headers.get("x-client-id")
    return (name or f"{door}:{request.headers.get('User-Agent', '')}")[:MAX_CLIENT]


async def answer(request: web.Request, ask: CompletionRequest, on_text: OnText | None = None) -> Completion:
    """Run the pipeline. Cancelled with the connection; ends with stop `cancelled` when the daemon stops.

    Raises Overloaded while too many wait for theirs already, or where this client asks too fast.
    """
    house, traffic = request.app[HOUSE], request.app[TRAFFIC]
    house.metrics.count("requests", ask.door)
    agent = request.headers.get("User-Agent", "")
    caller = house.metrics.callers.arrived(ask.door, ask.client, agent)
    try:
        with traffic.asking(ask.client, alternative=ask.alternative):
            done = await _answered(house, traffic, ask, on_text)
    except ForetypeError as error:
        caller.lost(error.code)
        if isinstance(error, Overloaded):
            full = "alternative" if ask.alternative else "full"
            house.metrics.count("refused", "rate" if isinstance(error, TooFast) else full)
        raise
    if not ask.alternative and done.stop not in UNANSWERED:
        traffic.rates.give_back(ask.client)
    caller.served(text=bool(done.text))
    return done


async def _answered(
    house: House, traffic: Traffic, ask: CompletionRequest, on_text: OnText | None
) -> Completion:
    started = time.perf_counter()
    house.feedback.asked(ask)
    pieces: list[str] = []

    async def pass_on(text: str) -> None:
        pieces.append(text)
        if on_text is not None:
            await on_text(text)

    work = asyncio.create_task(house.pipeline.complete(ask, pass_on if on_text else None))
    traffic.works.add(work)
    try:
        done = await work
    except asyncio.CancelledError:
        if not traffic.draining or _told_to_end():
            house.metrics.count("answers", "vanished")
            if pieces:  # who reads a stream as far as it wants, and hangs up, shows what it read
                house.feedback.answered(ask, _cut(ask, "".join(pieces), "word"))
            raise
        done = _cut(ask, "".join(pieces), "cancelled", "the daemon is stopping")
    finally:
        traffic.works.discard(work)
    # Behind the answer, and before anything that its client can send next.
    asyncio.get_running_loop().call_soon(house.feedback.answered, ask, done)
    house.metrics.answered(ask.door, done, (time.perf_counter() - started) * 1000)
    return done


def _told_to_end() -> bool:
    """Whether the cancellation is this task's own (client gone), not that of the work it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _cut(ask: CompletionRequest, text: str, stop: StopReason, note: str = "") -> Completion:
    cursor = len(ask.prefix)
    return Completion(id=ask.id, text=text, replace=Range(start=cursor, end=cursor), stop=stop, note=note)


async def streamed(
    request: web.Request,
    ask: CompletionRequest,
    piece: Callable[[str], Any],
    last: Callable[[Completion], Any],
    form: Form = EVENTS,
) -> web.StreamResponse:
    """Answer with events: `piece` of each text, then `last` of the completion, or an error in its place."""
    return await stream(
        request, lambda on_text: answer(request, ask, on_text), piece, lambda d: [last(d)], form
    )


async def stream(
    request: web.Request,
    work: Callable[[OnText], Awaitable[T]],
    piece: Callable[[str], Any],
    last: Callable[[T], Iterable[Any]],
    form: Form,
) -> web.StreamResponse:
    """Answer with events: `piece` of each text that `work` tells, then what `last` makes of its result, or an
    error in their place."""
    events = Events(request, form)

    async def on_text(text: str) -> None:
        await events.send(piece(text))

    try:
        final = list(last(await work(on_text)))
    except Exception as failure:
        if not events.started:
            raise
        final = [error_body(known(failure), request.path)]
    for event in final:
        await events.send(event)
    return await events.end()
