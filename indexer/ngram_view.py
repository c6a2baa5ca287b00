"""One n-gram segment as a reader searches it: bytes in a mapping, found by binary search in place."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial

from indexer.ngram_segments import HEADER, LONGEST, PIVOT, SEPARATOR, WIDTH, Segment

DEAD_RUN = 128
"""Dead places passed over in search of a live neighbour."""
SPARSE = 64
"""Every so many pivots, one is kept as a number of Python's own: faster to search."""
_SPAN = LONGEST * WIDTH
_CONTEXT = struct.Struct(f"{_SPAN}s")
_GAP = SEPARATOR.to_bytes(WIDTH, "little")
_ABOVE = b"\xff" * (_SPAN + 1)


class SegmentView:
    """One segment as the reader sees it. Damage that the header does not show may raise struct.error."""

    def __init__(self, name: str, segment: Segment, sample: int) -> None:
        self.name, self.top = name, segment.header.top
        self._segment = segment
        self._sample = sample
        self._data = segment.data
        self._offsets = segment.offsets()
        self._size = len(self._offsets)
        self._context: Callable[[int], tuple[bytes]] = partial(_CONTEXT.unpack_from, self._data)
        self._pivots = segment.pivots()
        self._blocks = len(self._pivots)
        self._sparse = list(self._pivots[::SPARSE])
        self._from: list[int] = []
        self._to: list[int] = []

    def __len__(self) -> int:
        return self._size

    def without(self, dead: list[tuple[int, int]]) -> SegmentView:
        """The same segment with other dead ranges."""
        view = copy(self)
        view._from = [self._segment.offset(end) for _, end in reversed(dead)]
        view._to = [self._segment.offset(start) for start, _ in reversed(dead)]
        return view

    def _find(self, key: bytes, head: int) -> int:
        """The first slot whose context is not below `key`, of which `head` is the start."""
        pivots, sparse = self._pivots, bisect_left(self._sparse, head) * SPARSE
        low = high = bisect_left(pivots, head, max(sparse - SPARSE, 0), min(sparse, self._blocks))
        if low < self._blocks and pivots[low] == head:
            high = bisect_right(pivots, head, low)
        low, high = max((low - 1) * PIVOT + 1, 0), min(high * PIVOT, self._size)
        return bisect_left(self._offsets, (key,), low, high, key=self._context)

    def _live(self, slot: int) -> bool:
        offset = self._offsets[slot]
        i = bisect_left(self._from, offset)
        return i == 0 or offset > self._to[i - 1]

    def longest(self, key: bytes, number: int, head: int) -> tuple[int, int]:
        """(common ids, slot) of the live place whose context fits `key` best. `number`, `head`: key's own."""
        slot = self._find(key, head)
        left, right = (self._alive(slot - 1, -1), self._alive(slot, 1)) if self._from else (slot - 1, slot)
        size = len(key)
        least, near = 1 << 8 * size, -1
        if left >= 0:
            (context,) = self._context(self._offsets[left])
            least, near = number ^ int.from_bytes(context[:size], "big"), left
        if 0 <= right < self._size:
            (context,) = self._context(self._offsets[right])
            differ = number ^ int.from_bytes(context[:size], "big")
            if differ < least:
                least, near = differ, right
        return (size - (least.bit_length() + 7) // 8) // WIDTH, near

    def _alive(self, slot: int, step: int) -> int:
        """The first live slot from `slot` on; -1 when there is none within DEAD_RUN."""
        for here in range(slot, slot + step * DEAD_RUN, step):
            if not 0 <= here < self._size:
                return -1
            if self._live(here):
                return here
        return -1

    def collect(self, prefix: bytes, near: int, size: int, samples: list[bytes]) -> None:
        """Append what stands behind places whose context starts with `prefix`, up to the sample's bound."""
        room = self._sample - len(samples)
        if room <= 0:
            return
        data, offsets = self._data, self._offsets
        low, high = near, near + 1  # most long matches stand alone
        if near and self._context(offsets[near - 1])[0].startswith(prefix):
            low = self._find(prefix, first_number(prefix))
        if high < self._size and self._context(offsets[high])[0].startswith(prefix):
            above = prefix + _ABOVE
            high = self._find(above, first_number(above))
        slots: Sequence[int] = range(low, high, -(-(high - low) // room) or 1)
        if self._from:
            slots = [slot for slot in slots if self._live(slot)] or [near]
        for slot in slots:
            end = offsets[slot]
            behind = data[max(end - size, HEADER) : end][::-1]
            if _GAP in behind:
                behind = _cut(behind)
            if behind and len(behind) % WIDTH == 0:
                samples.append(behind)


def first_number(key: bytes) -> int:
    """The first 8 bytes as a number, as pivots are; a shorter key comes before all that it begins."""
    return int.from_bytes(key[:8].ljust(8, b"\0"), "big")


def _cut(behind: bytes) -> bytes:
    """What stands before the end of the file."""
    for at in range(0, len(behind), WIDTH):
        if behind[at : at + WIDTH] == _GAP:
            return behind[:at]
    return behind
