"""Which rows a tick evaluates: the most urgent lane first, the others from a share of its time.

The most urgent lane that wants anything takes its rows: one for each answer in progress, then prompt slices
up to the tick's budget. An eighth of the time that this takes is credited to all other lanes together; they
take turns, and their rows are paid with what they add to the tick. So no lane starves, a long answer gets a
row per tick where that is cheap, and a keystroke is slowed down by an eighth at most: beside an answer that
waited long for its cells, by a row per tick (lanes.AGED_S).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from daemon.engine.costs import RowCosts
from daemon.engine.frames import LANES

SHARE = 0.125
"""Time of less urgent lanes ÷ that of the most urgent one."""
_PROMPT = 0.25
"""Share of a tick's rows that prompts get beside any number of answers in progress."""
_KEPT = 16
"""One part in so many of a decode is never the most urgent lane's while another lane asks."""


class Ask(NamedTuple):
    """What one run wants, see step.Want; `rows` ≥ 1, and a number. In a tick's list, by urgency in a lane."""

    lane: int
    rows: int
    outputs: int
    divisible: bool = False
    alone: bool = False

    @property
    def speaks(self) -> bool:
        """An answer in progress, no prompt."""
        return self.outputs == self.rows


class Grant(NamedTuple):
    """So many rows of the ask at `place`."""

    place: int
    rows: int


class Batching:
    """Composes ticks. `rows` and `outputs` are the most that one decode may hold."""

    def __init__(self, costs: RowCosts, rows: int, outputs: int) -> None:
        self.costs = costs
        self._rows = rows
        self._outputs = outputs
        self._credit = 0.0
        self._tick = 0
        self._served = [0] * len(LANES)

    def compose(self, asks: Sequence[Ask], budget: int) -> list[Grant]:
        """Rows for some of the asks, at least for one of them; a prompt slice has at most `budget` rows."""
        self._tick += 1
        budget = min(budget, self._rows)
        top = min(ask.lane for ask in asks)
        first = [i for i, ask in enumerate(asks) if ask.lane == top]
        later = [i for i, ask in enumerate(asks) if ask.lane != top]
        later.sort(key=lambda i: (self._served[asks[i].lane], asks[i].lane, not asks[i].speaks))
        if later and asks[later[0]].alone:
            index, rows = later[0], self._slice(asks[later[0]], budget)
            if self._pay(asks[index].lane, self.costs.ms(rows)):
                return [Grant(index, rows)]
            later = []
        alone = next((i for i in first if asks[i].alone), None)
        together = [i for i in first if not asks[i].alone]
        if alone is not None and (not together or self._tick % 2):
            tick = self._tick_of([Grant(alone, self._slice(asks[alone], budget))])
            later = []
        else:
            tick = self._urgent(asks, together, budget, kept=bool(later))
        earned = SHARE * self.costs.ms(tick.rows)
        self._credit = (
            min(self._credit + earned, self.costs.ms(self._rows)) if len(first) < len(asks) else 0.0
        )
        self._others(asks, (i for i in later if not asks[i].alone), tick)
        return tick.grants

    def _slice(self, ask: Ask, budget: int) -> int:
        return min(ask.rows, budget) if ask.divisible else ask.rows

    def _tick_of(self, grants: list[Grant]) -> _Tick:
        return _Tick(grants, self._rows, self._outputs)

    def _urgent(self, asks: Sequence[Ask], first: Sequence[int], budget: int, kept: bool) -> _Tick:
        tick = self._tick_of([])
        if kept:
            tick.most_rows -= self._rows // _KEPT
            tick.most_outputs -= self._outputs // _KEPT
        speaking = [i for i in first if asks[i].speaks]
        each = max(1, min(budget, tick.most_outputs) // max(1, len(speaking)))
        for i in speaking:
            self._add(tick, asks, i, each)
        left = max(budget - tick.rows, int(budget * _PROMPT), 1)
        prompts = [i for i in first if not asks[i].speaks]
        short = self._short(asks, prompts[1:], left // 2)
        for i in (*short, *(i for i in prompts if i not in short)):
            if left > 0:
                left -= self._add(tick, asks, i, left)
        tick.most_rows, tick.most_outputs = self._rows, self._outputs
        return tick

    def _short(self, asks: Sequence[Ask], prompts: Sequence[int], left: int) -> list[int]:
        """Those that half of a tick can finish: they need not wait for the end of the oldest one."""
        found = []
        for i in sorted(prompts, key=lambda i: asks[i].rows):
            if asks[i].rows <= left:
                left -= asks[i].rows
                found.append(i)
        return found

    def _others(self, asks: Sequence[Ask], later: Iterable[int], tick: _Tick) -> None:
        for i in later:
            before = self.costs.ms(tick.rows)
            rows = self._add(tick, asks, i, self.costs.within(before + self._credit) - tick.rows)
            if rows:
                self._pay(asks[i].lane, self.costs.ms(tick.rows) - before)

    def _add(self, tick: _Tick, asks: Sequence[Ask], index: int, most: int) -> int:
        """Rows of the ask that fit into `most` and into the decode."""
        ask = asks[index]
        rows = min(ask.rows, most, tick.most_rows - tick.rows)
        spared = tick.most_outputs - tick.outputs
        if ask.speaks:
            rows = min(rows, spared)
        elif rows == ask.rows and ask.outputs > spared:
            rows -= 1
        if rows < (1 if ask.divisible else ask.rows):
            return 0
        tick.grants.append(Grant(index, rows))
        tick.rows += rows
        tick.outputs += max(0, ask.outputs - (ask.rows - rows))
        return rows

    def _pay(self, lane: int, ms: float) -> bool:
        if ms > self._credit + 1e-9:
            return False
        self._credit -= ms
        self._served[lane] = self._tick
        return True


class _Tick:
    """Grants so far, with their sums, and the most of both that may be granted."""

    def __init__(self, grants: list[Grant], most_rows: int, most_outputs: int) -> None:
        self.grants = grants
        self.most_rows = most_rows
        self.most_outputs = most_outputs
        self.rows = sum(grant.rows for grant in grants)
        self.outputs = 0
