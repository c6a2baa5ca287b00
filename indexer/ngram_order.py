"""A suffix array over contexts read backwards: where each place of a stream of ids stands in order.

Sources: Manber & Myers, "Suffix arrays" (1990); prefix doubling over the tied groups only, after Larsson &
Sadakane, "Faster suffix sorting" (2007). Here the first pass takes three ids at once, a later one triples the
depth where three ranks fit into 64 bits, and all work in runs: less memory, and sorted within the cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint32]
RUN = 1 << 18
"""Places handled at once, about; groups of equals are not torn apart."""
_COARSE = 16
"""Bits of an id by which the first pass is divided into runs."""


def by_context(stream: Ids, top: int, longest: int) -> Ids:
    """All places of `stream`, ordered by the ids before each, nearest first, at least `longest` deep.

    Ids above `top` count as equal, and as greater than all others. About 15 bytes of memory per place.

    A place's rank is the slot where its group of equals starts, so ranks stay true while groups are split;
    only places still tied are sorted again, by the ranks of the places 0, 1, 2, … depths before them.
    """
    width = (top + 1).bit_length()
    depth = min(3, 64 // width)
    order, first = _by_ids(stream, top, width, depth)
    width = len(stream).bit_length()
    while depth < longest:
        steps = min(64 // width, -(-longest // depth))
        rank = _ranks(order, first)
        for start, end in _runs(first):
            tied = ~first[start:end]
            tied[:-1] |= tied[1:]
            slots = start + np.flatnonzero(tied)
            places = order[slots].astype(np.int64)
            key = rank[places].astype(np.uint64)
            for step in range(1, steps):
                key <<= np.uint64(width)
                key |= rank[np.maximum(places - step * depth, 0)]
            again = np.argsort(key)
            order[slots] = places[again]
            first[slots] |= _starts(key[again])
        depth *= steps
    return order


def _by_ids(stream: Ids, top: int, width: int, depth: int) -> tuple[Ids, NDArray[np.bool_]]:
    """(places ordered by the `depth` ids before each, which of them start a group of equals)."""
    before = np.empty(len(stream), np.uint32)
    before[0] = top + 1
    np.minimum(stream[:-1], np.uint32(top + 1), out=before[1:])
    order, first = np.empty(len(stream), np.uint32), np.empty(len(stream), np.bool_)
    done = 0
    for low, high in _ranges(before, max(width - _COARSE, 0)):
        places = np.flatnonzero((before >= low) & (before < high))
        key = before[places].astype(np.uint64)
        for back in range(1, depth):
            key <<= np.uint64(width)
            key |= before[np.maximum(places - back, 0)]
        again = np.argsort(key)
        order[done : done + len(places)] = places[again]
        first[done : done + len(places)] = _starts(key[again])
        done += len(places)
    return order, first


def _ranges(ids: Ids, shift: int) -> Iterator[tuple[int, int]]:
    """Ranges of ids, end exclusive, that occur 4 × RUN times at most, unless a single one does so."""
    counts = np.zeros((1 << _COARSE) + 1, np.int64)
    for start in range(0, len(ids), RUN):
        counts += np.bincount(ids[start : start + RUN] >> shift, minlength=len(counts))
    low = total = 0
    for coarse in np.flatnonzero(counts).tolist():
        count = int(counts[coarse])
        if total and total + count > 4 * RUN:
            yield low << shift, coarse << shift
            low, total = coarse, 0
        total += count
    yield low << shift, len(counts) << shift


def _runs(first: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """(start, end) of runs of slots, each of whole groups."""
    start, size = 0, len(first)
    while start < size:
        end = start + RUN
        while end < size and not first[end]:
            end += int(np.argmax(first[end : end + RUN])) or RUN
        yield start, min(end, size)
        start = end


def _starts(ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _ranks(order: Ids, first: NDArray[np.bool_]) -> Ids:
    """Rank by place."""
    ranks, last = np.empty(len(order), np.uint32), 0
    for start in range(0, len(order), RUN):
        block = first[start : start + RUN]
        slots = np.arange(start, start + len(block), dtype=np.uint32)
        slots[~block] = 0
        slots[0] = slots[0] or last
        np.maximum.accumulate(slots, out=slots)
        last = int(slots[-1])
        ranks[order[start : start + RUN]] = slots
    return ranks
