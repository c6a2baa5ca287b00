"""A request's turn, the run of the engine that answers it, and its seat there.

The engine works for the run; each seat reads the run's one text from where its own cursor stands. Nobody
waits for a slow reader: what is kept for all seats together is that text.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import msgspec

from daemon.context.planner import Planned
from daemon.engine.frames import Submit
from daemon.nouns import CompletionRequest, Counters, Generation, StopReason, Timings
from indexer.tokens import count

_OWN_ENDS: tuple[StopReason, ...] = ("eos", "word", "line", "dedent", "overlap", "closed", "repeat")
"""Ends that the text itself brought: nothing would follow it at a cursor further on either."""
_SPENT: tuple[StopReason, ...] = ("time", "limit")
"""Ends that the limits of whose run it is brought."""


def question(asked: CompletionRequest) -> CompletionRequest:
    """A request without what may differ between those that share a run: who asks, how far the person has
    typed, how the answer is shown, and what is known of a file that has a name anyway."""
    language = None if asked.path else asked.language
    return msgspec.structs.replace(
        asked,
        id="",
        client="",
        door="",
        prefix="",
        found="",
        newline="\n",
        replaces=True,
        manual=False,
        whole=False,
        language=language,
    )


@dataclass(eq=False)
class Turn:
    """One request of a client from its arrival to its answer. Times in seconds of the loop."""

    id: str
    """Of its job, should it get one."""
    asked: CompletionRequest
    question: CompletionRequest
    begun: float
    until: float | None = None
    """After this nobody waits any more."""
    hope: Run | None = None
    """The run that says what was typed since it began, or may yet say it."""
    over: bool = False
    """A newer request of the client took over."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it waits at the gate no longer."""
    waited_ms: float = 0.0
    """For so long it did."""
    seat: Seat | None = None

    @property
    def at(self) -> Run | None:
        """The run it waits for, if it is known already."""
        return self.seat.run if self.seat is not None else self.hope


@dataclass(eq=False)
class Run:
    """One job of the engine, as it was planned, and those who wait for its text."""

    turn: Turn
    """Whose job it is."""
    planned: Planned
    job: Submit
    heard: float
    """When the newest of its requests came."""
    text: str = ""
    spoke: float | None = None
    """When its first text came: from about then on its time counts."""
    generation: Generation | None = None
    failure: Exception | None = None
    ending: bool = False
    """Nobody wants more, and the engine knows."""
    seats: list[Seat] = field(default_factory=list)
    carrier: Seat | None = None
    """Whose row counts the work: the first seat that is still there at the end."""
    task: asyncio.Task[None] | None = None

    def typed(self, turn: Turn) -> str | None:
        """What was typed between this run's request and that of `turn`; None where more is different."""
        mine, other = self.turn.asked, turn.asked
        if self.ending or not other.prefix.startswith(mine.prefix):
            return None
        if other.path is None and other.client != mine.client:
            return None  # equal texts without a name may be two documents
        typed = other.prefix[len(mine.prefix) :]
        return None if "\n" in typed or turn.question != self.turn.question else typed

    def lasts(self, now: float) -> bool:
        """Whether at least half of its time is left for those who would share it."""
        limits = self.turn.asked.limits
        spent = ((limits.deadline, self.turn.begun), (limits.milliseconds, self.spoke))
        return all(most is None or since is None or (now - since) * 2000.0 <= most for most, since in spent)

    def says(self, typed: str) -> bool | None:
        """Whether the text begins with what was typed; None while that is open."""
        ended = self.generation
        if self.text.startswith(typed):
            more = len(self.text) > len(typed)
            return not typed or more or ended is None or ended.stop in _OWN_ENDS
        going = ended is None and self.failure is None
        return None if going and typed.startswith(self.text) else False

    def take(self, event: str | Generation) -> None:
        """More text, or the end."""
        if isinstance(event, Generation):
            self.generation = event
            self.carrier = next(iter(self.seats), None)
        else:
            self.spoke = self.spoke or asyncio.get_running_loop().time()
            self.text += event
        self.wake()

    def wake(self) -> None:
        """Something has changed for those who wait."""
        for seat in self.seats:
            seat.woken.set()


