"""One step after another: take a job, reuse what is evaluated, evaluate the rest in slices, generate, emit.

The engine thread runs `Loop.run()`; nothing else touches the context. One request runs at a time; its
sequence stays resident with its generated tokens.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np

from daemon.engine.binding import Context, Ids
from daemon.engine.frames import Done, Message, Piece, Report
from daemon.engine.lanes import Lanes, Ticket
from daemon.engine.run import Run, Stopped
from daemon.engine.sampling import margin
from daemon.engine.tree import Resident, Tree
from daemon.engine.vocabulary import Pieces
from daemon.errors import EngineFailed
from daemon.nouns import Generation


class Loop:
    """The engine thread's work. `emit` sends a message to the daemon."""

    def __init__(
        self, context: Context, pieces: Pieces, window: int, emit: Callable[[Message], None]
    ) -> None:
        self._context = context
        self._pieces = pieces
        self._window = min(window, context.cells)
        self._emit = emit
        self.tree = Tree(context)
        self.lanes = Lanes(context.abort, lambda: context.decodes)
        self.slice = 64
        self._totals = dict.fromkeys(("evaluated", "reused", "generated", "aborted", "after_slice"), 0)
        self._idle_slices: deque[int] = deque(maxlen=1000)
        self._busy_s = 0.0

    def run(self) -> None:
        """Until the lanes are closed."""
        while (ticket := self.lanes.take()) is not None:
            began = time.perf_counter()
            generation = self._one(ticket)
            self._busy_s += time.perf_counter() - began
            self.lanes.finish()
            self._emit(Done(id=ticket.job.id, generation=generation))

    def report(self, rss: int) -> Report:
        """Counters since start. May be called from any thread: it only reads."""
        return Report(
            idle=self.lanes.idle,
            sequences=len(self.tree.residents),
            cells_used=self.tree.cells_used,
            cells=self._context.cells,
            decodes=self._context.decodes,
            idle_slices=tuple(self._idle_slices),
            rss_bytes=rss,
            compute_ms=self._context.compute_s * 1000.0,
            busy_ms=self._busy_s * 1000.0,
            evaluated=self._totals["evaluated"],
            reused=self._totals["reused"],
            generated=self._totals["generated"],
            aborted=self._totals["aborted"],
            after_slice=self._totals["after_slice"],
        )

    def _one(self, ticket: Ticket) -> Generation:
        run = Run(ticket, self._pieces, self._context.compute_s)
        self._context.arm()
        resident = None
        try:
            resident = self._place(run)
            self._prefill(run, resident)
            self._generate(run, resident)
        except Stopped as stopped:
            run.stop = stopped.reason
        except EngineFailed as failed:
            run.stop, run.note = "engine", str(failed)
        if resident is not None and not run.job.cache:
            self.tree.drop(resident)
        if (rest := run.stops.finish()) and run.stop not in ("cancelled", "superseded"):
            self._emit(Piece(id=run.job.id, text=rest))
        self._count(run)
        return run.generation(self._context.compute_s)

    def _place(self, run: Run) -> Resident:
        """The resident to continue; at least the last token is evaluated anew, for its logits."""
        run.check()
        n = len(run.prompt)
        if not 0 < n <= self._window - 2:
            raise Stopped("window")
        if run.job.cache:
            resident = self.tree.acquire(run.prompt)
            self.tree.cut(resident, n - 1)
        else:
            resident = self.tree.fresh()
        run.reused = resident.n
        return resident

    def _prefill(self, run: Run, resident: Resident) -> None:
        n = len(run.prompt)
        for end in self._ends(run, resident.n):
            while True:
                run.check()
                rows = run.prompt[resident.n : end]
                if self._decode(run, resident, rows, outputs=int(end == n)):
                    break
            run.evaluated += len(rows)
        run.prompt_done()

    def _ends(self, run: Run, start: int) -> list[int]:
        """Where slices end. Without the cache: where they ended when the resident was evaluated."""
        n = len(run.prompt)
        if run.job.cache or (like := self.tree.like(run.prompt)) is None:
            return [*range(start + self.slice, n, self.slice), n]
        shared = min(like.match(run.prompt), n)
        ends = [int(i) for i in np.flatnonzero(like.starts[:shared]) if i > start]
        last = ends[-1] if ends else start
        return [*ends, *range(last + self.slice, n, self.slice), n]

    def _generate(self, run: Run, resident: Resident) -> None:
        while True:
            run.check()
            row = self._context.logits(1)[0]
            token = run.sampler.choose(row)
            if run.job.margins:
                run.margins.append(margin(row))
            if not self._pieces.pieces[token]:
                run.tokens.append(token)
                raise Stopped("eos")
            if text := run.take(token, run.sampler.pay(token)):
                self._emit(Piece(id=run.job.id, text=text))
            if (reason := run.ended()) is not None:
                raise Stopped(reason)
            if resident.n + 1 >= self._window:
                raise Stopped("window")
            while not self._decode(run, resident, np.array([token], np.int32), outputs=1):
                run.check()

    def _decode(self, run: Run, resident: Resident, rows: Ids, outputs: int) -> bool:
        self.tree.make_room(len(rows), keep=resident)
        run.steps += 1
        done = self._context.decode(rows, resident.n, resident.sequence, outputs)
        if done:
            self.tree.extend(resident, rows)
        else:
            self._totals["aborted"] += 1
            self._context.arm()
        return done

    def _count(self, run: Run) -> None:
        self._totals["evaluated"] += run.evaluated
        self._totals["reused"] += run.reused
        self._totals["generated"] += len(run.tokens)
        if (at := run.ticket.cancelled_at_decode) >= 0 and run.steps:
            slices = self._context.decodes - at
            self._idle_slices.append(slices)
            self._totals["after_slice"] += max(0, slices - 1)
