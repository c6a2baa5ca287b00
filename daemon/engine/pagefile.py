"""One page, and its file: what it holds, proved by a checksum over every byte.

A file is MAGIC, the checksum, the length of the head, the head, the state. The checksum is keyed with the
identity of what computed the state, so that a page of another model never passes, whatever its name.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

import msgspec
import numpy as np

from daemon.engine.binding import Ids

CHUNK = 256
"""Tokens of a whole page."""
MAGIC = b"FTPAGE\x00\x01"
"""Its last byte is the version of the format."""
SUFFIX = ".page"
PART = ".part"
_DIGEST = 32
_START = struct.Struct(f"<8s{_DIGEST}sI")
_HEAD_LIMIT = 65536
_ID = 16


class PageDamaged(Exception):
    """A file that is not what it says. Costs an evaluation, never an answer."""


class Head(msgspec.Struct, frozen=True, array_like=True):
    """What a file says about its state: `size` bytes that hold `tokens` from position `start` on."""

    parent: bytes
    start: int
    tokens: bytes
    widths: bytes
    size: int


@dataclass(eq=False, slots=True)
class Page:
    """State of up to CHUNK tokens from position `start` on, behind what `parent` names. `widths` as in
    Resident; `data` while it is in host memory; `used` in seconds since the epoch.
    """

    parent: bytes
    start: int
    tokens: Ids
    widths: Ids
    size: int
    used: float
    data: mmap.mmap | None = None
    key: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.key = chained(self.parent, self.tokens)

    @property
    def rank(self) -> tuple[float, int]:
        """What goes first when room is needed: long unused, and behind others before those it needs.

        Tokens × cost to recompute ÷ age: cost and room are both proportional to the tokens, so age decides.
        """
        return self.used, -self.start

    def head(self) -> Head:
        """What its file says."""
        return Head(self.parent, self.start, self.tokens.tobytes(), self.widths.tobytes(), self.size)

    def shared(self, tokens: Ids) -> int:
        """Length of the common beginning with `tokens`."""
        n = min(len(self.tokens), len(tokens))
        differs = np.flatnonzero(self.tokens[:n] != tokens[:n])
        return int(differs[0]) if len(differs) else n


def chained(parent: bytes, tokens: Ids) -> bytes:
    """Key of `tokens` behind `parent`: equal keys stand for equal tokens from the beginning on."""
    return hashlib.blake2b(parent + tokens.tobytes(), digest_size=_ID).digest()


def file_name(identity: bytes, page: Page) -> str:
    """Says what room-making needs, so that it opens no file: whose it is, and how far behind others."""
    return f"{identity.hex()[:_ID]}-{page.start:08d}-{page.key.hex()}{SUFFIX}"


def start_of(name: str) -> int:
    """The position in a file name; 0 where there is none."""
    part = name.split("-")[1:2]
    return int(part[0]) if part and part[0].isdecimal() else 0


def write(path: Path, identity: bytes, page: Page, data: mmap.mmap) -> None:
    """Write under a temporary name, readable by this user only, then rename. Raises OSError."""
    head = msgspec.msgpack.encode(page.head())
    checksum = _checksum(identity, head, data)
    part = path.with_suffix(PART)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(part, flags, 0o600), "wb", buffering=0) as file:
        for piece in (_START.pack(MAGIC, checksum, len(head)) + head, data):
            rest = memoryview(piece)
            while rest:
                rest = rest[file.write(rest) :]
    part.replace(path)


def read_head(path: Path) -> Head:
    """The head alone, not proved. Raises OSError, or PageDamaged where it cannot be one."""
    with path.open("rb", buffering=0) as file:
        return _head(file)[1]


def read(path: Path, identity: bytes, page: Page) -> mmap.mmap:
    """The state of `page`, proved. Raises OSError, or PageDamaged."""
    with path.open("rb", buffering=0) as file:
        checksum, head, raw = _head(file)
        if head != page.head():
            raise PageDamaged("it holds another page")
        data = mmap.mmap(-1, head.size)
        rest = memoryview(data)
        while rest and (n := file.readinto(rest)):
            rest = rest[n:]
    if rest or checksum != _checksum(identity, raw, data):
        raise PageDamaged("its checksum is wrong")
    return data


def _checksum(identity: bytes, head: bytes, data: mmap.mmap) -> bytes:
    digest = hashlib.blake2b(len(head).to_bytes(4, "little") + head, digest_size=_DIGEST, key=identity)
    digest.update(data)
    return digest.digest()


def _head(file: FileIO) -> tuple[bytes, Head, bytes]:
    """(checksum, head, the head's bytes); sizes fit the file, so that a damaged one never takes memory."""
    start = file.read(_START.size)
    if len(start) < _START.size or not start.startswith(MAGIC):
        raise PageDamaged("it is not a page of this version")
    _, checksum, length = _START.unpack(start)
    if length > _HEAD_LIMIT:
        raise PageDamaged("its head is too long")
    raw = file.read(length)
    try:
        head = msgspec.msgpack.decode(raw, type=Head)
    except (msgspec.MsgspecError, ValueError) as error:
        raise PageDamaged("its head is damaged") from error
    tokens = len(head.tokens) // 4
    fits = 0 < tokens <= CHUNK and 4 * tokens == len(head.tokens) == len(head.widths)
    placed = head.start >= 0 and head.start % CHUNK == 0 and len(head.parent) <= _DIGEST
    whole = 0 < head.size == os.fstat(file.fileno()).st_size - _START.size - length
    if not (fits and placed and whole):
        raise PageDamaged("its head is damaged")
    return checksum, head, raw