class Seat:
    """One request's place at a run. `planned` and `job` say what is evaluated for its answer."""

    def __init__(self, turn: Turn, planned: Planned, job: Submit) -> None:
        self.turn = turn
        self.planned, self.job = self.own = planned, job
        self.woken = asyncio.Event()
        self._typed = self._joined = ""
        self._first = 0.0

    def sit(self, run: Run, typed: str | None = None) -> None:
        """Wait for `run`: for what it says behind `typed`, or for all of a run of its own."""
        self.run = run
        self.planned, self.job = self.own
        self._typed, self._joined = typed or "", ""
        if typed is not None:
            self._joined = run.turn.asked.id
            ran = run.planned
            self.planned = dataclasses.replace(
                self.planned, prompt=ran.prompt, stable=ran.stable, anchor=ran.anchor
            )
            owed = run.job.must + typed.encode()  # as a half-typed word is: so the row can be replayed
            self.job = msgspec.structs.replace(run.job, id=self.job.id, must=owed, line=self.job.line)
        run.seats.append(self)

    @property
    def over(self) -> StopReason | None:
        """Why this request waits no longer for its run."""
        if self.turn.over and not self.run.ending:
            return "superseded"
        until = self.turn.until
        if until is None or asyncio.get_running_loop().time() < until:
            return None
        return "superseded" if self.turn.over else "time"

    async def agreed(self) -> bool:
        """Wait until the run's text goes on behind what was typed, or ends there; False as soon as it says
        something else, or when another's limits ended it there."""
        run, typed = self.run, self._typed
        while self._joined and not self.turn.over and self.over is None:
            ended = run.generation
            if run.says(typed) is False or (ended and ended.stop in _SPENT and run.text == typed):
                return False
            if len(run.text) > len(typed) or ended or run.failure:
                break
            await self._changed()
        return True

    async def events(self) -> AsyncGenerator[str | Generation, None]:
        """The run's text from this request's cursor on, and last one Generation, as Engine.stream gives them.

        Raises what the engine raised.
        """
        run, given = self.run, len(self._typed)
        while (stop := self.over) is None:
            if len(run.text) > given and run.text.startswith(self._typed):  # else it was superseded first
                piece, given = run.text[given:], len(run.text)
                self._first = self._first or self._age_ms()
                yield piece
            elif run.failure is not None:
                raise run.failure
            elif run.generation is not None:
                yield self._fitted(run.generation)
                return
            else:
                await self._changed()
        yield self.cut(stop, run.text[len(self._typed) : given])

    def cut(self, stop: StopReason, text: str = "", note: str = "") -> Generation:
        """The Generation of a request that leaves its run early: what a run that goes on evaluates is counted
        by others, and of one that ends with this request only the prompt is known."""
        ended, others = self.run.generation, [seat for seat in self.run.seats if seat is not self]
        work = Counters() if ended or others else Counters(prompt=count(self.job.tokens))
        if ended is not None and self.run.carrier is self:
            work = ended.counters
        return Generation(text=text, stop=stop, note=note, counters=work, joined=self._joined)

    def _fitted(self, whole: Generation) -> Generation:
        """The run's Generation as this request sees it; the work is counted once, at the carrier."""
        if not self.run.text.startswith(self._typed):
            return self.cut("superseded")
        work = whole.counters if self.run.carrier is self else Counters()
        if not self._joined:
            return msgspec.structs.replace(whole, counters=work, timings=self._timings(whole.timings))
        agreed = whole.text.startswith(self._typed)
        return msgspec.structs.replace(
            whole,
            text=whole.text[len(self._typed) :] if agreed else "",
            counters=work,
            timings=Timings(first=self._first, total=self._age_ms()),
            joined=self._joined,
        )

    def _timings(self, its: Timings) -> Timings:
        """The engine's, from the moment that the request came: the engine was not told of it at once."""
        waited = self.turn.waited_ms
        first = its.first + waited if its.first else 0.0
        return msgspec.structs.replace(its, queued=its.queued + waited, first=first, total=its.total + waited)

    def _age_ms(self) -> float:
        return (asyncio.get_running_loop().time() - self.turn.begun) * 1000.0

    async def _changed(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self.turn.until):
                await self.woken.wait()
        self.woken.clear()
