"""The state of one request while the engine works on it, and its final Generation."""

from __future__ import annotations

import time

import numpy as np

from daemon.engine.lanes import Ticket
from daemon.engine.sampling import Sampler
from daemon.engine.step import Ends
from daemon.engine.stops import Stops
from daemon.engine.vocabulary import Pieces
from daemon.nouns import Counters, Generation, StopReason, Timings


class Stopped(Exception):
    """Ends the work on a request wherever it is."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason


class Run:
    """Counts and text of one request. Used by the engine thread only."""

    def __init__(self, ticket: Ticket, pieces: Pieces) -> None:
        job = ticket.job
        self.ticket = ticket
        self.job = job
        self.prompt = np.frombuffer(job.tokens, np.int32)
        self.sampler = Sampler(job.sampling, pieces, job.must)
        self._pieces = pieces.pieces
        self.stops = Stops(job.limits, job.line, job.suffix, job.above, job.closes)
        self.stop: StopReason = "limit"
        self.note = ""
        self.reused = 0
        self.evaluated = 0
        self.steps = 0
        self.compute_s = 0.0
        self.tokens: list[int] = []
        self.shown_tokens = 0
        self.margins: list[float] = []
        self.small = ""
        """The model that answers, where that is the draft model alone."""
        self.drafts: dict[str, tuple[int, int]] = {}
        """Source → (drafted, accepted)."""
        self._queued_ms = ticket.age_ms()
        self._prompt_ms = 0.0
        self._first_ms = 0.0
        self._generating: float | None = None
        self._began = time.perf_counter()

    def check(self) -> None:
        """Between decodes: raises Stopped when the request was cancelled or ran out of time."""
        if self.ticket.ended is not None:
            raise Stopped(self.ticket.ended)
        if self.ticket.late:
            raise Stopped("time")

    def prompt_done(self) -> None:
        """The whole prompt is evaluated."""
        if self._generating is None:
            self._generating = time.perf_counter()
            self._prompt_ms = (self._generating - self._began) * 1000.0
        if self.job.warm:
            raise Stopped("warm")

    def take(self, token: int, piece: bytes) -> str:
        """Account for a generated token and its bytes beyond the cursor; returns text that may be shown."""
        self.tokens.append(token)
        if not piece:
            return ""
        self.shown_tokens += 1
        if not self._first_ms:
            self._first_ms = self.ticket.age_ms()
        return self.stops.feed(piece)

    def ahead(self) -> Ends:
        """Where the text would end, from here on."""
        stops = self.stops.copy()

        def ends(token: int) -> bool:
            stops.feed(self._pieces[token])
            return stops.reason is not None or not self._pieces[token]

        return ends

    def ended(self) -> StopReason | None:
        """Whether stops or limits end the text after the token just taken."""
        limits = self.job.limits
        if self.stops.reason is not None:
            return self.stops.reason
        if self.shown_tokens >= limits.tokens:
            return "limit"
        spent = (time.perf_counter() - (self._generating or self._began)) * 1000.0
        if self.ticket.late or (limits.milliseconds is not None and spent >= limits.milliseconds):
            return "time"
        after = limits.milliseconds_after_line
        return "time" if after is not None and self.stops.line_complete and spent >= after else None

    def count_draft(self, source: str, drafted: int = 0, accepted: int = 0) -> None:
        """Drafted tokens were verified, or accepted."""
        before = self.drafts.get(source, (0, 0))
        self.drafts[source] = before[0] + drafted, before[1] + accepted

    def generation(self) -> Generation:
        """What became of the request."""
        return Generation(
            text=self.stops.text,
            stop=self.stop,
            stop_word=self.stops.stop_word,
            tokens=np.array(self.tokens, np.int32).tobytes(),
            counters=Counters(
                prompt=len(self.prompt),
                reused=self.reused,
                evaluated=self.evaluated,
                generated=len(self.tokens),
                steps=self.steps,
                drafted=sum(drafted for drafted, _ in self.drafts.values()),
                accepted=sum(accepted for _, accepted in self.drafts.values()),
                by_source=self.drafts,
                small=self.small,
            ),
            timings=Timings(
                queued=self._queued_ms,
                prompt=self._prompt_ms,
                first=self._first_ms,
                total=self.ticket.age_ms(),
                compute=self.compute_s * 1000.0,
            ),
            note=self.note,
            margins=tuple(self.margins),
        )
