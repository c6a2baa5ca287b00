"""One step after another: take a job, reuse what is evaluated, evaluate the rest in slices, generate, emit.

The engine thread runs `Loop.run()`; nothing else touches the context. One request runs at a time; its
sequence stays resident with its generated tokens.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np

from daemon.engine.binding import Context, Floats, Ids
from daemon.engine.frames import Done, Message, Piece, Report
from daemon.engine.lanes import Lanes, Ticket
from daemon.engine.run import Run, Stopped
from daemon.engine.tree import Choice, Resident, Tree
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
        self._fresh: tuple[int, int] | None = None
        """(sequence, length) whose logits the context holds."""

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
        """The resident to continue: all that is evaluated of the prompt stays evaluated."""
        run.check()
        n = len(run.prompt)
        if not 0 < n <= self._window - 2:
            raise Stopped("window")
        resident = self.tree.acquire(run.prompt) if run.job.cache else self.tree.fresh()
        run.reused = min(resident.n, n)
        return resident

    def _prefill(self, run: Run, resident: Resident) -> None:
        n = len(run.prompt)
        shapes = {} if run.job.cache else self._shapes(run)
        while (start := resident.n) < n:
            width, kept = shapes.get(start, (self.slice, self.slice))
            rows = run.prompt[start : start + min(kept, n - start)]
            if start in shapes and len(rows) < width:
                self._decode(
                    run, resident, np.append(rows, np.repeat(rows[-1:], width - len(rows))), outputs=0
                )
                self.tree.cut(resident, start + len(rows))
            else:
                self._decode(run, resident, rows, outputs=int(start + len(rows) == n))
            run.evaluated += len(rows)
        run.prompt_done()

    def _shapes(self, run: Run) -> dict[int, tuple[int, int]]:
        """Start → (width, rows kept) of the decode calls that evaluated the resident most like the prompt.

        A call whose later rows were cut away is repeated in its full width: results depend on it.
        """
        like = self.tree.like(run.prompt)
        if like is None:
            return {}
        shared = like.match(run.prompt)
        if shared == 0:
            return {}
        starts = [int(i) for i in np.flatnonzero(like.widths[:shared])]
        ends = [*starts[1:], shared]
        return {i: (int(like.widths[i]), end - i) for i, end in zip(starts, ends, strict=True)}

    def _generate(self, run: Run, resident: Resident) -> None:
        at = len(run.prompt)
        while True:
            run.check()
            token = self._choose(run, resident, at)
            if not self._pieces.pieces[token]:
                run.tokens.append(token)
                raise Stopped("eos")
            if text := run.take(token, run.sampler.pay(token)):
                self._emit(Piece(id=run.job.id, text=text))
            if (reason := run.ended()) is not None:
                raise Stopped(reason)
            at += 1
            if at >= self._window:
                raise Stopped("window")
            if resident.n >= at and not resident.generated(at - 1, token):
                self.tree.cut(resident, at - 1)
            if resident.n < at:
                self._decode(run, resident, np.array([token], np.int32), outputs=1)

    def _choose(self, run: Run, resident: Resident, at: int) -> int:
        """The token behind the first `at`: as it was chosen before, or from fresh logits."""
        owed, greedy = run.sampler.owed, run.job.sampling.temperature <= 0
        known = resident.choices.get(at) if greedy else None
        if known and known.holds_for(owed, self._pieces.pieces[known.token], run.job.margins):
            run.margins += [known.margin] if run.job.margins and known.margin is not None else []
            return known.token
        row = self._row(run, resident, at)
        token = run.sampler.choose(row)
        near = run.sampler.margin() if run.job.margins else None
        if near is not None:
            run.margins.append(near)
        if greedy:
            resident.choices[at] = Choice(token, owed, near)
        return token

    def _row(self, run: Run, resident: Resident, at: int) -> Floats:
        """Logits behind the first `at` tokens; the last of them is evaluated anew when they are gone."""
        if self._fresh != (resident.sequence, at) or resident.n != at:
            last = resident.tokens[at - 1 : at].copy()
            self.tree.cut(resident, at - 1)
            if run.reused == at == len(run.prompt):
                run.reused, run.evaluated = run.reused - 1, run.evaluated + 1
            self._decode(run, resident, last, outputs=1)
        row: Floats = self._context.logits(1)[0]
        return row

    def _decode(self, run: Run, resident: Resident, rows: Ids, outputs: int) -> None:
        """Evaluate `rows` at the end of `resident`. Raises Stopped when the request ended meanwhile."""
        self._fresh = None
        while True:
            run.check()
            self.tree.make_room(len(rows), keep=resident)
            run.steps += 1
            if self._context.decode(rows, resident.n, resident.sequence, outputs):
                break
            self._totals["aborted"] += 1
            self._context.arm()
        self.tree.extend(resident, rows)
        if outputs:
            self._fresh = (resident.sequence, resident.n)

    def _count(self, run: Run) -> None:
        self._totals["evaluated"] += run.evaluated
        self._totals["reused"] += run.reused
        self._totals["generated"] += len(run.tokens)
        if (at := run.ticket.cancelled_at_decode) >= 0 and run.steps:
            slices = self._context.decodes - at
            self._idle_slices.append(slices)
            self._totals["after_slice"] += max(0, slices - 1)
