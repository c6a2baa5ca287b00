"""The whole path of a request on one screen.

name the file → narrow → wait for the next key? → plan → join a run or begin one → stream → polish → record →
idle work
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import PurePath

import msgspec

from daemon.context.planner import Planned, Planner
from daemon.documents.mirror import Mirror
from daemon.documents.opening import opening
from daemon.documents.recovery import Recoverer
from daemon.engine.frames import Submit
from daemon.engine.protocol import Engine
from daemon.errors import Loading, NotSupported, Vanished
from daemon.idle import Idle
from daemon.jobs import job, lane
from daemon.nouns import UNANSWERED, Completion, CompletionRequest, Generation, StopReason, Timings
from daemon.observe.metrics import Metrics
from daemon.pacing import Pacing
from daemon.planning import Planning
from daemon.polish.emit import Emitter
from daemon.power import Policy, Unused, fitted
from daemon.projects import Projects
from daemon.readers import Readers
from daemon.recall.memory import Known, Recall
from daemon.runs.coalescing import Runs
from daemon.runs.seats import Run, Seat, Turn
from daemon.settings import Settings
from daemon.switches import OFF, hushed

OnText = Callable[[str], Awaitable[None]]
Record = Callable[[Planned, Submit, Generation, Completion], None]
_SETTLE_S = 2.0


class Pipeline:
    """Answers requests with one engine. Used by one event loop."""

    def __init__(
        self, engine: Engine, settings: Settings, metrics: Metrics, projects: Projects | None = None
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._metrics = metrics
        self._projects = projects or Projects(settings)
        self.readers = Readers(settings.index)
        self.mirror = Mirror(self.readers)
        self.mirror.noticed = self.noticed
        self.mirror.left_out = lambda path: self._projects.of(path).off
        self._recoverer = Recoverer(self.mirror, self.readers)
        self.planning = Planning(engine, self.mirror, self.readers, settings.context)
        self._runs = Runs(engine, metrics, settings.complete.coalesce_ms, settings.engine.concurrency)
        self._runs.unowned = self._unowned
        self._idle = Idle(engine)
        self.recall = Recall(engine, self.readers, settings.recall, self._job)
        self.recall.similar.left_out = self.mirror.left_out
        self.recall.hushed = lambda planned: hushed(planned.around, planned.request)
        self.pacing = Pacing(settings.complete.debounce_ms)
        self.power = Policy(settings.power)
        self.unused = Unused(settings.power.unload_minutes)
        self.recall.prefetch.allowed = lambda: self.power.now.prefetch
        self.working: Callable[[], None] = lambda: None
        """Called when a completion begins and when it ends."""
        self.record: Record = lambda *_: None
        """Called with what every request went through, also when nobody waits for its answer any more, and
        with every run that no request counts."""
        self.unplanned: Callable[[CompletionRequest, Completion], None] = lambda *_: None
        """Called with every request that was over before anything was planned for it."""

    async def complete(self, request: CompletionRequest, on_text: OnText | None = None) -> Completion:
        """Answer one request; cancelling the awaiting task ends its part in the engine's work.

        All texts given to `on_text` together are the completion's text.
        Raises Loading while no model is ready, NotSupported when the request fits no window.
        """
        began = time.perf_counter()
        request, off = self._allowed(self._named(request))
        if off:
            self.recall.forget(request.path)
            return self._unplanned(request, "off", began, off)
        planner = self.planning.planner()
        if (known := self._remembered(planner, request, began)) is not None:
            return await self._known(known, on_text)
        with self._waiting(request, began):
            pace = await self.pacing.turn(request, self._engine.profile)
        if pace.late:
            return self._unplanned(request, "superseded", began)
        done = await self._answered(planner, request, on_text, began)
        pace.answered = done.stop != "superseded"
        return done

    async def _answered(
        self, planner: Planner, asked: CompletionRequest, on_text: OnText | None, began: float
    ) -> Completion:
        """By the engine, now."""
        with self._turn(asked) as turn:
            with self._waiting(asked, began):
                over = await self._runs.let_in(turn) if lane(asked) == "keystroke" else None
                if over is not None:
                    return self._unplanned(asked, over, began)
                planned = await self._planned(planner, asked)
            self._metrics.planned(planned.prompt)
            emitter = Emitter(planned.request, planned.request.replaces)
            job = self._job(turn.id, planned, follow=on_text is not None)
            if off := hushed(planned.around, planned.request):
                self._rest(planner, planned)
                return self._recorded(planned, job, Generation(text="", stop="off", note=off), emitter)
            with self._runs.seat(turn, planned, job) as seat:
                generation = await self._generated(seat, emitter, on_text)
        if not generation.counters.small:
            planner.layout.learn(generation.counters.evaluated, generation.timings.prompt)
        completion = self._completed(seat, generation, emitter)
        if emitter.tail and on_text is not None:
            await on_text(emitter.tail)
        if completion.stop not in UNANSWERED:  # a newer answer may be on the screen already
            self.mirror.shown(planned.request, completion.text)
            self.recall.keep(planner, asked, seat.planned, generation, completion)
        self._rest(planner, planned)
        return completion

    def _remembered(self, planner: Planner, request: CompletionRequest, began: float) -> Known | None:
        """An answer that needs no run; the client's older requests are over."""
        known = self.recall.find(planner, request, began)
        if known is not None:
            with self._turn(request):  # a request that needs a run takes its turn with it
                self.pacing.known(request, self._engine.profile)
        return known

    async def _known(self, known: Known, on_text: OnText | None) -> Completion:
        """An answer that needed no run, told and recorded as any other."""
        self._engine.wake()  # the next answer may not be known
        self.record(*known)
        if known.completion.text and on_text is not None:
            await on_text(known.completion.text)
        self.mirror.shown(known.planned.request, known.completion.text)
        if not self._runs.busy and self.power.now.warm:
            self._idle.again()
        return known.completion

    async def _generated(self, seat: Seat, emitter: Emitter, on_text: OnText | None) -> Generation:
        """What the run makes of the request; its text goes on as it comes."""
        generation = Generation(text="", stop="engine", note="the engine gave no answer")
        try:
            async with contextlib.aclosing(self._runs.events(seat)) as events:
                async for event in events:
                    if isinstance(event, Generation):
                        generation = event
                    elif (text := emitter.feed(event)) and on_text is not None:
                        await on_text(text)
        except (asyncio.CancelledError, Vanished) as error:
            note = error.message if isinstance(error, Vanished) else ""
            self._completed(seat, seat.cut("cancelled", note=note), emitter)
            raise
        return generation

    @contextlib.contextmanager
    def _waiting(self, request: CompletionRequest, began: float) -> Iterator[None]:
        """Nothing is planned yet, and whoever asked may leave."""
        try:
            yield
        except asyncio.CancelledError:
            self._unplanned(request, "cancelled", began)
            raise

    def _unplanned(
        self, request: CompletionRequest, stop: StopReason, began: float, note: str = ""
    ) -> Completion:
        """The completion, recorded, of a request that is over before anything was planned for it."""
        ms = (time.perf_counter() - began) * 1000.0
        over = Generation(text="", stop=stop, note=note, timings=Timings(queued=ms, total=ms))
        self.unplanned(request, completion := Emitter(request).finish(over))
        return completion

    def _completed(self, seat: Seat, generation: Generation, emitter: Emitter) -> Completion:
        """The completion, recorded: also when nobody waits for it any more."""
        return self._recorded(seat.planned, seat.job, generation, emitter)

    def _unowned(self, run: Run, generation: Generation) -> None:
        """A run's work in a row of its own, whose id is that of no request."""
        request = msgspec.structs.replace(run.planned.request, id=f"run-{run.job.id}")
        planned = dataclasses.replace(run.planned, request=request)
        said = msgspec.structs.replace(generation, note=generation.note or "nobody waited for it any more")
        self._recorded(planned, run.job, said, Emitter(request, request.replaces))
        self._metrics.worked(generation.counters)

    def _recorded(
        self, planned: Planned, job: Submit, generation: Generation, emitter: Emitter
    ) -> Completion:
        prompt = planned.prompt
        completion = msgspec.structs.replace(
            emitter.finish(generation, prompt.segments, prompt.reason),
            window=f"{planned.window.name}: {planned.window.reason}",
            epoch=planned.stable.epoch,
            language=planned.around.language,
            head=prompt.head,
            coalesced=generation.joined,
        )
        self.record(planned, job, generation, completion)
        return completion

    def _allowed(self, request: CompletionRequest) -> tuple[CompletionRequest, str]:
        """Within the limits of projects and of the battery; why nothing may be answered, or empty."""
        narrowing = self._projects.of(request.path)
        if narrowing.off:
            return request, narrowing.off
        request = fitted(narrowing.apply(request), self.power.now, self._settings.context)
        return request, OFF if request.limits.lines == "off" else ""

    def _named(self, request: CompletionRequest) -> CompletionRequest:
        """With the full path of the file that its text is found in, where the client sent none or the end of
        one: what is told so may be true of several files."""
        named = request.path
        if not self._settings.context.stable or (named and (PurePath(named).is_absolute() or ":" in named)):
            return request
        found = self._recoverer.find(request.client, request.prefix, request.suffix, request.warm)
        self._metrics.count("path", "recovered" if found.path else "unknown")
        return msgspec.structs.replace(request, path=found.path or named, found=found.why)

    async def _planned(self, planner: Planner, request: CompletionRequest) -> Planned:
        """The plan; who asks for context `now` waits until the text is parsed and it is chosen."""
        if request.context != "now":
            return planner.plan(request)
        planner.placed(request)  # from here on its text is parsed
        await asyncio.to_thread(self.mirror.settle, _SETTLE_S)
        alone = await asyncio.to_thread(planner.alone, planner.plan(request))
        return planner.plan(request, alone)

    def _job(self, job_id: str, planned: Planned, follow: bool = False) -> Submit:
        path = planned.request.path
        found = self.readers.find(path) if path and self._settings.engine.draft != "off" else None
        guesses = self.recall.similar.guesses(planned, self.planning.planner().layout)
        return job(job_id, planned, found.reader.path if found else None, guesses, follow)

    @contextlib.contextmanager
    def _turn(self, request: CompletionRequest) -> Iterator[Turn]:
        """A request's turn; idle work makes way for it."""
        self.working()
        self.unused.used()
        self._idle.stop()
        try:
            with self._runs.turn(request) as turn:
                yield turn
        finally:
            self.working()
            self.unused.used()

    def _rest(self, planner: Planner, planned: Planned) -> None:
        """Nobody waits any more: make the next answer here better."""
        if not self._settings.context.idle or self._runs.busy or not self.power.now.warm:
            return
        if planned.request.warm or planned.request.context == "now":
            self._idle.again()
        else:
            self._idle.after(planner, planned)

    def noticed(self, client: str, path: str) -> None:
        """A document was opened or focused: its context is evaluated before the first keystroke."""
        self.unused.used()
        self._engine.wake()
        if not self._settings.context.idle or self._runs.busy or not self.power.now.warm:
            return
        with contextlib.suppress(Loading, NotSupported):
            request = opening(self.mirror, client, path)
            if request is not None and not (allowed := self._allowed(request))[1]:
                planner = self.planning.planner()
                self._idle.after(planner, planner.plan(allowed[0]), opened=True)

    async def close(self) -> None:
        """Stop idle work and let documents and indexes go."""
        await self._idle.close()
        await self.recall.close()
        await self._runs.close()
        self._recoverer.shut()
        self.mirror.shut()
        self.readers.close()

    @property
    def busy(self) -> bool:
        """Whether anybody waits for an answer."""
        return self._runs.busy

    @property
    def resting(self) -> bool:
        """Whether no idle work waits or runs, and nothing is asked in advance."""
        return self._idle.resting and self.recall.prefetch.resting

    @property
    def idle_ms(self) -> float:
        """Milliseconds in which the engine worked while nobody asked."""
        return self._idle.spent_ms
