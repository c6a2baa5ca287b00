"""What usually follows: token sequences of the indexed files, looked up by the longest match of a context.

    last ids → Match: how many of them were found, and what stood behind them, with counts

The engine drafts from this. A reader maps the segments that the manifest lists (see ngram_segments.py for the
format and the sources of the algorithm) and takes no lock; it notices a new manifest by its file's state,
looked at every POLL_S. Replaced segments stay mapped until then. Memory beyond the mapping is some kB.
"""

from __future__ import annotations

import logging
import os
import struct
import sys
import time
from array import array
from pathlib import Path

from indexer.errors import IndexDamaged
from indexer.ngram_parts import MANIFEST
from indexer.ngram_segments import LONGEST, SHORTEST, WIDTH, Segment, read_manifest
from indexer.ngram_view import SegmentView, first_number
from indexer.ngram_writer import NgramFigures, NgramWriter
from indexer.records import Record

__all__ = ["Match", "NgramFigures", "NgramReader", "NgramWriter"]

POLL_S = 0.05
SAMPLE = 12
"""Occurrences looked at per lookup; spread evenly when there are more."""
BRANCHES = 3
"""Continuations returned by default; each starts with another id."""


class Match(Record, frozen=True):
    """What follows a context. `length` of its last ids were found `seen` times (among those sampled).

    Each continuation starts with another id, the most frequent first, and is the most frequent path from
    there while more than half of that first id's occurrences agree; its count: how many agree to the end.
    """

    length: int = 0
    seen: int = 0
    continuations: tuple[tuple[tuple[int, ...], int], ...] = ()


NOTHING = Match()
log = logging.getLogger(__name__)


class NgramReader:
    """Looks contexts up in an n-gram directory. Not shared between threads; never raises on damage.

    `vocabulary` must be the writer's, otherwise nothing is found. `sample` bounds the work per lookup.
    """

    def __init__(self, path: Path, *, vocabulary: str = "", sample: int = SAMPLE) -> None:
        self._path = path
        self._vocabulary = vocabulary
        self._sample = sample
        self._views: tuple[SegmentView, ...] = ()
        self._state: tuple[int, int, int] | None = None
        self._looked = 0.0

    def refresh(self) -> bool:
        """Take up a new manifest now; True when there was one. Lookups do this by themselves every POLL_S."""
        self._looked = time.monotonic()
        manifest = self._path / MANIFEST
        try:
            stat = manifest.stat()
            state: tuple[int, int, int] | None = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except OSError:
            state = None
        if state == self._state:
            return False
        self._state = state
        known = {view.name: view for view in self._views}
        self._views = _load(self._path, self._vocabulary, known, self._sample)
        return True

    def close(self) -> None:
        """Let go of the mapping; a later lookup opens it again."""
        self._views, self._state, self._looked = (), None, 0.0

    def continuations(self, last_ids: list[int] | bytes, k: int) -> list[tuple[tuple[int, ...], int]]:
        """What stood behind the longest match of `last_ids`: up to `k` ids each, with counts. See `match`."""
        return list(self.match(last_ids, k).continuations)

    def match(self, last_ids: list[int] | bytes, k: int, most: int = BRANCHES) -> Match:
        """The longest match of 2–16 last ids (a list, or little-endian int32 bytes) that has a next id.

        Up to `most` continuations of up to `k` ids. Nothing found: an empty Match.
        """
        if time.monotonic() - self._looked > POLL_S:
            self.refresh()
        key = _key(last_ids)
        if len(key) < SHORTEST * WIDTH or k < 1:
            return NOTHING
        try:
            return self._match(key, k * WIDTH, most)
        except struct.error:
            log.warning("the n-grams are damaged")
            self._views = ()
            return NOTHING

    def _match(self, key: bytes, size: int, most: int) -> Match:
        length, found = SHORTEST, []
        number, head = int.from_bytes(key, "big"), first_number(key)
        for view in self._views:
            common, near = view.longest(key, number, head)
            if common > length:
                length, found = common, [(view, near)]
            elif common == length:
                found.append((view, near))
        samples: list[bytes] = []
        for view, near in found:
            view.collect(key[: length * WIDTH], near, size, samples)
        if not samples:
            return NOTHING
        top = max(view.top for view, _ in found)
        return Match(length=length, seen=len(samples), continuations=_paths(samples, top, most))


def _load(path: Path, vocabulary: str, known: dict[str, SegmentView], sample: int) -> tuple[SegmentView, ...]:
    """Views of all usable segments. One that vanished under us means that there is a newer manifest."""
    views: list[SegmentView] = []
    for _ in range(3):
        try:
            manifest = read_manifest(path / MANIFEST)
        except IndexDamaged:
            return ()
        if manifest is None or manifest.vocabulary != vocabulary:
            return ()
        views, missing = [], False
        for listed in manifest.segments:
            try:
                view = known.get(listed.name) or SegmentView(listed.name, Segment(path / listed.name), sample)
                views.append(view.without(listed.dead))
            except IndexDamaged:
                missing = missing or not os.path.lexists(path / listed.name)
        if not missing:
            break
    return tuple(sorted(views, key=len, reverse=True))  # a short match has samples enough in the largest


def _key(last_ids: list[int] | bytes) -> bytes:
    """The last ids, nearest first, big-endian; empty when one of them cannot be an id."""
    if isinstance(last_ids, list):
        numbers = array("i", last_ids[-LONGEST:])
        if sys.byteorder == "big":
            numbers.byteswap()
        last_ids = numbers.tobytes()
    key = bytearray(last_ids[: -4 * LONGEST - 1 : -1])
    beyond = key[::4]
    del key[::4]
    return b"" if any(beyond) else bytes(key)


def _common(one: bytes, other: bytes) -> int:
    """How many ids agree from the start."""
    size = min(len(one), len(other))
    differ = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return (size - (differ.bit_length() + 7) // 8) // WIDTH


def _paths(samples: list[bytes], top: int, most: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """The most frequent first ids (among equals the one sampled first), each followed while most agree."""
    groups: dict[bytes, list[bytes]] = {}
    for sample in samples:
        first = sample[:WIDTH]
        if first in groups:
            groups[first].append(sample)
        else:
            groups[first] = [sample]
    found = []
    for group in sorted(groups.values(), key=len, reverse=True)[:most]:
        path, agree = _path(group) if len(group) > 1 else (group[0], 1)
        ids = _ids(path)
        if max(ids) <= top:
            found.append((ids, agree))
    return tuple(found)


def _path(group: list[bytes]) -> tuple[bytes, int]:
    half = len(group) / 2
    while True:
        low, high = min(group), max(group)
        agreed = _common(low, high) * WIDTH
        if agreed >= len(high):
            return high, len(group)
        votes: dict[bytes, list[bytes]] = {}
        for sample in group:
            if len(sample) > agreed:
                votes.setdefault(sample[agreed : agreed + WIDTH], []).append(sample)
        best = max(votes.values(), key=len)
        if len(best) <= half:
            return high[:agreed], len(group)
        group = best


def _ids(path: bytes) -> tuple[int, ...]:
    wide = bytearray(len(path) // WIDTH * 4)
    for i in range(WIDTH):
        wide[i::4] = path[i::WIDTH]
    numbers = array("i", bytes(wide))
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)
