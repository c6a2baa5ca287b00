"""Resident sequences and their tokens: the longest match is forked or continued, never evaluated again.

Each resident knows which cells it holds, so that cells shared by forks count once and the cache can be
kept under its size exactly. The radix tree of the later design replaces the linear search, not the interface.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from daemon.engine.binding import Context, Ids
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


class Resident:
    """One evaluated sequence. `choices[n]` is what followed the first n tokens. `widths[i]` is the number of
    rows of the decode call that token i began, 0 inside one: a fresh evaluation can use the same shapes."""

    def __init__(self, sequence: int, room: int) -> None:
        self.sequence = sequence
        self.n = 0
        self.tokens: Ids = np.zeros(room, np.int32)
        self.cells: Ids = np.zeros(room, np.int32)
        self.widths: Ids = np.zeros(room, np.int32)
        self.choices: dict[int, Choice] = {}
        self.used = 0

    def match(self, tokens: Ids) -> int:
        """Length of the common beginning with `tokens`."""
        n = min(self.n, len(tokens))
        differs = np.flatnonzero(self.tokens[:n] != tokens[:n])
        return int(differs[0]) if len(differs) else n

    def generated(self, at: int, token: int) -> bool:
        """Whether `token` stands at `at`, evaluated alone as generation does it."""
        alone = self.widths[at] == 1 and (at + 1 >= self.n or self.widths[at + 1] > 0)
        return bool(self.tokens[at] == token and alone)


class Tree:
    """All residents of one context. Methods are called by the engine thread only."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._free = list(range(context.sequences - 1, -1, -1))
        self.residents: list[Resident] = []
        self._clock = 0
        self._cell = 0

    @property
    def cells_used(self) -> int:
        """Distinct cells held by all residents."""
        parts = [r.cells[: r.n] for r in self.residents]
        return len(np.unique(np.concatenate(parts))) if parts else 0

    def acquire(self, tokens: Ids) -> Resident:
        """A resident that holds as much of the beginning of `tokens` as is evaluated anywhere.

        It is longer than that only when it holds all of `tokens`: then what was generated behind them is
        still there. What does not match is cut from it, or left with the sequence it was forked from.
        """
        best = max(self.residents, key=lambda r: (r.match(tokens), r.used), default=None)
        length = best.match(tokens) if best else 0
        if best is None or length == 0:
            return self._touch(self._new())
        if length == len(tokens):
            return self._touch(best)
        if best.n - length <= max(64, length // 4):
            self.cut(best, length)
            return self._touch(best)
        self._touch(best)
        fork = self._new(keep=best)
        self._context.copy(best.sequence, fork.sequence, length)
        for name in ("tokens", "cells", "widths"):
            getattr(fork, name)[:length] = getattr(best, name)[:length]
        fork.n = length
        fork.choices = {n: c for n, c in best.choices.items() if n <= length}
        return self._touch(fork)

    def fresh(self) -> Resident:
        """An empty sequence for a measurement without the cache; give it back with `drop`."""
        return self._touch(self._new())

    def like(self, tokens: Ids) -> Resident | None:
        """The resident whose beginning fits `tokens` best, untouched."""
        return max(self.residents, key=lambda r: (r.match(tokens), r.used), default=None)

    def make_room(self, rows: int, keep: Resident) -> None:
        """Evict least recently used residents until `rows` more cells are free.

        Raises EngineFailed when `keep` alone leaves no room.
        """
        while self.cells_used + rows > self._context.cells:
            others = [r for r in self.residents if r is not keep]
            if not others:
                raise EngineFailed(f"{keep.n + rows} tokens do not fit {self._context.cells} cells")
            self.drop(min(others, key=lambda r: r.used))

    def extend(self, resident: Resident, tokens: Ids) -> None:
        """Record that `tokens` were evaluated at the end of `resident` by one decode call."""
        n, end = resident.n, resident.n + len(tokens)
        resident.tokens[n:end] = tokens
        resident.cells[n:end] = np.arange(self._cell, self._cell + len(tokens))
        resident.widths[n:end] = 0
        resident.widths[n] = end - n
        self._cell = (self._cell + len(tokens)) & 0x3FFFFFFF
        resident.n = end

    def cut(self, resident: Resident, length: int) -> None:
        """Keep only the first `length` tokens."""
        if length < resident.n:
            self._context.cut(resident.sequence, length)
            resident.n = length
            resident.choices = {n: c for n, c in resident.choices.items() if n <= length}

    def drop(self, resident: Resident) -> None:
        """Forget the whole sequence."""
        self._context.cut(resident.sequence, 0)
        self.residents.remove(resident)
        self._free.append(resident.sequence)

    def _new(self, keep: Resident | None = None) -> Resident:
        if not self._free:
            self.drop(min((r for r in self.residents if r is not keep), key=lambda r: r.used))
        resident = Resident(self._free.pop(), self._context.cells)
        self.residents.append(resident)
        return resident

    def _touch(self, resident: Resident) -> Resident:
        self._clock += 1
        resident.used = self._clock
        return resident
