"""The whole path of a request on one screen: plan, submit, stream, polish."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from daemon.context.anchor import Anchor
from daemon.context.layout import Layout
from daemon.engine.frames import Submit
from daemon.engine.protocol import Engine
from daemon.errors import Loading, NotSupported, Vanished
from daemon.nouns import Completion, CompletionRequest, Counters, Generation, Limits, Prompt
from daemon.observe.metrics import Metrics
from daemon.polish.emit import Emitter
from daemon.settings import Settings
from indexer.errors import VocabularyUnusable
from indexer.tokens import TiktokenTokenizer, count
from indexer.vocabulary import load

_log = logging.getLogger(__name__)
_IDLE_S = 0.4
"""Quiet time after an answer before idle work begins."""
_ABOVE = 12

OnText = Callable[[str], Awaitable[None]]
Record = Callable[[CompletionRequest, Prompt, Submit, Generation, Completion], None]


class Pipeline:
    """Answers requests with one engine. Used by one event loop."""

    def __init__(self, engine: Engine, settings: Settings, metrics: Metrics) -> None:
        self._engine = engine
        self._settings = settings
        self._metrics = metrics
        self._layout: tuple[str, Layout] | None = None
        self._jobs: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._idle: asyncio.Task[None] | None = None
        self.note = ""
        """What is degraded in planning, for status; empty when nothing is."""
        self.working: Callable[[], None] = lambda: None
        """Called when a completion begins and when it ends."""
        self.record: Record = lambda *_: None
        """Called with what every request went through, also when nobody waits for its answer any more."""

    async def complete(self, request: CompletionRequest, on_text: OnText | None = None) -> Completion:
        """Answer one request; cancelling the awaiting task cancels the engine's work.

        All texts given to `on_text` together are the completion's text.
        Raises Loading while no model is ready, NotSupported when the request fits no window.
        """
        layout = self._planner()
        self.working()
        self._stop_idle()
        prompt, anchor = layout.plan(request)
        job = self._job(request, prompt)
        self._supersede(request.client, job.id)
        self._metrics.count("anchor", prompt.reason.split(",")[0])
        emitter = Emitter(request, request.replaces)
        generation = Generation(text="", stop="engine", note="the engine gave no answer")
        try:
            async with contextlib.aclosing(self._engine.stream(job)) as events:
                async for event in events:
                    if isinstance(event, Generation):
                        generation = event
                    elif (text := emitter.feed(event)) and on_text is not None:
                        await on_text(text)
        except (asyncio.CancelledError, Vanished):
            cut = Generation(text="", stop="cancelled", counters=Counters(prompt=count(job.tokens)))
            self.record(request, prompt, job, cut, emitter.finish(cut, prompt.segments, prompt.reason))
            raise
        finally:
            self.working()
            if self._jobs.get(request.client) == job.id:
                del self._jobs[request.client]
        layout.learn(generation.counters.evaluated, generation.timings.prompt)
        completion = emitter.finish(generation, prompt.segments, prompt.reason)
        self.record(request, prompt, job, generation, completion)
        if emitter.tail and on_text is not None:
            await on_text(emitter.tail)
        self._plan_idle(layout, request, anchor)
        return completion

    def _job(self, request: CompletionRequest, prompt: Prompt) -> Submit:
        above = request.prefix[: len(request.prefix) - len(prompt.line)]
        return Submit(
            id=f"{request.id}.{next(self._numbers)}",
            tokens=prompt.tokens,
            must=prompt.must,
            line=prompt.line,
            suffix=request.suffix[:2000],
            above=tuple(above[-4000:].split("\n")[-_ABOVE:]),
            limits=request.limits,
            sampling=request.sampling,
            warm=request.warm,
            background=request.warm,
            cache=request.cache,
            margins=request.margins,
        )

    def _supersede(self, client: str, job_id: str) -> None:
        """The newest request of a client wins."""
        if (older := self._jobs.get(client)) is not None:
            self._engine.supersede(older)
        self._jobs[client] = job_id

    async def prepare(self) -> None:
        """Build what planning needs beside the loop, so that the first keystroke does not wait for it."""
        with contextlib.suppress(Loading, NotSupported):
            await asyncio.to_thread(self._planner)

    def _planner(self) -> Layout:
        profile = self._engine.profile
        path, note = self._engine.vocabulary
        if profile is None or not path:
            state = self._engine.state
            raise Loading(
                f"the engine is {state.phase}: {state.detail}".rstrip(": "), "Try again in a moment"
            )
        if self._layout is None or self._layout[0] != path:
            if note:
                raise NotSupported(f"this model's tokenizer is not supported: {note}", "Choose another model")
            try:
                tokenizer = TiktokenTokenizer(load(Path(path)))
            except VocabularyUnusable as error:
                raise NotSupported(
                    str(error), "Restart the daemon: the vocabulary is exported anew"
                ) from error
            self._layout = (path, Layout(tokenizer, profile, self._settings.context))
            self.note = "" if profile.model.fim.usable else "plain prefix: the model has no FIM tokens"
        return self._layout[1]

    def _plan_idle(self, layout: Layout, request: CompletionRequest, anchor: Anchor) -> None:
        """After a quiet moment, evaluate a better anchor in the background; the next request adopts it."""
        if self._settings.context.idle and not request.warm and not self._jobs:
            self._idle = asyncio.create_task(self._improve(layout, request, anchor), name="idle re-anchor")

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _improve(self, layout: Layout, request: CompletionRequest, anchor: Anchor) -> None:
        await asyncio.sleep(_IDLE_S)
        if (better := layout.idle(request, anchor)) is None:
            return
        prompt, wide = better
        job = Submit(
            id=f"idle.{next(self._numbers)}",
            tokens=prompt.tokens,
            warm=True,
            background=True,
            limits=Limits(),
        )
        with contextlib.suppress(Loading):
            async with contextlib.aclosing(self._engine.stream(job)) as events:
                async for event in events:
                    if isinstance(event, Generation) and event.stop == "warm":
                        layout.adopt(wide)

    async def close(self) -> None:
        """Stop idle work."""
        self._stop_idle()
