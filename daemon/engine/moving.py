"""Texts of a cache laid down anew, one behind the other, from the first cell on."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from daemon.engine.binding import Context, Ids
from daemon.errors import EngineFailed


class Held(Protocol):
    """A sequence of `n` tokens, and their cells: a beginning that others hold too comes first."""

    sequence: int
    n: int
    cells: Ids


def common(one: Ids, other: Ids) -> int:
    """Length of the common beginning."""
    n = min(len(one), len(other))
    differs = one[:n] != other[:n]
    first = int(differs.argmax()) if n else 0
    return first if n and differs[first] else n


def distinct(held: Sequence[Held]) -> int:
    """How many cells they hold together."""
    parts = [one.cells[: one.n] for one in held]
    return len(np.unique(np.concatenate(parts))) if parts else 0


def move(context: Context, scratch: int, held: Sequence[Held]) -> int:
    """Drop everything but `held`, and give it the first cells, through memory; what several hold is moved
    once. Returns how many cells that takes. Raises EngineFailed when llama.cpp does not take back its own."""
    parts = []
    for place, one in enumerate(held):
        shared, source = 0, one
        for other in held[:place]:
            length = common(other.cells[: other.n], one.cells[: one.n])
            if length > shared:
                shared, source = length, other
        parts.append((one, shared, source, _read(context, scratch, one, shared)))
    context.clear()
    top = 0
    for one, shared, source, data in parts:
        if shared:
            context.copy(source.sequence, one.sequence, shared)
            one.cells[:shared] = source.cells[:shared]
        if data is not None:
            if not context.state_set(scratch, data):
                raise EngineFailed("evaluated text cannot be moved within the cache", "See foretype logs")
            context.copy(scratch, one.sequence, one.n, shared)
            context.cut(scratch, 0)
        one.cells[shared : one.n] = np.arange(top, top + one.n - shared)
        top += one.n - shared
    return top


def _read(context: Context, scratch: int, one: Held, start: int) -> mmap.mmap | None:
    if start == one.n:
        return None
    context.copy(one.sequence, scratch, one.n, start)
    data = mmap.mmap(-1, context.state_size(scratch))
    whole = context.state_get(scratch, data)
    context.cut(scratch, 0)
    if not whole:
        raise EngineFailed("evaluated text cannot be read from the cache", "See foretype logs")
    return data
