"""Resident sequences and their tokens: the longest match is forked or continued, never evaluated again.

Each resident knows which cells it holds, so that cells shared by forks count once and the cache can be
kept under its size exactly. llama.cpp gives out cells from the first to the last, and goes back to what is
dropped; here only the cells given out last are ever dropped, others wait in a grave until all are given out
anew (moving.py). So the cells of a text are in the order of its tokens, and what is added up over them is
added up in the same order wherever the text lies. A vectorised comparison with each resident takes 5 µs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daemon.engine.binding import Context, Floats, Ids
from daemon.engine.moving import common, distinct, move
from daemon.errors import EngineFailed


class Choice(NamedTuple):
    """A greedy choice at some position, valid again wherever the same tokens stand before it."""

    token: int
    owed: bytes
    margin: float | None

    def holds_for(self, owed: bytes, piece: bytes, with_margin: bool) -> bool:
        """Whether the same choice would be made with `owed` bytes to reproduce.

        It would when at least the same bytes were owed before: among fewer allowed tokens that still hold the
        best one, that one is best.
        """
        agrees = not owed or (bool(piece) and (piece.startswith(owed) or owed.startswith(piece)))
        same = self.margin is not None and owed == self.owed
        return agrees and owed.startswith(self.owed) and (same or not with_margin)


_FULL = 7 / 8
"""Share of the cells that are given out when a quiet moment is taken to give them out anew …"""
_KEPT, _ASKED, _BEST = 1 / 4, 1 / 2, 3 / 4
"""… and of those that idle residents may keep then: what nobody asked for since the last time; what somebody
did; what is worth most, together with all that runs. Evaluating takes a hundred times as long as moving."""


class Resident:
    """One evaluated sequence. `choices[n]` is what followed the first n tokens. `widths[i]` is the number of
    rows of the decode call in which token i was its sequence's first, 0 for the others: a fresh evaluation
    can use the same shapes. `spoken[i]`: logits were wanted behind token i and behind all of its call, as
    generation does it."""

    def __init__(self, sequence: int, room: int) -> None:
        self.sequence = sequence
        self.n = 0
        self.busy = False
        """Of a running request: neither evicted, nor cut or continued by another one, only forked."""
        self.background = False
        """Made for what nobody waits for, and only used for that so far."""
        self.keep = True
        """It may leave the context as pages; once False, for all that goes on from it too."""
        self.tokens: Ids = np.zeros(room, np.int32)
        self.cells: Ids = np.zeros(room, np.int32)
        self.widths: Ids = np.zeros(room, np.int32)
        self.spoken: npt.NDArray[np.bool_] = np.zeros(room, np.bool_)
        self.choices: dict[int, Choice] = {}
        self.used = 0
        self.behind: tuple[int, Floats] | None = None
        """(n, rows): logits behind the first n tokens, the first n + 1, …; until the next decode."""

    def match(self, tokens: Ids) -> int:
        """Length of the common beginning with `tokens`."""
        return common(self.tokens[: self.n], tokens)

    def generated(self, at: int, token: int) -> bool:
        """Whether `token` stands at `at`, evaluated as generation does it."""
        return bool(self.tokens[at] == token and self.spoken[at])

    def row(self, at: int) -> Floats | None:
        """Logits behind the first `at` tokens; None when the context does not hold them any more."""
        if self.behind is None or self.n < at:
            return None
        first, rows = self.behind
        return rows[at - first] if 0 <= at - first < len(rows) else None


class Tree:
    """All residents of one context. Methods are called by the engine thread only."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.scratch = context.sequences - 1
        """A sequence that no resident ever has: pages go through it."""
        self._free = list(range(self.scratch - 1, -1, -1))
        self.residents: list[Resident] = []
        self._clock = 0
        self._holders = np.zeros(context.cells, np.int32)
        """Per cell, how many residents hold it."""
        self._top = 0
        """Cells from here on are free."""
        self._moved = 0
        """The clock when cells were last given out anew."""
        self.leaving: Callable[[Resident], None] = lambda resident: None
        """Called with what is about to be evicted."""

    @property
    def cells_used(self) -> int:
        """Distinct cells held by all residents."""
        return int(np.count_nonzero(self._holders[: self._top]))

    @property
    def cells_busy(self) -> int:
        """Distinct cells held by the residents of running requests."""
        return distinct([r for r in self.residents if r.busy])

    def acquire(self, tokens: Ids, background: bool = False) -> Resident:
        """A busy resident that holds as much of the beginning of `tokens` as is evaluated anywhere.

        It is longer than that only when it holds all of `tokens`: then what was generated behind them is
        still there. What does not match is cut from it, or left with the sequence it was forked from: always
        for work in the `background`, which must not take away what was answered.
        """
        best = self.like(tokens)
        length = best.match(tokens) if best else 0
        whole = length == len(tokens)
        few = 0 if background else max(64, length // 4)
        if best is None or length == 0:
            found = self.fresh()
        elif best.busy or not (whole or best.n - length <= few):
            found = self._fork(best, best.n if whole else length)
        else:
            if not whole:
                self.cut(best, length)
            found, background = self._begun(best), background and best.background
        found.background = background
        return found

    def fresh(self) -> Resident:
        """An empty busy resident."""
        return self._begun(self._new())

    def like(self, tokens: Ids) -> Resident | None:
        """The resident whose beginning fits `tokens` best, untouched."""
        return max(
            self.residents,
            key=lambda r: (r.match(tokens), not r.busy, not r.background, r.used),
            default=None,
        )

    def make_room(self, rows: int) -> bool:
        """Until `rows` more cells are free: False when those of running requests leave no room."""
        return self._top + rows <= self._context.cells or self._tidy(rows)

    def settle(self) -> None:
        """In a quiet moment: make room before anybody waits for it."""
        if self._top > _FULL * self._context.cells:
            self._tidy(0)

    def _tidy(self, rows: int) -> bool:
        """Give all cells out anew, to as much as may stay: running requests, then what is worth most."""
        kept = [r for r in self.residents if r.busy]
        running, needed = len(kept), distinct(kept) + rows
        if needed > self._context.cells:
            return False
        idle = [r for r in self.residents if not r.busy]
        for resident in sorted(idle, key=self._worth, reverse=True):
            share = _ASKED if resident.used > self._moved else _KEPT
            most = min(needed / self._context.cells + share, _FULL)
            if len(kept) == running:
                most = max(most, _BEST)
            if distinct([*kept, resident]) + rows <= most * self._context.cells:
                kept.append(resident)
            else:
                self.evict(resident)
        self._top, self._moved = move(self._context, self.scratch, kept), self._clock
        self._holders[:] = 0
        for resident in kept:
            self._holders[resident.cells[: resident.n]] += 1
        return True

    def skip(self, cells: int) -> None:
        """So many were given out for nothing."""
        self._top += cells

    def extend(self, resident: Resident, tokens: Ids, width: int = 0, spoken: bool = False) -> None:
        """Record that `tokens` were evaluated at the end of `resident` by a decode call of `width` rows."""
        n, k = resident.n, len(tokens)
        end = n + k
        self._holders[self._top : self._top + k] = 1
        resident.tokens[n:end] = tokens
        resident.cells[n:end] = np.arange(self._top, self._top + k)
        self._top += k
        resident.widths[n:end] = 0
        resident.widths[n] = width or k
        resident.spoken[n:end] = spoken
        resident.n = end

    def cut(self, resident: Resident, length: int) -> None:
        """Keep only the first `length` tokens."""
        if length < resident.n:
            self._let_go(resident, length)
            resident.n = length
            resident.choices = {n: c for n, c in resident.choices.items() if n <= length}

    def release(self, resident: Resident) -> None:
        """Its request is over; it stays evaluated."""
        resident.busy = False

    def evict(self, resident: Resident) -> None:
        """Drop what is still worth something."""
        self.leaving(resident)
        self.drop(resident)

    def drop(self, resident: Resident) -> None:
        """Forget the whole sequence."""
        self._let_go(resident, 0)
        self.residents.remove(resident)
        self._free.append(resident.sequence)

    def forget_logits(self) -> None:
        """A decode is about to overwrite them."""
        for resident in self.residents:
            resident.behind = None

    def _fork(self, source: Resident, length: int) -> Resident:
        self._begun(source, source.busy)
        fork = self._begun(self._new(keep=source))
        self._context.copy(source.sequence, fork.sequence, length)
        for name in ("tokens", "cells", "widths", "spoken"):
            getattr(fork, name)[:length] = getattr(source, name)[:length]
        self._holders[fork.cells[:length]] += 1
        fork.n, fork.behind, fork.keep = length, source.behind, source.keep
        fork.choices = {n: c for n, c in source.choices.items() if n <= length}
        return fork

    def _let_go(self, resident: Resident, start: int) -> None:
        """Of the cells behind its first `start` tokens. What others hold comes before what only it holds."""
        cells = resident.cells[start : resident.n]
        self._holders[cells] -= 1
        alone = int(np.count_nonzero(self._holders[cells] == 0))
        if alone and cells[-alone] == self._top - alone:
            self._top -= alone
        elif alone:
            self._context.bury(resident.sequence, resident.n - alone, resident.n)
        self._context.cut(resident.sequence, start)

    def _worth(self, resident: Resident) -> float:
        """What evicting it loses: the tokens that only it holds, all equally costly to evaluate again, ÷ the
        number of requests since its last."""
        alone = np.count_nonzero(self._holders[resident.cells[: resident.n]] == 1)
        return float(alone) / (self._clock - resident.used + 1)

    def _new(self, keep: Resident | None = None) -> Resident:
        if not self._free:
            idle = [r for r in self.residents if not r.busy and r is not keep]
            if not idle:
                raise EngineFailed("all sequences are busy")
            self.evict(min(idle, key=self._worth))
        resident = Resident(self._free.pop(), self._context.cells)
        self.residents.append(resident)
        return resident

    def _begun(self, resident: Resident, busy: bool = True) -> Resident:
        self._clock += 1
        resident.used, resident.busy = self._clock, busy
        return resident
