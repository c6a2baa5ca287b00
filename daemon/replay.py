"""A ledger row from what one request went through, and the way back: the same tokens evaluated anew."""

from __future__ import annotations

import contextlib
import time
from itertools import takewhile

import msgspec

from daemon.context.planner import Planned
from daemon.documents.mirror import DENIED
from daemon.engine.frames import Submit
from daemon.engine.protocol import Engine
from daemon.errors import BadRequest, EngineFailed, Loading, NotSupported
from daemon.machine import EngineProfile
from daemon.nouns import Completion, CompletionRequest, Counters, Generation, Noun, StopReason, Timings
from daemon.observe.entries import Content, Entry
from indexer.tokens import to_ids


class Replay(Noun, frozen=True):
    """Whether a fresh evaluation gives the recorded answer. `recorded`, `replayed`: text before polish."""

    id: str
    same: bool
    why: str
    recorded: str
    replayed: str
    recorded_stop: StopReason
    replayed_stop: StopReason
    at: int
    """Characters in which both agree from the start."""
    token: int
    """Generated tokens in which both agree; -1 where the ids are not known."""
    margin: float | None = None
    """Best logit minus second best where they part: near 0 either choice was as good."""
    counters: Counters = Counters()
    timings: Timings = Timings()


def entry(
    planned: Planned,
    job: Submit,
    generation: Generation,
    completion: Completion,
    *,
    profile: EngineProfile,
    build: str,
) -> Entry:
    """The row of one request."""
    request, prompt, stable = planned.request, planned.prompt, planned.stable
    return Entry(
        id=request.id,
        when=time.time(),
        client=request.client,
        door=request.door,
        path=planned.document.path,
        language=planned.around.language,
        model=profile.model.name,
        sha256=profile.model.sha256,
        build=build,
        fim=profile.model.fim,
        bos=profile.model.bos,
        found=request.found,
        window=planned.window,
        anchor=prompt.reason,
        epoch=stable.epoch,
        stable=stable.reason,
        lost=stable.lost,
        segments=prompt.segments,
        counters=generation.counters,
        timings=generation.timings,
        sampling=job.sampling,
        warm=job.warm,
        stop=completion.stop, note=completion.note, trims=completion.trims,
        coalesced=completion.coalesced, recall=completion.recall,
        content=None if planned.document.why == DENIED else _content(job, generation, completion),
    )  # fmt: skip


def unplanned(
    request: CompletionRequest, completion: Completion, *, profile: EngineProfile | None, build: str
) -> Entry:
    """The row of a request that was over before anything was planned for it: it has no prompt, and no text
    is kept. `profile`: None while no model is loaded."""
    model = profile.model if profile is not None else None
    return Entry(
        id=request.id,
        when=time.time(),
        client=request.client,
        door=request.door,
        path=request.path or "",
        language=request.language or "",
        model=model.name if model else "",
        sha256=model.sha256 if model else "",
        build=build,
        found=request.found,
        timings=completion.timings,
        warm=request.warm,
        stop=completion.stop,
        note=completion.note or "nothing was planned for it",
    )


def _content(job: Submit, generation: Generation, completion: Completion) -> Content:
    return Content(
        tokens=job.tokens,
        must=job.must,
        line=job.line,
        suffix=job.suffix,
        above=job.above,
        closes=job.closes,
        limits=job.limits,
        text=generation.text,
        generated=generation.tokens,
        shown=completion.text,
        stop_word=generation.stop_word,
    )


async def replay(engine: Engine, entry: Entry) -> Replay:
    """Evaluate the row's prompt again, all of it, and compare. Cancelling the task stops the engine.

    Time limits do not apply: what a busy machine did not get to say is no difference.
    Raises BadRequest when there is nothing to compare, NotSupported for another model, Loading, EngineFailed.
    """
    content = _comparable(entry)
    profile = engine.profile
    if profile is None:
        raise Loading("Loading model")
    if profile.model.sha256 != entry.sha256:
        raise NotSupported(
            f"{entry.model} answered this request, and {profile.model.name} is loaded now",
            "`foretype restart --model NAME` loads another",
        )
    generation = Generation(text="", stop="engine", note="the engine gave no answer")
    async with contextlib.aclosing(engine.stream(_job(entry, content))) as events:
        async for event in events:
            if isinstance(event, Generation):
                generation = event
    if generation.stop == "engine":
        raise EngineFailed(f"the engine failed: {generation.note}", "`foretype status`")
    return _verdict(entry, content, generation)


def _comparable(entry: Entry) -> Content:
    if (content := entry.content) is None:
        raise BadRequest("the prompt is no longer kept", "ledger.keep_text_minutes sets how long it is")
    if entry.warm:
        raise BadRequest("the request only warmed the cache: there is no answer to compare")
    if entry.recall:
        raise BadRequest("the answer was known already: nothing was evaluated for it")
    if entry.counters.small:
        raise BadRequest(
            f"{entry.counters.small} answered alone (engine.route_simple): only the main model replays"
        )
    if entry.cut and not content.text:
        raise BadRequest(f"nothing was generated before the request ended ({entry.stop})")
    return content


def _job(entry: Entry, content: Content) -> Submit:
    return Submit(
        id=f"replay.{entry.id}.{time.monotonic_ns()}",
        tokens=content.tokens,
        must=content.must,
        line=content.line,
        suffix=content.suffix,
        above=content.above,
        closes=content.closes,
        limits=msgspec.structs.replace(
            content.limits, milliseconds=None, milliseconds_after_line=None, deadline=None
        ),
        sampling=entry.sampling,
        lane="long",
        cache=False,
        margins=True,
    )


def _verdict(entry: Entry, content: Content, again: Generation) -> Replay:
    recorded, replayed = content.text, again.text
    then, now = to_ids(content.generated), to_ids(again.tokens)
    at, token = _agree(recorded, replayed), _agree(then, now)
    cut = entry.cut
    if cut:
        same = at == len(recorded)
        why = f"as far as it went: the recorded one was ended early ({entry.stop})"
    else:
        same = recorded == replayed and entry.stop == again.stop
        why = "" if same else f"they part after {at} characters"
        if recorded == replayed and not same:
            why = f"the text is the same, the stop is not: {entry.stop}, now {again.stop}"
    known = bool(then and now)
    parted = known and not same and token < len(again.margins)
    return Replay(
        id=entry.id,
        same=same,
        why=why if same or not cut else f"they part after {at} characters",
        recorded=recorded,
        replayed=replayed,
        recorded_stop=entry.stop,
        replayed_stop=again.stop,
        at=at,
        token=token if known else -1,
        margin=again.margins[token] if parted else None,
        counters=again.counters,
        timings=again.timings,
    )


def _agree(one: str | list[int], other: str | list[int]) -> int:
    """How many items are equal from the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
