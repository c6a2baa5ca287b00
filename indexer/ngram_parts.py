"""The n-gram segments that count, and what is alive in them: opened, replaced, published, cleaned up.

A new segment is complete on disk before the manifest names it, and the manifest is replaced in one step; what
no manifest names is removed. So a crash at any moment leaves the state before or after.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from indexer import ngram_segments as segments
from indexer.errors import IndexDamaged
from indexer.ngram_order import Ids
from indexer.ngram_segments import Entry, Listed, Manifest, Segment

log = logging.getLogger(__name__)

MANIFEST = "manifest"
LARGEST = 2_000_000
"""Ids of a segment, about; building one takes about 25 bytes of memory per id."""

File = tuple[str, Ids, bytes, int]
"""(path, ids, digest, changed_ns)"""


@dataclass(slots=True, eq=False)
class Part:
    """A segment that counts. `dead` holds the starts of the files that no longer do."""

    name: str
    size: int
    """Bytes on disk."""
    entries: dict[int, Entry]
    dead: set[int] = field(default_factory=set)
    live: int = 0
    """Ids of files that count."""

    def alive(self) -> list[Entry]:
        """The files that count."""
        return [entry for start, entry in self.entries.items() if start not in self.dead]

    def dead_ids(self) -> int:
        """Ids of files that no longer count."""
        return sum(self.entries[start].length for start in self.dead)

    def listed(self) -> Listed:
        """As the manifest names it."""
        ranges = sorted((start, start + self.entries[start].length) for start in self.dead)
        return Listed(self.name, ranges)


class Parts:
    """The directory's state. `where` holds each living file's place; `dropped` files that did not fit."""

    def __init__(self, path: Path, vocabulary: str) -> None:
        self._path = path
        self._vocabulary = vocabulary
        self.all: list[Part] = []
        self.where: dict[str, tuple[Part, Entry]] = {}
        self.dropped: dict[str, bytes] = {}

    def open(self) -> bool:
        """Take over what is there and whole; False when something was lost. Raises OSError."""
        self._path.mkdir(parents=True, exist_ok=True)
        whole = True
        try:
            manifest = segments.read_manifest(self._path / MANIFEST)
        except IndexDamaged as error:
            log.warning("starting the n-grams afresh: %s", error)
            manifest, whole = None, False
        if manifest is None or manifest.vocabulary != self._vocabulary:
            manifest = Manifest()
            (self._path / MANIFEST).unlink(missing_ok=True)
        self.dropped = manifest.dropped
        for listed in manifest.segments:
            try:
                self._take(listed)
            except IndexDamaged as error:
                log.warning("part of the n-grams is lost and will be made again: %s", error)
                whole = False
        self._clean()
        return whole

    def _take(self, listed: Listed) -> None:
        segment = Segment(self._path / listed.name)
        try:
            segment.verify()
            entries = {entry.start: entry for entry in segment.entries()}
            part = Part(listed.name, len(segment.data), entries, {start for start, _ in listed.dead})
        finally:
            segment.data.close()
        if not part.dead <= part.entries.keys():
            raise IndexDamaged(f"the manifest does not fit the n-gram segment {listed.name}")
        alive = part.alive()
        part.live = sum(entry.length for entry in alive)
        self.all.append(part)
        self.where.update((entry.path, (part, entry)) for entry in alive)

    def bury(self, path: str) -> bool:
        """Let a file no longer count; True when it did. Readers see it after the next `replace`."""
        if path not in self.where:
            return False
        part, entry = self.where.pop(path)
        part.dead.add(entry.start)
        part.live -= entry.length
        return True

    def lose_missing(self) -> bool:
        """Forget segments that somebody deleted, so that their files are added again; True when there are."""
        self._path.mkdir(parents=True, exist_ok=True)
        lost = [part for part in self.all if not (self._path / part.name).is_file()]
        for part in lost:
            log.warning("the n-gram segment %s is gone", part.name)
            self.all.remove(part)
            self.where = {path: place for path, place in self.where.items() if place[0] is not part}
        return bool(lost)

    def replace(self, old: Sequence[Part], files: Sequence[File]) -> None:
        """Put `files` and what is alive in `old` into new segments; publish. Raises OSError, IndexDamaged."""
        rest = [part for part in self.all if part not in old]
        every = list(files)
        for part in old:
            if alive := part.alive():
                segment = Segment(self._path / part.name)
                every += [(e.path, segment.ids(e), e.digest, e.changed_ns) for e in alive]
                segment.data.close()
        made = [self._write(batch) for batch in _batches(every)]
        listed = [part.listed() for part in (*made, *rest)]
        manifest = Manifest(vocabulary=self._vocabulary, segments=listed, dropped=self.dropped)
        segments.write(self._path / MANIFEST, segments.manifest_bytes(manifest))
        self.all = [*made, *rest]
        for part in made:
            self.where.update((entry.path, (part, entry)) for entry in part.entries.values())
        self._clean()

    def _write(self, files: Sequence[File]) -> Part:
        name = f"{secrets.token_hex(8)}.seg"
        pieces, entries = segments.build(files)
        segments.write(self._path / name, pieces)
        live = sum(entry.length for entry in entries)
        return Part(name, sum(map(len, pieces)), {entry.start: entry for entry in entries}, live=live)

    def _clean(self) -> None:
        """Remove what no manifest names. What a reader holds open (Windows) goes the next time."""
        named = {part.name for part in self.all}
        for path in self._path.iterdir():
            if path.name not in named and path.name.endswith((".seg", ".part")):
                try:
                    path.unlink()
                except OSError as error:
                    log.debug("an old n-gram segment stays for now: %s", error)


def _batches(files: Sequence[File]) -> list[list[File]]:
    """Runs of files with about LARGEST ids at most."""
    batches: list[list[File]] = []
    room = 0
    for file in files:
        if len(file[1]) > room or not batches:
            batches.append([])
            room = LARGEST
        batches[-1].append(file)
        room -= len(file[1])
    return batches
