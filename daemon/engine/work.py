"""One request as a generator: reuse what is evaluated, evaluate the rest, generate, verify drafts.

It yields what it wants evaluated next and is resumed with what a tick granted (step.py). Nothing here knows
about other requests, except that rows which another one is about to evaluate are waited for and forked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import numpy as np

from daemon.engine.binding import Floats, Ids
from daemon.engine.draftmodel import DraftModel
from daemon.engine.frames import LANES, Message, Piece
from daemon.engine.lanes import URGENT, WARM
from daemon.engine.moving import common
from daemon.engine.paging import Paging
from daemon.engine.run import Run, Stopped
from daemon.engine.step import WAIT, Drafter, Got, Steps, Want
from daemon.engine.tree import Choice, Resident, Tree
from daemon.engine.verify import Drafts
from daemon.engine.vocabulary import Pieces
from daemon.errors import EngineFailed

_UNFOLLOWED_S = 0.05
"""How often text is told that nobody reads along."""


class _Displaced(Exception):
    """More urgent requests took the cells: begin again, from the text that is there."""


@dataclass
class Desk:
    """What all requests work with."""

    tree: Tree
    pieces: Pieces
    window: int
    emit: Callable[[Message], None]
    drafter: Drafter | None = None
    paging: Paging | None = None
    small: DraftModel | None = None
    """Answers alone what is simple."""
    small_rows: int = 64
    """Rows of a prompt slice of its own."""
    works: list[Work] = field(default_factory=list)
    """All that run, by urgency."""


class Work:
    """What one request does, step by step. Used by the engine thread only."""

    def __init__(self, run: Run, desk: Desk) -> None:
        self.run = run
        self._desk = desk
        self._tree = desk.tree
        self.lane = LANES.index(run.job.lane)
        """Of the most urgent request that waits for it, itself included."""
        self.want = WAIT
        self.begun = False
        self.resident: Resident | None = None
        self.leader: Work | None = None
        """Whose evaluation this one waits for."""
        self.filling = False
        """It is evaluating `known`."""
        self.known: Ids = run.prompt
        """The prompt, and what was generated before cells were taken away."""
        self._drafts: Drafts | None = None
        self.unsaid = ""
        """Text that may be shown and was not sent yet; at the end it goes with Done."""
        self._said = -math.inf
        self.steps: Steps = self._steps()

    @property
    def spares(self) -> bool:
        """Fewer threads may compute its rows: it answers what nobody asked for yet."""
        return self.lane == WARM and not self.run.job.warm

    @property
    def answers(self) -> bool:
        """It wants rows of an answer that somebody asked for, not of a prompt: few, so that they may come in
        every tick when it has waited long."""
        return 0 < self.want.outputs == len(self.want.rows) and self.run.ticket.lane != WARM

    def displace(self) -> None:
        """Leave the cells to others; the next step begins again, from what is left of them."""
        self._leave(keep=self.run.job.cache)
        self.known = np.append(self.run.prompt, np.array(self.run.tokens, np.int32))
        if self._drafts is not None:
            self._drafts.pause()

    def _leave(self, keep: bool) -> None:
        resident, self.resident = self.resident, None
        self.filling, self.leader = False, None
        if resident is not None and keep:
            self._tree.release(resident)
        elif resident is not None:
            self._tree.drop(resident)

    def _steps(self) -> Steps:
        run = self.run
        drafts = self._drafts = Drafts(self._desk.drafter, run)
        try:
            while not (yield from self._whole(drafts)):
                pass  # displaced: `known` holds what there is to begin from
        except Stopped as stopped:
            run.stop = stopped.reason
        except EngineFailed as failed:
            run.stop, run.note = "engine", str(failed)
        drafts.close()
        self._leave(keep=run.job.cache)
        if (rest := run.stops.finish()) and run.stop not in ("cancelled", "superseded"):
            self.unsaid += rest

    def _whole(self, drafts: Drafts) -> Generator[Want, Got, bool]:
        """Ends with Stopped; False when the cells were taken away meanwhile."""
        try:
            resident = yield from self._place()
            yield from self._prefill(resident)
            yield from self._generate(resident, drafts)
        except _Displaced:
            return False
        return True

    def _place(self) -> Generator[Want, Got, Resident]:
        """The resident to continue: all that is evaluated of the text stays evaluated."""
        run = self.run
        run.check()
        n = len(run.prompt)
        if not 0 < n <= self._desk.window - 2:
            raise Stopped("window")
        while run.job.cache and (leader := self._ahead()) is not None:
            self.leader = leader
            yield WAIT
            run.check()
        self.leader = None
        background = run.ticket.lane > URGENT
        resident = self._tree.acquire(self.known, background) if run.job.cache else self._tree.fresh()
        self.resident = resident
        resident.keep &= run.job.keep
        if run.job.cache and self._desk.paging is not None:
            yield from self._bring(resident, self._desk.paging)
        run.reused, run.evaluated = min(resident.n, n), 0
        return resident

    def _bring(self, resident: Resident, paging: Paging) -> Generator[Want, Got, None]:
        """Bring back what left the context, where that is quicker than to evaluate it; ticks go on."""
        end = paging.known(self.known, resident.n)
        self.filling = resident.n < end
        while resident.n < end:
            while paging.tired:
                yield WAIT
                self.run.check()
                if self.resident is None:
                    raise _Displaced
            if not paging.bring(resident, self.known):
                break
        self.filling = False

    def _ahead(self) -> Work | None:
        """Who is evaluating more of this text's beginning than is evaluated by now."""
        like = self._tree.like(self.known)
        most = like.match(self.known) if like else 0
        best = None
        for other in self._desk.works:
            if other.filling and other is not self and (n := common(other.known, self.known)) > most:
                most, best = n, other
        return best

    def _prefill(self, resident: Resident) -> Generator[Want, Got, None]:
        run, known = self.run, self.known
        n = len(known)
        shapes = {} if run.job.cache else self._shapes()
        self.filling = run.job.cache
        while (start := resident.n) < n:
            width, kept = shapes.get(start, (0, n))
            rows = known[start : min(start + kept, n)]
            if len(rows) < width:
                padded = np.append(rows, np.repeat(rows[-1:], width - len(rows)))
                yield from self._evaluate(padded, 0)
                self._tree.cut(resident, start + len(rows))
            else:
                last = start + len(rows) == n
                yield from self._evaluate(rows, int(last), divisible=not width)
            run.evaluated += max(0, min(resident.n, len(run.prompt)) - start)
        self.filling = False
        run.prompt_done()

    def _shapes(self) -> dict[int, tuple[int, int]]:
        """Start → (width, rows kept) of the decode calls that evaluated the resident most like the prompt.

        A call whose later rows were cut away is repeated in its full width: results depend on it.
        """
        like = self._tree.like(self.known)
        shared = like.match(self.known) if like else 0
        if like is None or shared == 0:
            return {}
        starts = [int(i) for i in np.flatnonzero(like.widths[:shared])]
        ends = [*starts[1:], shared]
        return {i: (int(like.widths[i]), end - i) for i, end in zip(starts, ends, strict=True)}

    def _generate(self, resident: Resident, drafts: Drafts) -> Generator[Want, Got, None]:
        run, desk = self.run, self._desk
        at = len(self.known)
        while True:
            run.check()
            token = yield from self._choose(resident, at)
            drafts.judge(at, token)
            if not desk.pieces.pieces[token]:
                run.tokens.append(token)
                raise Stopped("eos")
            self._show(token)
            if (reason := run.ended()) is not None:
                raise Stopped(reason)
            at += 1
            if at >= desk.window:
                raise Stopped("window")
            if resident.n >= at and not resident.generated(at - 1, token):
                self._tree.cut(resident, at - 1)
            if resident.n < at:
                self._say()
                draft = drafts.propose(desk.window - at)
                rows = np.array([token, *draft.tokens.tolist()], np.int32)
                drafts.verified(draft, at, (yield from self._speak(resident, rows)))

    def _show(self, token: int) -> None:
        """Take a token; what may be shown of its text goes out with the next `_say`."""
        run = self.run
        self.unsaid += run.take(token, run.sampler.pay(token))

    def _say(self) -> None:
        """Before anything takes time: one message for all tokens since the last: each wakes the daemon."""
        if not self.unsaid:
            return
        now = time.perf_counter()
        if self.run.ticket.followed or now - self._said >= _UNFOLLOWED_S:
            self._desk.emit(Piece(id=self.run.job.id, text=self.unsaid))
            self.unsaid, self._said = "", now

    def _choose(self, resident: Resident, at: int) -> Generator[Want, Got, int]:
        """The token behind the first `at`: as it was chosen before, or from fresh logits."""
        run, pieces = self.run, self._desk.pieces.pieces
        owed, greedy = run.sampler.owed, run.job.sampling.temperature <= 0
        known = resident.choices.get(at) if greedy else None
        if known and known.holds_for(owed, pieces[known.token], run.job.margins):
            run.margins += [known.margin] if run.job.margins and known.margin is not None else []
            return known.token
        row = yield from self._row(resident, at)
        token = run.sampler.choose(row)
        near = run.sampler.margin() if run.job.margins else None
        if near is not None:
            run.margins.append(near)
        if greedy:
            resident.choices[at] = Choice(token, owed, near)
        return token

    def _row(self, resident: Resident, at: int) -> Generator[Want, Got, Floats]:
        """Logits behind the first `at` tokens; the last of them is evaluated anew when they are gone."""
        run = self.run
        while (row := resident.row(at)) is None:
            self._say()
            last = resident.tokens[at - 1 : at].copy()
            self._tree.cut(resident, at - 1)
            if run.reused == at == len(run.prompt):
                run.reused, run.evaluated = run.reused - 1, run.evaluated + 1
            yield from self._speak(resident, last)
        return row

    def _speak(self, resident: Resident, rows: Ids) -> Generator[Want, Got, int]:
        """Evaluate rows of the answer, logits behind each; returns how many. With `width`, always in a batch
        of that many: its further rows are dropped again."""
        job, start = self.run.job, resident.n
        width = min(job.width, self._desk.window - start)
        if width <= len(rows):
            return (yield from self._evaluate(rows, len(rows), divisible=len(rows) > 1))
        padded = np.append(rows, np.repeat(rows[-1:], width - len(rows)))
        yield from self._evaluate(padded, len(padded))
        self._tree.cut(resident, start + len(rows))
        return len(rows)

    def _evaluate(self, rows: Ids, outputs: int, divisible: bool = False) -> Generator[Want, Got, int]:
        """Until some of the rows are evaluated; returns how many."""
        run = self.run
        want = Want(rows, outputs, divisible, alone=not run.job.cache or run.job.width > 0)
        while True:
            run.check()
            got = yield want
            if self.resident is None:
                raise _Displaced
            if got.taken:
                run.steps += 1
                return got.taken
