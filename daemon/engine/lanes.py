"""Jobs that wait for the engine thread, and those that run: submission, cancel, turns.

The socket thread submits and cancels; the engine thread admits. Each lane has room of its own, so that none
is shut out, and inside a lane the first request of every client comes before the second of any.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from daemon.engine.frames import LANES, Submit
from daemon.nouns import StopReason

URGENT = LANES.index("alternative")
"""Lanes up to this one interrupt a decode that holds only prompt rows of the others."""
WARM = LANES.index("warm")
AGED_S = 5.0
"""Who has waited for so much longer than it has run counts as urgent as a keystroke, until it has run for as
long. Moments of running do not make up for the wait: others may take the cells back at once."""
_CROWDED_S = 1.0
"""Requests of different clients closer together than this are worth waiting for."""


@dataclass(eq=False)
class Ticket:
    """A submitted job and what became of it. `ended` is set by a cancel, read between decodes."""

    job: Submit
    submitted: float = field(default_factory=time.perf_counter)
    ended: StopReason | None = None
    cancelled_at_decode: int = -1
    """Number of decode calls finished when the cancel arrived, for the count of slices after it."""

    running: bool = False

    def __post_init__(self) -> None:
        self.followed = self.job.follow
        """Somebody reads its text along; may become so at any time."""
        self.lane = LANES.index(self.job.lane)
        self._since = self.submitted
        """When it last began to wait or to run."""
        self._owed = 0.0
        """Seconds that it had waited until then, less those that it had run."""

    @property
    def turn(self) -> int:
        """The lane that it counts as when cells, turns and rows are given."""
        passed = time.perf_counter() - self._since
        if not self.running:
            return 0 if self._owed + passed >= AGED_S else self.lane
        return 0 if self._owed >= AGED_S and self._owed > passed else self.lane

    def turned(self, running: bool) -> None:
        """From now on it runs, or waits."""
        now = time.perf_counter()
        passed = now - self._since
        self._owed = max(0.0, self._owed - passed) if self.running else self._owed + passed
        self._since, self.running = now, running

    def age_ms(self) -> float:
        """Milliseconds since submission."""
        return (time.perf_counter() - self.submitted) * 1000.0

    @property
    def late(self) -> bool:
        """Nobody waits for its answer any more."""
        deadline = self.job.limits.deadline
        return deadline is not None and self.age_ms() >= deadline

    @property
    def due(self) -> bool:
        """It is to be ended now."""
        return self.ended is not None or self.late


def in_turn(tickets: Iterable[Ticket], running: Iterable[Ticket] = ()) -> list[Ticket]:
    """By lane, then by how many older requests of the same client are before it, then by age. Aged ones stand
    among the first keystrokes of all clients."""
    before = Counter((t.lane, t.job.client) for t in running)
    turns: list[tuple[int, int, int, Ticket]] = []
    for ticket in sorted(tickets, key=lambda t: t.submitted):
        key = (ticket.lane, ticket.job.client)
        turn = ticket.turn
        turns.append((turn, before[key] if turn == ticket.lane else 0, len(turns), ticket))
        before[key] += 1
    return [turn[-1] for turn in sorted(turns)]


class Lanes:
    """Thread-safe. `abort` interrupts the running decode; `decodes` reads the context's counter. `slots` are
    the requests of the keystroke lane that run at once; alternatives have a quarter as many of their own, and
    so have all other lanes together. With several clients a first request waits `delay_s` for others."""

    def __init__(
        self, abort: Callable[[], None], decodes: Callable[[], int], slots: int = 8, delay_s: float = 0.0
    ) -> None:
        self._abort = abort
        self._decodes = decodes
        self._slots = (slots, max(1, slots // 4), max(1, slots // 4))
        self._delay_s = delay_s
        self._changed = threading.Condition()
        self._waiting: list[Ticket] = []
        self._running: list[Ticket] = []
        self._computing: tuple[Ticket, ...] = ()
        self._interruptible = False
        self._client, self._switched = "", 0.0
        self._closed = False

    def submit(self, job: Submit) -> None:
        """Queue a job. An urgent one interrupts a decode that holds only prompt rows of less urgent ones."""
        with self._changed:
            ticket = Ticket(job)
            self._waiting.append(ticket)
            if ticket.lane <= URGENT:
                if job.client != self._client:
                    self._client, self._switched = job.client, ticket.submitted
                self._interrupt()
            self._changed.notify()

    def cancel(self, job_id: str, reason: StopReason) -> None:
        """End a job: a waiting one never starts, a running one gets no row after the running decode."""
        with self._changed:
            for ticket in (*self._waiting, *self._running):
                if ticket.job.id == job_id and ticket.ended is None:
                    ticket.ended = reason
                    ticket.cancelled_at_decode = self._decodes()
                    if all(other.ended for other in self._computing):
                        self._interrupt()
            self._changed.notify()

    def follow(self, job_id: str) -> None:
        """Somebody reads a job's text along from now on."""
        with self._changed:
            for ticket in (*self._waiting, *self._running):
                ticket.followed |= ticket.job.id == job_id

    def _interrupt(self) -> None:
        if self._computing and self._interruptible:
            self._abort()

    def wait(self, patience: float | None = None) -> bool:
        """Until there is something to do, or for `patience` seconds; False when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._running or self._closed, patience)
            if self._delay_s and self._waiting and not self._running and not self._closed:
                first = self._waiting[0].submitted
                if first - self._switched < _CROWDED_S:
                    self._changed.wait_for(self._full, first + self._delay_s - time.perf_counter())
            return not self._closed

    def _full(self) -> bool:
        return self._closed or len(self._waiting) >= self._slots[0]

    def following(self) -> Ticket | None:
        """The next that may start, or that waits for nothing but its end."""
        if not self._waiting:
            return None
        with self._changed:
            held = Counter(self._pool(ticket) for ticket in self._running)
            for ticket in self._waiting:
                if ticket.due:
                    return ticket
            for ticket in in_turn(self._waiting, self._running):
                if held[self._pool(ticket)] < self._slots[self._pool(ticket)]:
                    return ticket
        return None

    @staticmethod
    def _pool(ticket: Ticket) -> int:
        return min(ticket.lane, 2)

    def start(self, ticket: Ticket) -> None:
        """A waiting job runs from now on."""
        with self._changed:
            self._waiting.remove(ticket)
            self._running.append(ticket)
            ticket.turned(running=True)

    def put_back(self, ticket: Ticket) -> None:
        """A running job waits again."""
        with self._changed:
            self._running.remove(ticket)
            self._waiting.append(ticket)
            ticket.turned(running=False)

    def finish(self, ticket: Ticket) -> None:
        """A running job is over."""
        with self._changed:
            self._running.remove(ticket)

    def computing(self, tickets: tuple[Ticket, ...], interruptible: bool) -> None:
        """Whose rows the decode holds that begins now; none when it is over."""
        with self._changed:
            self._computing, self._interruptible = tickets, interruptible

    def close(self) -> None:
        """End everything: the running decode is interrupted."""
        with self._changed:
            self._closed = True
            for ticket in self._running:
                ticket.ended = ticket.ended or "cancelled"
            self._abort()
            self._changed.notify()

    @property
    def load(self) -> tuple[int, int]:
        """(running, waiting)."""
        with self._changed:
            return len(self._running), len(self._waiting)
