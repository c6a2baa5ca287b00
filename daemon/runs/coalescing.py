"""Requests of one document, moments apart and at nearby cursors, share one run of the engine.

    request → Turn → plan → Seat at a run whose text says what was typed since, or at a run of its own

Who asks again after typing on waits for the run's text only as long as it may still say what was typed, and
gets a run of its own as soon as it says something else: its own answer is then late by a token or two, for
the prompt is evaluated already. A run ends when its last seat is left; no leaving touches the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

from daemon.context.planner import Planned
from daemon.engine.frames import Submit
from daemon.engine.protocol import Engine
from daemon.nouns import CompletionRequest, Counters, Generation, StopReason
from daemon.observe.metrics import Metrics
from daemon.runs.gate import Gate
from daemon.runs.seats import Run, Seat, Turn, question

_SUPERSEDED = Generation(text="", stop="superseded")
_LATE_S = 0.1
"""The engine ends a request at its deadline, after its slice; so much later it is ended here."""
_TOLD_S = 0.5
"""How long a superseded request waits for the engine to say what it did: one that is busy with others may not
look at it for long, and the queue must not hold what nobody wants."""
_AHEAD = 2
"""So many times as many are planned: whenever the engine has answered one, it finds the next one ready."""


class Runs:
    """All runs of one engine, for one event loop. The newest request of a client wins."""

    def __init__(self, engine: Engine, metrics: Metrics, within_ms: int, slots: int) -> None:
        """Requests `within_ms` of each other may share a run; 0: none do. `slots`: keystrokes that the
        engine answers at once."""
        self._engine = engine
        self._metrics = metrics
        self._within = within_ms / 1000.0
        self._gate = Gate(_AHEAD * slots)
        self._runs: list[Run] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: dict[str, list[Turn]] = {}
        self._numbers = itertools.count(1)
        self.unowned: Callable[[Run, Generation], None] = lambda *_: None
        """Called with a run's work when nobody who waited for the run is left to count it."""

    @property
    def busy(self) -> bool:
        """Whether anybody waits for an answer."""
        return bool(self._turns)

    @contextlib.contextmanager
    def turn(self, asked: CompletionRequest) -> Iterator[Turn]:
        """The turn of a request. From now on, before it is planned, the client's older ones are over, unless
        they wait for a run that the new one may share or it is an alternative to one of them."""
        now, deadline = asyncio.get_running_loop().time(), asked.limits.deadline
        turn = Turn(f"{asked.id}.{next(self._numbers)}", asked, question(asked), now)
        turn.until = None if deadline is None else now + deadline / 1000.0 + _LATE_S
        turn.hope = self._near(turn)
        if turn.hope is not None:
            self._engine.follow(turn.hope.job.id)
        turns = self._turns.setdefault(asked.client, [])
        if not asked.alternative:
            self._end(older for older in turns if turn.hope is None or older.at is not turn.hope)
        turns.append(turn)
        try:
            yield turn
        finally:
            self._gate.leave(turn)
            turns.remove(turn)
            if not turns:
                del self._turns[asked.client]

    async def let_in(self, turn: Turn) -> StopReason | None:
        """Wait until a turn is to be planned, one that has no run to share; else why it is over."""
        if turn.hope is not None or await self._gate.let_in(turn):
            return None
        stop: StopReason = "superseded" if turn.over else "time"
        self._metrics.count("unplanned", stop)
        return stop

    @contextlib.contextmanager
    def seat(self, turn: Turn, planned: Planned, job: Submit) -> Iterator[Seat]:
        """A seat at a run that may say what was typed, or else at one of its own for `job`."""
        seat = turn.seat = Seat(turn, planned, job)
        if not self._share(seat):
            self._begin(seat)
        try:
            yield seat
        finally:
            self._leave(seat)

    async def events(self, seat: Seat) -> AsyncGenerator[str | Generation, None]:
        """As Engine.stream: the answer to the seat's request, which moves to a run of its own when the one
        it waited for says something else than was typed."""
        if not await seat.agreed():
            self._metrics.count("coalesced", "parted")
            if (work := seat.cut("cancelled").counters) != Counters():
                whole = seat.run.generation or Generation(text=seat.run.text, stop="cancelled", counters=work)
                self.unowned(seat.run, whole)
            self._leave(seat)
            self._begin(seat)
        async with contextlib.aclosing(seat.events()) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """End all runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _near(self, turn: Turn) -> Run | None:
        """The newest run whose text says what was typed since, or may: its last request came moments ago."""
        asked = turn.asked
        measured = asked.margins or not asked.cache or asked.anchor_lines is not None
        if not self._within or asked.warm or asked.context == "now" or measured:
            return None
        for run in reversed(self._runs):
            typed = run.typed(turn) if run.generation is None and run.lasts(turn.begun) else None
            if typed is not None:
                found = run.says(typed)
                if found or (found is None and turn.begun - run.heard <= self._within):
                    run.heard = turn.begun
                    return run
        return None

    def _share(self, seat: Seat) -> bool:
        turn, run = seat.turn, seat.turn.hope
        if run is None or turn.over or (typed := run.typed(turn)) is None:
            return False
        its, own = run.planned.request.limits, seat.own[0].request.limits
        if its.lines != own.lines or its.tokens < own.tokens:
            return False  # the cursor is of another class by now: another end is looked for, or a later one
        if run.job.closes and turn.asked.replaces:
            return False  # it ends where this client may want more
        self._metrics.count("coalesced", "same" if not typed else "said" if run.says(typed) else "awaited")
        seat.sit(run, typed)
        return True

    def _begin(self, seat: Seat) -> None:
        """A run of its own. The client's older requests are over now; so is this one, if a newer one came."""
        turn, turns = seat.turn, self._turns[seat.turn.asked.client]
        older, newer = turns[: turns.index(turn)], turns[turns.index(turn) + 1 :]
        run = Run(turn, *seat.own, heard=turn.begun)
        seat.sit(run)
        if turn.over or not all(other.asked.alternative for other in newer):
            run.ending = True
            run.take(_SUPERSEDED)
            return
        if not turn.asked.alternative:
            self._end(older)
        self._metrics.count("runs")
        self._runs.append(run)
        run.task = asyncio.create_task(self._work(run), name="run")
        self._tasks.add(run.task)
        run.task.add_done_callback(lambda task: self._ended(run, task))

    async def _work(self, run: Run) -> None:
        """Take what the engine says, at once, whoever reads slowly behind."""
        if run.ending:  # before the engine heard of it
            run.take(_SUPERSEDED)
            return
        try:
            async with contextlib.aclosing(self._engine.stream(run.job)) as events:
                async for event in events:
                    run.take(event)
            if run.generation is None:
                run.take(Generation(text="", stop="engine", note="the engine gave no answer"))
        except Exception as failure:  # for everybody who waits here
            run.failure = failure

    def _ended(self, run: Run, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._runs.remove(run)
        run.wake()

    def _leave(self, seat: Seat) -> None:
        run = seat.run
        run.seats.remove(seat)
        if not run.seats and run.task is not None and run.generation is None:
            run.ending = True
            run.task.cancel()

    def _end(self, turns: Iterable[Turn]) -> None:
        """These are over. A run ends with the last of its seats, and its work is told to the last of them."""
        for turn in turns:
            turn.over = True
            self._gate.leave(turn)
            if turn.seat is None:
                continue
            run = turn.seat.run
            if run.seats and not run.ending and all(seat.over for seat in run.seats):
                run.ending = True
                self._engine.supersede(run.job.id)
                told = asyncio.get_running_loop().time() + _TOLD_S
                for seat in run.seats:
                    seat.turn.until = told if seat.turn.until is None else min(told, seat.turn.until)
            run.wake()
