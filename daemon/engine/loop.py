"""The tick: admit, see what every run wants, evaluate rows for many of them in one decode, resume them.

The engine thread runs `Loop.run()`; nothing else touches the context. What a request does is in work.py,
whose rows a tick takes in batching.py, who may run in lanes.py. A sequence stays resident with its tokens.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from daemon.engine.batching import Ask, Batching
from daemon.engine.binding import Context, Part
from daemon.engine.costs import RowCosts
from daemon.engine.draftmodel import DraftModel
from daemon.engine.frames import Done, Message, Report
from daemon.engine.lanes import URGENT, Lanes, Ticket, in_turn
from daemon.engine.moving import common
from daemon.engine.paging import Paging
from daemon.engine.routed import work_for
from daemon.engine.run import Run
from daemon.engine.step import Drafter, Got
from daemon.engine.team import Team
from daemon.engine.tree import Tree
from daemon.engine.vocabulary import Pieces
from daemon.engine.work import Desk, Work
from daemon.errors import EngineFailed

_AHEAD = 64
"""Cells for what a run generates, reckoned when another one asks for admission."""


class Loop:
    """The engine thread's work. `emit` sends a message to the daemon; `slots` and `delay_s` as in Lanes."""

    def __init__(
        self,
        context: Context,
        pieces: Pieces,
        window: int,
        emit: Callable[[Message], None],
        *,
        drafter: Drafter | None = None,
        slots: int = 8,
        delay_s: float = 0.0,
    ) -> None:
        self._context = context
        self.team = Team(context, 1, 1)
        self._emit = emit
        self.tree = Tree(context)
        self._desk = Desk(self.tree, pieces, min(window, context.cells), emit, drafter)
        self.lanes = Lanes(context.abort, lambda: context.decodes, slots, delay_s)
        self.slice = 64
        """Rows of a prompt slice: the budget of a tick."""
        self.batching = Batching(RowCosts((), context.batch), context.batch, context.max_outputs)
        self._set_aside: dict[Ticket, Work] = {}
        """Work whose cells more urgent requests took."""
        self._totals = dict.fromkeys(("evaluated", "reused", "generated", "aborted", "after_slice"), 0)
        self._drafts: dict[str, tuple[int, int]] = {}
        self._idle_slices: deque[int] = deque(maxlen=1000)
        self._busy_s = 0.0

    @property
    def drafter(self) -> Drafter | None:
        """Who drafts; may be replaced while nothing runs."""
        return self._desk.drafter

    @drafter.setter
    def drafter(self, drafter: Drafter | None) -> None:
        self._desk.drafter = drafter

    @property
    def paging(self) -> Paging | None:
        """What keeps evaluated text beyond the context."""
        return self._desk.paging

    @paging.setter
    def paging(self, paging: Paging) -> None:
        self._desk.paging = paging

    def route(self, small: DraftModel) -> None:
        """From now on it answers alone what is simple."""
        self._desk.small, self._desk.small_rows = small, self.slice

    def run(self) -> None:
        """Until the lanes are closed."""
        while self.lanes.wait(self.paging.pause if self.paging else None):
            if self.paging and self.lanes.load == (0, 0):
                self.paging.ahead()
                continue
            began = time.perf_counter()
            self.tick()
            self._busy_s += time.perf_counter() - began
            if self.lanes.load == (0, 0):
                self.tree.settle()
            if self.paging:
                self.paging.stir()
        self._resume(self._desk.works)

    def leave(self, seconds: float) -> None:
        """After `run`: keep what is resident for the next start, as far as the time allows."""
        if self.paging:
            self.paging.leave(seconds)

    def tick(self) -> None:
        """One decode at most."""
        if self.paging:
            self.paging.begin()
        self._resume([work for work in self._desk.works if work.run.ticket.due])
        self._admit()
        works = self._desk.works
        self._resume([work for work in works if work.run.ticket.due or not len(work.want.rows)])
        for work in works:
            work.lane = work.run.ticket.turn if work.answers else work.run.ticket.lane
        for work in works:
            if work.leader is not None:
                work.leader.lane = min(work.leader.lane, work.lane)
        asking = [work for work in works if len(work.want.rows)]
        if not asking:
            return
        asks = []
        for work in asking:
            want = work.want
            asks.append(Ask(work.lane, len(want.rows), want.outputs, want.divisible, want.alone))
        grants = self.batching.compose(asks, self.slice)
        self._decode(self._roomy([(asking[place], rows) for place, rows in grants]))

    def report(self, rss: int) -> Report:
        """Counters since start. May be called from any thread: it only reads."""
        running, waiting = self.lanes.load
        return Report(
            idle=not running and not waiting,
            running=running,
            waiting=waiting,
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
            drafts=dict(self._drafts),
            sources=self._desk.drafter.report() if self._desk.drafter else (),
            pages=self.paging.report() if self.paging else None,
        )

    def _admit(self) -> None:
        while (ticket := self.lanes.following()) is not None and (ticket.due or self._cells_for(ticket)):
            self.lanes.start(ticket)
            work = self._set_aside.pop(ticket, None) or work_for(Run(ticket, self._desk.pieces), self._desk)
            self._desk.works.append(work)
            order = in_turn(w.run.ticket for w in self._desk.works)
            self._desk.works.sort(key=lambda w: order.index(w.run.ticket))
            self._resume([work])

    def _cells_for(self, ticket: Ticket) -> bool:
        """Whether there are cells for one more request. Less urgent ones give theirs back for it."""
        while not self._fits(ticket):
            victim = self._victim(beyond=ticket.turn)
            if victim is None:
                return False
            self._displace(victim)
        return True

    def _fits(self, ticket: Ticket) -> bool:
        works = self._desk.works
        if not works:
            return True
        aside = self._set_aside.get(ticket)
        known = aside.known if aside else np.frombuffer(ticket.job.tokens, np.int32)
        shared = ahead = 0
        for work in works:
            shared = max(shared, common(work.known, known))
            if work.leader is not None:
                ahead += len(work.known) - common(work.leader.known, work.known)
            elif work.filling and work.resident is not None:
                ahead += len(work.known) - work.resident.n
        rows = len(known) - shared + ahead + _AHEAD * (len(works) + 1)
        return self.tree.cells_busy + rows <= self._context.cells

    def _victim(self, beyond: int = -1, keep: Work | None = None) -> Work | None:
        """The least urgent, youngest run with cells in a lane less urgent than `beyond`."""
        holding = [w for w in reversed(self._desk.works) if w.resident is not None and w is not keep]
        last = max(holding, key=lambda work: work.run.ticket.turn, default=None)
        return last if last is not None and last.run.ticket.turn > beyond else None

    def _displace(self, work: Work) -> None:
        work.displace()
        self._desk.works.remove(work)
        self._set_aside[work.run.ticket] = work
        self.lanes.put_back(work.run.ticket)

    def _roomy(self, batch: list[tuple[Work, int]]) -> list[tuple[Work, int]]:
        """The batch, or what is left of it after the least urgent runs gave their cells back."""
        while batch and not self.tree.make_room(sum(rows for _, rows in batch)):
            victim = self._victim(keep=batch[0][0])
            if victim is None:
                work = batch[0][0]
                cells = self._context.cells
                self._fail(work, EngineFailed(f"{len(work.known)} tokens do not fit {cells} cells"))
                return []
            self._displace(victim)
            batch = [part for part in batch if part[0] is not victim]
        return batch

    def _decode(self, batch: Sequence[tuple[Work, int]]) -> None:
        parts = []
        for work, rows in batch:
            if (resident := work.resident) is not None:
                want = work.want
                outputs = max(0, want.outputs - (len(want.rows) - rows))
                parts.append(Part(want.rows[:rows], resident.n, resident.sequence, outputs))
        if not parts:
            return
        self.tree.forget_logits()
        urgent = any(work.lane <= URGENT or work.want.outputs == len(work.want.rows) for work, _ in batch)
        self.lanes.computing(tuple(work.run.ticket for work, _ in batch), not urgent)
        self.team.gather(work for work, _ in batch)
        try:
            done = self._context.decode(*parts)
        except EngineFailed as failed:
            if len(batch) == 1:
                self._fail(batch[0][0], failed)
            for part in batch if len(batch) > 1 else ():  # one bad apple must not spoil the others
                self._decode([part])
            return
        finally:
            self.lanes.computing((), False)
            self._context.arm()  # an abort that came too late is not for the next decode
        if done:
            self._taken(batch, parts)
        else:
            self._totals["aborted"] += 1
            self._resume([work for work, _ in batch])

    def _taken(self, batch: Sequence[tuple[Work, int]], parts: Sequence[Part]) -> None:
        outputs = sum(part.outputs for part in parts)
        logits = self._context.logits(outputs) if outputs else None
        width = sum(len(part.tokens) for part in parts)
        if self.paging and not self.team.sparing:
            self.paging.evaluated(width, self._context.last_s * 1000.0)
        first, granted = 0, []
        for (work, rows), part in zip(batch, parts, strict=True):
            resident = work.resident
            if resident is None:
                continue
            self.tree.extend(resident, part.tokens, width, part.outputs == rows)
            own = None
            if logits is not None and part.outputs:
                own = logits[first : first + part.outputs]
                resident.behind = resident.n - part.outputs + 1, own
            first += part.outputs
            work.run.compute_s += self._context.last_s
            granted.append((work, Got(rows, own)))
        for work, got in granted:
            self._send(work, got)

    def _resume(self, works: Sequence[Work]) -> None:
        """Nothing was evaluated for them; each looks whether to go on."""
        for work in list(works):
            self._send(work, Got())

    def _send(self, work: Work, got: Got) -> None:
        try:
            work.want = work.steps.send(got) if work.begun else next(work.steps)
            work.begun = True
        except StopIteration:
            self._finish(work)

    def _fail(self, work: Work, failed: EngineFailed) -> None:
        try:
            work.want = work.steps.throw(failed)
        except StopIteration:
            self._finish(work)

    def _finish(self, work: Work) -> None:
        run = work.run
        self._desk.works.remove(work)
        self.lanes.finish(run.ticket)
        self._totals["evaluated"] += run.evaluated
        self._totals["reused"] += run.reused
        self._totals["generated"] += len(run.tokens)
        for source, (drafted, accepted) in run.drafts.items():
            before = self._drafts.get(source, (0, 0))
            self._drafts[source] = before[0] + drafted, before[1] + accepted
        if (at := run.ticket.cancelled_at_decode) >= 0 and run.steps:
            slices = self._context.decodes - at
            self._idle_slices.append(slices)
            self._totals["after_slice"] += max(0, slices - 1)
        self._emit(Done(id=run.job.id, generation=run.generation(), rest=work.unsaid))
