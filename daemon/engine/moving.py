"""What is kept of a cache closed up towards its first cells, a piece at a time.

llama.cpp gives out the first free cells and does not say which. So everything below the piece that moves is
taken, everything between there and the piece is free, and the piece comes to stand at the first free cells,
in the order of its tokens. What stands where it will stand already is not touched.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple, Protocol

import numpy as np

from daemon.engine.binding import Context, Ids
from daemon.errors import EngineFailed

PIECE = 256
"""Cells that are in memory at a time: what moving takes beyond the cache."""


class Held(Protocol):
    """A sequence of `n` tokens, and their cells: a beginning that others hold too comes first."""

    sequence: int
    n: int
    cells: Ids


class _Piece(NamedTuple):
    """Cells one behind the other, of tokens one behind the other, with the same `holders`."""

    cell: int
    position: int
    length: int
    holders: list[Held]


def common(one: Ids, other: Ids) -> int:
    """Length of the common beginning."""
    n = min(len(one), len(other))
    differs = one[:n] != other[:n]
    first = int(differs.argmax()) if n else 0
    return first if n and differs[first] else n


def distinct(held: Sequence[Held]) -> int:
    """How many cells they hold together."""
    return len(_cells(held))


def move(context: Context, scratch: int, held: Sequence[Held]) -> int:
    """Give `held`, all that is left in the context but what was buried, the first cells; what several hold is
    moved once. Returns how many cells that takes. Raises EngineFailed when llama.cpp does not take back its
    own."""
    context.exhume()
    top, memory = 0, mmap.mmap(-1, mmap.PAGESIZE)
    for piece in _pieces(held):
        if piece.cell != top:
            memory = _shift(context, scratch, piece, memory)
            for one in piece.holders:
                end = piece.position + piece.length
                one.cells[piece.position : end] = np.arange(top, top + piece.length)
        top += piece.length
    return top


def _cells(held: Sequence[Held]) -> Ids:
    """All that they hold, from the first on."""
    return np.unique(np.concatenate([one.cells[: one.n] for one in held])) if held else np.zeros(0, np.int32)


def _pieces(held: Sequence[Held]) -> Iterator[_Piece]:
    """All that they hold, from the first cell on."""
    begins: set[int] = set()
    for one in held:
        begins.update(one.cells[: one.n][np.diff(one.cells[: one.n], prepend=-2) != 1].tolist())
    for one, other in combinations(held, 2):
        shared = common(one.cells[: one.n], other.cells[: other.n])
        begins.update(int(x.cells[shared]) for x in (one, other) if shared < x.n)
    cells = _cells(held)
    places = np.append(np.searchsorted(cells, sorted(begins)), len(cells)).tolist()
    for place, behind in pairwise(places):
        for at in range(place, behind, PIECE):
            yield _piece(int(cells[at]), min(PIECE, behind - at), held)


def _piece(cell: int, length: int, held: Sequence[Held]) -> _Piece:
    at = {one.sequence: int(np.searchsorted(one.cells[: one.n], cell)) for one in held}
    holders = [x for x in held if at[x.sequence] < x.n and x.cells[at[x.sequence]] == cell]
    return _Piece(cell, at[holders[0].sequence], length, holders)


def _shift(context: Context, scratch: int, piece: _Piece, memory: mmap.mmap) -> mmap.mmap:
    """Through `memory`, or new one if its size is another."""
    start, end = piece.position, piece.position + piece.length
    context.copy(piece.holders[0].sequence, scratch, end, start)
    size = context.state_size(scratch)
    memory = memory if len(memory) == size else mmap.mmap(-1, size)
    if not context.state_get(scratch, memory):
        raise EngineFailed("evaluated text cannot be read from the cache", "See foretype logs")
    context.cut(scratch, 0)
    for one in piece.holders:
        context.cut(one.sequence, start, end)
    if not context.state_set(scratch, memory):
        raise EngineFailed("evaluated text cannot be moved within the cache", "See foretype logs")
    for one in piece.holders:
        context.copy(scratch, one.sequence, end, start)
    context.cut(scratch, 0)
    return memory
