"""A suffix array over contexts read backwards: where each place of a stream of ids stands in order.

Sources: Manber & Myers, "Suffix arrays" (1990); prefix doubling over the tied groups only, after Larsson &
Sadakane, "Faster suffix sorting" (2007). Here the first pass takes three ids at once, and a later one triples
the depth where three ranks fit into 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint32]
RUN = 1 << 18
"""Places sorted at once, after the first pass."""


def by_context(stream: Ids, top: int, longest: int) -> NDArray[np.int64]:
    """All places of `stream`, ordered by the ids before each, nearest first, at least `longest` deep.

    Ids above `top` count as equal, and as greater than all others. About 30 bytes of memory per place.

    A place's rank is the slot where its group of equals starts, so ranks stay true while groups are split;
    only places still tied are sorted again, by the ranks of the places 0, 1, 2, … depths before them.
    """
    size, width = len(stream), (top + 1).bit_length()
    depth = min(3, 64 // width)
    order, first = _by_ids(np.minimum(stream, np.uint32(top + 1)), width, depth)
    width = size.bit_length()
    while depth < longest:
        steps = min(64 // width, -(-longest // depth))
        rank_in, rank_of = _ranks(order, first)
        tied = ~first
        tied[:-1] |= tied[1:]
        slots = np.flatnonzero(tied)
        for run in _runs(slots, first):
            places = order[run]
            key = rank_in[run].astype(np.uint64)
            for step in range(1, steps):
                key <<= np.uint64(width)
                key |= rank_of[np.maximum(places - step * depth, 0)]
            again = np.argsort(key)
            order[run] = places[again]
            first[run] |= _starts(key[again])
        depth *= steps
    return order


def _by_ids(ids: Ids, width: int, depth: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(places ordered by the `depth` ids before each, which of them start a group of equals)."""
    key = np.full(len(ids), ids[0], np.uint64)
    key[1:] = ids[:-1]
    for back in range(2, depth + 1):
        key <<= np.uint64(width)
        key[back:] |= ids[:-back]
    del ids
    order = np.argsort(key)
    first = np.ones(len(order), np.bool_)
    for start in range(0, len(order) - 1, RUN):
        first[start + 1 : start + RUN + 1] = _starts(key[order[start : start + RUN + 1]])[1:]
    return order, first


def _runs(slots: NDArray[np.int64], first: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """`slots` in runs of about RUN (less memory, and sorted within the cache), no group torn apart."""
    start = 0
    while start < len(slots):
        end = start + RUN
        while end < len(slots) and not first[slots[end]]:
            end += np.argmax(first[slots[end : end + RUN]]) or RUN
        yield slots[start:end]
        start = int(end)


def _starts(ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _ranks(order: NDArray[np.int64], first: NDArray[np.bool_]) -> tuple[Ids, Ids]:
    """(rank by slot, rank by place)."""
    by_slot = np.zeros(len(order), np.uint32)
    starts = np.flatnonzero(first)
    by_slot[starts] = starts
    np.maximum.accumulate(by_slot, out=by_slot)
    by_place = np.empty(len(order), np.uint32)
    by_place[order] = by_slot
    return by_slot, by_place
