"""Jobs waiting for the engine thread, and the one that runs: submission, cancel, priority.

The socket thread submits and cancels; the engine thread takes. A foreground job preempts background work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from daemon.engine.frames import Submit
from daemon.nouns import StopReason


@dataclass(eq=False)
class Ticket:
    """A submitted job and what became of it. `ended` is set by a cancel, read between slices."""

    job: Submit
    submitted: float = field(default_factory=time.perf_counter)
    ended: StopReason | None = None
    cancelled_at_decode: int = -1
    """Number of decode calls finished when the cancel arrived, for the count of slices after it."""

    def age_ms(self) -> float:
        """Milliseconds since submission."""
        return (time.perf_counter() - self.submitted) * 1000.0


class Lanes:
    """Thread-safe. `abort` interrupts the running decode; `decodes` reads the context's counter."""

    def __init__(self, abort: Callable[[], None], decodes: Callable[[], int]) -> None:
        self._abort = abort
        self._decodes = decodes
        self._changed = threading.Condition()
        self._waiting: list[Ticket] = []
        self._running: Ticket | None = None
        self._closed = False

    def submit(self, job: Submit) -> None:
        """Queue a job; background work that runs now is interrupted by foreground jobs."""
        with self._changed:
            self._waiting.append(Ticket(job))
            running = self._running
            if running and running.job.background and not job.background and running.ended is None:
                running.ended = "superseded"
                self._abort()
            self._changed.notify()

    def cancel(self, job_id: str, reason: StopReason) -> None:
        """End a job: a waiting one never starts, the running one stops within its slice."""
        with self._changed:
            for ticket in (*self._waiting, *([self._running] if self._running else [])):
                if ticket.job.id == job_id and ticket.ended is None:
                    ticket.ended = reason
                    ticket.cancelled_at_decode = self._decodes()
                    if ticket.job.background:
                        self._abort()

    def take(self) -> Ticket | None:
        """Wait for the next job, foreground first, oldest first; None when closed."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            self._running = min(self._waiting, key=lambda t: (t.job.background, t.submitted))
            self._waiting.remove(self._running)
            return self._running

    def finish(self) -> None:
        """The running job is over."""
        with self._changed:
            self._running = None

    def close(self) -> None:
        """End everything: the running decode is interrupted."""
        with self._changed:
            self._closed = True
            if self._running:
                self._running.ended = "cancelled"
            self._abort()
            self._changed.notify()

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        with self._changed:
            return self._running is None and not self._waiting
