"""The whole path of a request on one screen.

name the file → narrow → plan → join a run or begin one → stream → polish → record → idle work
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path, PurePath

import msgspec

from daemon.context.layout import Layout
from daemon.context.planner import Planned, Planner
from daemon.documents.mirror import DENIED, Mirror
from daemon.documents.opening import opening
from daemon.documents.recovery import Recoverer
from daemon.engine.frames import Lane, Submit
from daemon.engine.protocol import Engine
from daemon.errors import Loading, NotSupported, Vanished
from daemon.idle import Idle
from daemon.nouns import Completion, CompletionRequest, Generation
from daemon.observe.metrics import Metrics
from daemon.polish.emit import Emitter
from daemon.projects import Projects
from daemon.readers import Readers
from daemon.runs.coalescing import Runs
from daemon.runs.seats import Run, Seat, Turn
from daemon.settings import Settings
from indexer.errors import VocabularyUnusable
from indexer.grams import FOLDER
from indexer.tokens import TiktokenTokenizer, Tokenizer
from indexer.vocabulary import load

_ABOVE = 12
_LONG = 512
"""Tokens. Whoever asks for more does not wait at the keyboard."""

OnText = Callable[[str], Awaitable[None]]
Record = Callable[[Planned, Submit, Generation, Completion], None]


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
        self._planning: tuple[str, Planner] | None = None
        self._runs = Runs(engine, metrics, settings.complete.coalesce_ms)
        self._runs.unowned = self._unowned
        self._idle = Idle(engine)
        self.note = ""
        """What is degraded in planning, for status; empty when nothing is."""
        self.working: Callable[[], None] = lambda: None
        """Called when a completion begins and when it ends."""
        self.record: Record = lambda *_: None
        """Called with what every request went through, also when nobody waits for its answer any more, and
        with every run that no request counts."""

    async def complete(self, request: CompletionRequest, on_text: OnText | None = None) -> Completion:
        """Answer one request; cancelling the awaiting task ends its part in the engine's work.

        All texts given to `on_text` together are the completion's text.
        Raises Loading while no model is ready, NotSupported when the request fits no window.
        """
        request = self._named(request)
        narrowing = self._projects.of(request.path)
        if narrowing.off:
            return Emitter(request).finish(Generation(text="", stop="off", note=narrowing.off))
        planner = self._planner()
        with self._turn(request) as turn:
            planned = await self._planned(planner, narrowing.apply(request))
            request = planned.request
            self._metrics.count("anchor", planned.prompt.reason.split(",")[0])
            for kind in planned.prompt.redacted:
                self._metrics.count("redacted", kind)
            emitter = Emitter(request, request.replaces)
            with self._runs.seat(turn, planned, self._job(turn.id, planned)) as seat:
                generation = await self._generated(seat, emitter, on_text)
        if not generation.counters.small:
            planner.layout.learn(generation.counters.evaluated, generation.timings.prompt)
        completion = self._completed(seat, generation, emitter)
        if emitter.tail and on_text is not None:
            await on_text(emitter.tail)
        self.mirror.shown(request, completion.text)
        self._rest(planner, planned)
        return completion

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
        """The plan; who asks for context `now` waits until it is chosen."""
        planned = planner.plan(request)
        if request.context == "now":
            alone = await asyncio.to_thread(planner.alone, planned)
            planned = planner.plan(request, alone)
        return planned

    def _job(self, job_id: str, planned: Planned) -> Submit:
        request, prompt = planned.request, planned.prompt
        above = request.prefix[: len(request.prefix) - len(prompt.line)]
        return Submit(
            id=job_id,
            tokens=prompt.tokens,
            must=prompt.must,
            line=prompt.line,
            suffix=request.suffix[:2000],
            above=tuple(above[-4000:].split("\n")[-_ABOVE:]),
            limits=request.limits,
            sampling=request.sampling,
            warm=request.warm,
            lane=_lane(request),
            client=request.client,
            cache=request.cache,
            margins=request.margins,
            ngrams=self._ngrams(request.path),
            keep=planned.document.why != DENIED,
            simple=planned.window.name == "simple",
        )

    def _ngrams(self, path: str | None) -> str:
        """The folder of the n-grams of the repository that holds a file."""
        found = self.readers.find(path) if path and self._settings.engine.draft != "off" else None
        return str(found.reader.path.parent / FOLDER) if found else ""

    @contextlib.contextmanager
    def _turn(self, request: CompletionRequest) -> Iterator[Turn]:
        """A request's turn; idle work makes way for it."""
        self.working()
        self._idle.stop()
        try:
            with self._runs.turn(request) as turn:
                yield turn
        finally:
            self.working()

    async def prepare(self) -> None:
        """Build what planning needs beside the loop, so that the first keystroke does not wait for it."""
        with contextlib.suppress(Loading, NotSupported):
            await asyncio.to_thread(self._planner)

    def _planner(self) -> Planner:
        profile = self._engine.profile
        path, note = self._engine.vocabulary
        if profile is None or not path:
            state = self._engine.state
            raise Loading(
                f"the engine is {state.phase}: {state.detail}".rstrip(": "), "Try again in a moment"
            )
        if self._planning is None or self._planning[0] != path:
            self.note = "" if profile.model.fim.usable else "plain prefix: the model has no FIM tokens"
            tokenizer = _tokenizer(Path(path), note, Path(profile.model.path))
            layout = Layout(tokenizer, profile, self._settings.context)
            self._planning = (path, Planner(layout, self.mirror, self.readers, self._settings.context))
        return self._planning[1]

    def _rest(self, planner: Planner, planned: Planned) -> None:
        """Nobody waits any more: make the next answer here better."""
        if not self._settings.context.idle or self._runs.busy:
            return
        if planned.request.warm or planned.request.context == "now":
            self._idle.again()
        else:
            self._idle.after(planner, planned)

    def noticed(self, client: str, path: str) -> None:
        """A document was opened or focused: its context is evaluated before the first keystroke."""
        if not self._settings.context.idle or self._runs.busy:
            return
        with contextlib.suppress(Loading, NotSupported):
            request = opening(self.mirror, client, path)
            if request is not None and not (narrowing := self._projects.of(path)).off:
                planner = self._planner()
                self._idle.after(planner, planner.plan(narrowing.apply(request)), opened=True)

    async def close(self) -> None:
        """Stop idle work and let documents and indexes go."""
        await self._idle.close()
        await self._runs.close()
        self._recoverer.shut()
        self.mirror.shut()
        self.readers.close()

    @property
    def resting(self) -> bool:
        """Whether no idle work waits or runs."""
        return self._idle.resting

    @property
    def idle_ms(self) -> float:
        """Milliseconds in which the engine worked while nobody asked."""
        return self._idle.spent_ms


def _lane(request: CompletionRequest) -> Lane:
    if request.warm:
        return "warm"
    if request.limits.tokens > _LONG:
        return "long"
    return "alternative" if request.alternative else "keystroke"


def _tokenizer(exported: Path, note: str, model: Path) -> Tokenizer:
    """From the exported vocabulary; from the model's own file where only llama.cpp can split its text."""
    try:
        vocabulary = load(exported)
        if not note:
            return TiktokenTokenizer(vocabulary)
    except VocabularyUnusable as error:
        raise NotSupported(str(error), "Restart the daemon: the vocabulary is exported anew") from error
    from daemon.engine.words import Words  # noqa: PLC0415 - llama.cpp in this process only where it must be

    return Words(model, vocabulary.control)
