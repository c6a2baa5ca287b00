"""The n-gram directory's format: immutable segments, and a manifest that says which of them count.

    segment  = header (64 bytes) | pivots, 8 each | ids, 3 each, last first | offsets, 4 each | file table
    manifest = magic | crc32 | msgpack: format, vocabulary, segments with their dead ranges, dropped files

Ids are stored backwards and big-endian, all else little-endian. From an offset on, the file holds the context
of one place, the nearest id first; what follows that place stands before the offset. Offsets are ordered by
those contexts, so the longest match of any context is next to its insertion point, and a comparison is one
comparison of bytes. Every PIVOT-th context's first 8 bytes stand together as a number, to search there first.
Places with fewer than two ids of their file before them have no offset. The file table is msgpack.

Sources. Drafting from a corpus by the longest suffix: REST (He et al., arXiv 2311.08252: a suffix array over
a datastore), SAM Decoding (Hu et al., arXiv 2411.10666: the exact longest suffix). llama.cpp's ngram-map
(pull requests 18471 and 19164) looks one fixed length up in the own history instead. Files come and go as in
a log-structured merge tree (O'Neil et al. 1996).
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged
from indexer.ngram_order import RUN, Ids, by_context

FORMAT = 1
LONGEST = 16
"""Ids of context by which a segment is ordered."""
SHORTEST = 2
WIDTH = 3
"""Bytes of an id."""
SEPARATOR = 0xFFFFFF
"""Stands before the first file and after each; never an id."""
PIVOT = 16
HEADER = 64
_HEAD = struct.Struct("<8sIIIIII")
_MAGIC = b"FTngram\n"
_CRC = struct.Struct("<I")


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One file of a segment: its ids are `start .. start + length` of the segment's."""

    path: str
    start: int
    length: int
    digest: bytes
    changed_ns: int


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """A segment that counts, and the ranges of ids in it that no longer do, in order."""

    name: str
    dead: list[tuple[int, int]] = []


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What makes up the n-grams now, newest segment first. `dropped`: files that did not fit, → digest."""

    format: int = FORMAT
    vocabulary: str = ""
    segments: list[Listed] = []
    dropped: dict[str, bytes] = {}


class Header(NamedTuple):
    """Counts at the start of a segment."""

    ids: int
    offsets: int
    table: int
    """Bytes of the file table."""
    top: int
    """Greatest id."""
    crc: int
    """Of everything behind the header."""


class Segment:
    """A mapped segment. Raises IndexDamaged when its header or length is wrong; `verify` reads all of it."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise IndexDamaged(f"n-gram segment {path.name} cannot be mapped: {error}") from error
        if hasattr(mmap, "MADV_WILLNEED"):
            self.data.madvise(mmap.MADV_WILLNEED)
        self.header = _header(self.data, path.name)
        self._ids = HEADER + 8 * _pivots(self.header.offsets)
        self._offsets = self._ids + _padded(self.header.ids * WIDTH)
        self._table = self._offsets + 4 * self.header.offsets

    def verify(self) -> None:
        """Raise IndexDamaged unless the content is what was written."""
        with memoryview(self.data) as view, view[HEADER:] as body:
            if zlib.crc32(body) != self.header.crc:
                raise IndexDamaged("an n-gram segment's content does not fit its checksum")

    def offsets(self) -> Sequence[int]:
        """All offsets; a view of the mapping."""
        return self._numbers("I", self._offsets, self._table)

    def pivots(self) -> Sequence[int]:
        """The first 8 bytes of every PIVOT-th context, as numbers in order; a view of the mapping."""
        return self._numbers("Q", HEADER, self._ids)

    def _numbers(self, kind: Literal["I", "Q"], start: int, end: int) -> Sequence[int]:
        view = memoryview(self.data)[start:end]
        if sys.byteorder == "little":
            return view.cast(kind)
        turned = array(kind, bytes(view))
        turned.byteswap()
        return turned

    def entries(self) -> list[Entry]:
        """The file table. Raises IndexDamaged."""
        try:
            return msgspec.msgpack.decode(self.data[self._table :], type=list[Entry])
        except msgspec.MsgspecError as error:
            raise IndexDamaged("an n-gram segment's file table is damaged") from error

    def offset(self, place: int) -> int:
        """Where the context of a place starts in the file."""
        return self._ids + (self.header.ids - place) * WIDTH

    def ids(self, entry: Entry) -> Ids:
        """A file's ids."""
        wide = np.zeros((entry.length, 4), np.uint8)
        raw = self.data[self.offset(entry.start + entry.length) : self.offset(entry.start)]
        wide[:, :WIDTH] = np.frombuffer(raw, np.uint8)[::-1].reshape(-1, WIDTH)
        return wide.view("<u4").reshape(-1).astype(np.uint32, copy=False)


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def _pivots(offsets: int) -> int:
    return -(-offsets // PIVOT)


def _header(data: mmap.mmap, name: str) -> Header:
    if len(data) < HEADER or data[: len(_MAGIC)] != _MAGIC:
        raise IndexDamaged(f"{name} is not an n-gram segment")
    (crc,) = _CRC.unpack(data[HEADER - 4 : HEADER])
    if zlib.crc32(data[: HEADER - 4]) != crc:
        raise IndexDamaged(f"the header of n-gram segment {name} is damaged")
    _, version, *fields = _HEAD.unpack(data[: _HEAD.size])
    if version != FORMAT:
        raise IndexDamaged(f"n-gram segment {name} has format {version}, not {FORMAT}")
    header = Header(*fields)
    body = 8 * _pivots(header.offsets) + _padded(header.ids * WIDTH) + 4 * header.offsets + header.table
    if len(data) != HEADER + body:
        raise IndexDamaged(f"n-gram segment {name} has the wrong length")
    return header


def build(files: Sequence[tuple[str, Ids, bytes, int]]) -> tuple[list[memoryview], list[Entry]]:
    """(content in pieces, file table) of a segment of (path, ids below SEPARATOR, digest, changed_ns)."""
    gap = np.array([SEPARATOR], np.uint32)
    parts, entries, start = [np.full(LONGEST, SEPARATOR, np.uint32)], [], LONGEST
    for path, ids, digest, changed_ns in files:
        entries.append(Entry(path, start, len(ids), digest, changed_ns))
        parts += (ids, gap)
        start += len(ids) + 1
    stream = np.concatenate(parts)
    del parts
    top = max((int(ids.max()) for _, ids, _, _ in files if len(ids)), default=0)
    places = _ordered(stream, top)
    pivots = _firsts(stream, places[::PIVOT])
    narrow = stream.astype("<u4", copy=False).view(np.uint8).reshape(-1, 4)[::-1, WIDTH - 1 :: -1].reshape(-1)
    padding = bytes(_padded(narrow.nbytes) - narrow.nbytes)
    offsets = np.uint32(HEADER + pivots.nbytes + len(stream) * WIDTH) - places * np.uint32(WIDTH)
    header = Header(len(stream), len(places), 0, top, 0)
    table = msgspec.msgpack.encode(entries)
    body = [*map(_bytes, (pivots.astype("<u8", copy=False), narrow)), memoryview(padding)]
    body += [_bytes(offsets.astype("<u4", copy=False)), memoryview(table)]
    crc = 0
    for piece in body:
        crc = zlib.crc32(piece, crc)
    head = _HEAD.pack(_MAGIC, FORMAT, *header._replace(table=len(table), crc=crc)).ljust(HEADER - 4, b"\0")
    return [memoryview(head + _CRC.pack(zlib.crc32(head))), *body], entries


def _bytes(numbers: NDArray[Any]) -> memoryview:
    return numbers.view(np.uint8).data


def _firsts(stream: Ids, places: Ids) -> NDArray[np.uint64]:
    """The first 8 bytes of each place's context, as a number."""
    near, next_, far = (stream[places - np.uint32(back)].astype(np.uint64) for back in (1, 2, 3))
    packed: NDArray[np.uint64] = near << np.uint64(40) | next_ << np.uint64(16) | far >> np.uint64(8)
    return packed


def _ordered(stream: Ids, top: int) -> Ids:
    """Places with two tokens of their file before them, ordered by LONGEST tokens read backwards."""
    gap = stream == SEPARATOR
    wanted = ~gap
    for back in range(1, SHORTEST + 1):
        wanted[back:] &= ~gap[:-back]
    order = by_context(stream, top, LONGEST)
    return np.concatenate([run[wanted[run]] for run in np.array_split(order, len(order) // RUN + 1)])


def manifest_bytes(manifest: Manifest) -> list[bytes]:
    """A manifest's content, in pieces."""
    payload = msgspec.msgpack.encode(manifest)
    return [_MAGIC, _CRC.pack(zlib.crc32(payload)), payload]


def read_manifest(path: Path) -> Manifest | None:
    """The manifest; None when there is none. Raises IndexDamaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise IndexDamaged(f"the n-gram manifest cannot be read: {error.strerror}") from error
    start = len(_MAGIC) + _CRC.size
    if data[: len(_MAGIC)] != _MAGIC or len(data) < start:
        raise IndexDamaged("not an n-gram manifest")
    if _CRC.unpack(data[len(_MAGIC) : start]) != (zlib.crc32(data[start:]),):
        raise IndexDamaged("the n-gram manifest is damaged")
    try:
        manifest = msgspec.msgpack.decode(data[start:], type=Manifest)
    except msgspec.MsgspecError as error:
        raise IndexDamaged("the n-gram manifest is of another kind") from error
    if manifest.format != FORMAT:
        raise IndexDamaged(f"the n-gram manifest has format {manifest.format}, not {FORMAT}")
    return manifest


def write(path: Path, pieces: Sequence[bytes | memoryview]) -> None:
    """Write so that a crash leaves the old file or the new one, never a part of it. Raises OSError."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    if os.name == "posix":
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
