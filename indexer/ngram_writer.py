"""Keeps the n-gram directory: files in, files out, bounded in size, tidied when there is time.

    add_file, remove_file → commit: a new segment, dead ranges, a new manifest → compact: merges when idle

Only one writer at a time. Damage costs what is damaged: `files` no longer holds it, so the caller adds it
again.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from indexer import ngram_segments as segments
from indexer.errors import IndexDamaged
from indexer.ngram_parts import LARGEST, File, Part, Parts
from indexer.records import Record

MAX_BYTES = 128 << 20
"""About two million lines."""
YOUNG = 32_000
"""A segment with fewer live ids is rewritten by the next commit instead of standing beside it."""
FOLDED = 256_000
"""Up to so many ids in all, somewhat larger segments are too."""
BATCH = 480_000
"""Ids that may wait: what is sorted at once decides how much memory a first index takes."""
MOST = 24
"""Segments after a commit; more would slow lookups down."""
DEAD_SHARE = 0.25
"""A segment with more dead ids than this share is rewritten by `compact`."""
TIER = 4
"""Segments are merged until each is at least this many times as large as all smaller ones together."""
_PER_ID = segments.WIDTH + 4 + 8 / segments.PIVOT
_PER_FILE = 48
_AGE_NS = 3_600 * 10**9
"""Files changed within the same hour, as by a checkout, are equally old."""
_FILLED = 0.9
"""How full the directory may get before files are dropped; then to this share of that."""


class NgramFigures(Record, frozen=True):
    """For status. `bytes` is what the segments take on disk; `dropped` counts files that did not fit."""

    files: int
    ids: int
    segments: int
    bytes: int
    dropped: int


class NgramWriter:
    """The writing side of the directory `path`, made when absent. `vocabulary` names the tokenizer (a hash).

    A directory of another vocabulary, or a damaged one, is emptied. Raises OSError when it cannot be written.
    """

    def __init__(self, path: Path, *, vocabulary: str = "", max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts = Parts(path, vocabulary)
        self._new: dict[str, File] = {}
        self._waiting = 0
        self._changed = not self._parts.open()

    def files(self) -> dict[str, bytes]:
        """Path → digest of every file that need not be added again, those that did not fit included."""
        found = dict(self._parts.dropped)
        found.update((path, entry.digest) for path, (_, entry) in self._parts.where.items())
        found.update((path, digest) for path, _, digest, _ in self._new.values())
        return found

    def figures(self) -> NgramFigures:
        """Counts of what is committed."""
        parts = self._parts
        return NgramFigures(
            files=len(parts.where),
            ids=sum(part.live for part in parts.all),
            segments=len(parts.all),
            bytes=sum(part.size for part in parts.all),
            dropped=len(parts.dropped),
        )

    def add_file(self, path: str, ids: bytes, *, digest: bytes = b"", changed_ns: int = 0) -> None:
        """Add or replace; nothing to do when `digest` is the known one. `ids` are little-endian int32.

        `changed_ns` (by default now) decides who is dropped first. Takes effect at `commit`, which happens by
        itself when much is waiting. Raises ValueError for ids that no vocabulary has.
        """
        if digest and self._digest(path) == digest:
            return
        numbers = np.frombuffer(ids, "<u4").astype(np.uint32, copy=False)
        if len(numbers) and int(numbers.max()) >= segments.SEPARATOR:
            raise ValueError("an id is beyond every vocabulary")
        self.remove_file(path)
        self._new[path] = (path, numbers, digest, changed_ns or time.time_ns())
        self._waiting += len(numbers)
        self._changed = True
        if self._waiting >= BATCH:
            self.commit()

    def remove_file(self, path: str) -> None:
        """Forget a file, known or not. Takes effect at `commit`."""
        waiting = self._new.pop(path, None)
        if waiting is not None:
            self._waiting -= len(waiting[1])
        dropped = self._parts.dropped.pop(path, None) is not None
        buried = self._parts.bury(path)
        self._changed |= waiting is not None or dropped or buried

    def commit(self) -> bool:
        """Make all changes visible to readers at once; False when there were none.

        Raises OSError (disk full, read-only): nothing is lost, readers keep the last state, try again later.
        """
        self._changed |= self._parts.lose_missing()
        if not self._changed:
            return False
        self._drop_oldest()
        self._replace(self._young(), list(self._new.values()))
        self._new, self._waiting, self._changed = {}, 0, False
        while len(self._parts.all) > MOST and self.compact():
            pass
        while self.figures().bytes > self._max_bytes and self._rewrite_worst(0):
            pass
        return True

    def compact(self) -> bool:
        """One bounded step of tidying (about LARGEST ids are sorted at most); False when nothing needs it.

        Call it when the machine is idle, until it returns False. Raises OSError; nothing is lost then.
        """
        if self._rewrite_worst(DEAD_SHARE):
            return True
        parts = sorted(self._parts.all, key=lambda part: part.live)
        for i in range(len(parts) - 1):
            group, total = [parts[i]], parts[i].live
            for part in parts[i + 1 :]:
                if part.live >= TIER * total or total + part.live > LARGEST:
                    break
                group.append(part)
                total += part.live
            if len(group) > 1:
                self._replace(group, [])
                return True
        return False

    def _replace(self, old: list[Part], files: list[File]) -> None:
        """Rewrite; a damaged segment costs its files."""
        try:
            self._parts.replace(old, files)
        except IndexDamaged:
            for part in old:
                for entry in part.alive():
                    self._parts.bury(entry.path)
            self._parts.replace(old, files)

    def _young(self) -> list[Part]:
        """Small segments that the next commit takes in, so that few stand beside the large ones."""
        found: list[Part] = []
        total = self._waiting
        for part in sorted(self._parts.all, key=lambda part: part.live):
            if part.live >= YOUNG and (total + part.live > FOLDED or part.live > TIER * total):
                break
            found.append(part)
            total += part.live
        return found

    def _rewrite_worst(self, share: float) -> bool:
        """Rewrite the segment with most dead ids, when they are more than `share` of it."""
        worst = max(self._parts.all, key=Part.dead_ids, default=None)
        if worst is None or worst.dead_ids() <= share * (worst.live + worst.dead_ids()):
            return False
        self._replace([worst], [])
        return True

    def _digest(self, path: str) -> bytes | None:
        if path in self._new:
            return self._new[path][2]
        if path in self._parts.where:
            return self._parts.where[path][1].digest
        return self._parts.dropped.get(path)

    def _drop_oldest(self) -> None:
        """Drop the least recently changed files when all would take more than the bound.

        Among equally old ones those of one segment after another: then few segments are rewritten.
        """
        place = {id(part): -number for number, part in enumerate(self._parts.all)}
        ages = [
            (e.changed_ns // _AGE_NS, place[id(part)], e.changed_ns, path, _cost(path, e.length))
            for path, (part, e) in self._parts.where.items()
        ]
        ages += [
            (ns // _AGE_NS, 1, ns, path, _cost(path, len(ids))) for path, ids, _, ns in self._new.values()
        ]
        total, most = sum(age[-1] for age in ages), self._max_bytes * _FILLED
        if total <= most:
            return
        for *_, path, cost in sorted(ages):
            digest = self._digest(path) or b""
            self.remove_file(path)
            self._parts.dropped[path] = digest
            total -= cost
            if total <= most * _FILLED:
                return


def _cost(path: str, ids: int) -> float:
    return ids * _PER_ID + len(path.encode("utf-8", "surrogateescape")) + _PER_FILE
