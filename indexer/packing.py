"""Compact shapes of what is stored per file: references, outlines, chunks and bands as one blob each.

A million lines hold millions of references. One row each, with indexes, is several times the source; columns
of small integers, differenced and deflated, are a tenth of it, and one read brings a whole file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import TypeVar, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from indexer.errors import IndexDamaged
from indexer.records import Chunk, Outline, Reference, Role, SymbolKind

KINDS: tuple[SymbolKind, ...] = get_args(SymbolKind)
ROLES: tuple[Role, ...] = get_args(Role)
"""A stored kind or role is its place here: adding at the end is compatible, all else is a new schema."""
KIND_OF: dict[str, int] = {kind: i for i, kind in enumerate(KINDS)}
PLACE_BITS = 16
"""A chunk or symbol is addressed as file id << PLACE_BITS | its number in the file."""
PLACES = 1 << PLACE_BITS
IMPORT_MARK = "÷"
"""Stands before the import keys among the names a file uses; no language has it in an identifier."""

_T = TypeVar("_T")
_GROUP = 16
"""Chunks deflated together."""
_ROLE_OF = {role: i for i, role in enumerate(ROLES)}
_TYPES = ("<i1", "<i2", "<i4")
_PLAIN = re.compile(r"[A-Za-z0-9_$\x80-\U0010ffff]+")
_encode = msgspec.msgpack.encode


class _Columns(msgspec.Struct, frozen=True, array_like=True):
    names: list[str]
    kinds: list[int]
    """Index into _TYPES of each column's integers."""
    columns: list[bytes]


_columns = msgspec.msgpack.Decoder(_Columns)
_pairs = msgspec.msgpack.Decoder(list[tuple[int, str]])
_groups = msgspec.msgpack.Decoder(list[bytes])
_spans = msgspec.msgpack.Decoder(list[tuple[int, int, str]])


def references(found: Sequence[Reference]) -> bytes:
    """Pack. Keeps order. Inverse: `unpack_references`."""
    names: dict[str, int] = {}
    which = np.array([names.setdefault(r.name, len(names)) for r in found], dtype=np.int64)
    lengths = np.array([len(name) for name in names], dtype=np.int64)
    start = np.array([r.start_byte for r in found], dtype=np.int64)
    end = np.array([r.end_byte for r in found], dtype=np.int64)
    line = np.array([r.line for r in found], dtype=np.int64)
    symbol = np.array([r.symbol for r in found], dtype=np.int64)
    role = np.array([_ROLE_OF[r.role] for r in found], dtype=np.int64)
    extra = end - start - lengths[which] if len(found) else end
    columns = (
        which,
        role,
        np.diff(start, prepend=0),
        extra,
        np.diff(line, prepend=0),
        np.diff(symbol, prepend=0),
    )
    packed = [_narrow(column) for column in columns]
    shape = _Columns(list(names), [kind for kind, _ in packed], [data for _, data in packed])
    return zlib.compress(_encode(shape), 1)


class References:
    """A file's unpacked references, as columns. Cheap to make; rows are built on demand."""

    def __init__(self, blob: bytes) -> None:
        shape = _open(blob, _columns)
        try:
            columns = [
                np.frombuffer(d, dtype=_TYPES[k]).astype(np.int64)
                for k, d in zip(shape.kinds, shape.columns, strict=True)
            ]
            self.names = shape.names
            self._which, self._role, start, extra, line, symbol = columns
            self._start, self._extra = np.cumsum(start), extra
            self._line = np.cumsum(line)
            self._symbol = np.cumsum(symbol)
        except (ValueError, IndexError) as error:
            raise IndexDamaged(f"references are damaged: {error}") from error

    def counts(self) -> dict[str, int]:
        """Name → how often it is used, imports left out."""
        used = self._which[self._role != _ROLE_OF["import"]]
        tally = np.bincount(used, minlength=len(self.names)).tolist()
        return {name: n for name, n in zip(self.names, tally, strict=True) if n}

    def rows(self, name: str | None = None) -> tuple[Reference, ...]:
        """All references in stored order, or only those to `name`."""
        if name is None:
            picked = np.arange(len(self._which))
        elif name in self.names:
            picked = np.flatnonzero(self._which == self.names.index(name))
        else:
            return ()
        columns = (self._which, self._role, self._start, self._extra, self._line, self._symbol)
        return tuple(
            Reference(
                name=self.names[which],
                role=ROLES[role],
                start_byte=start,
                end_byte=start + len(self.names[which]) + extra,
                line=line,
                symbol=symbol,
            )
            for which, role, start, extra, line, symbol in zip(
                *(c[picked].tolist() for c in columns), strict=True
            )
        )


def outlines(found: Sequence[Outline]) -> bytes:
    """Pack. Keeps order. Inverse: `unpack_outlines`."""
    return zlib.compress(_encode([(o.symbol, o.text) for o in found]), 1)


def unpack_outlines(blob: bytes) -> tuple[Outline, ...]:
    """Raises IndexDamaged."""
    return tuple(Outline(symbol=symbol, text=text) for symbol, text in _open(blob, _pairs))


def chunks(found: Sequence[Chunk]) -> bytes:
    """Pack, in groups that are deflated apart, so that one chunk is read without all. Inverse:
    `unpack_chunks`."""
    rows = [(c.start_line, c.end_line, c.text) for c in found]
    groups = [rows[i : i + _GROUP] for i in range(0, len(rows), _GROUP)]
    return _encode([zlib.compress(_encode(group), 1) for group in groups])


def unpack_chunks(blob: bytes) -> tuple[Chunk, ...]:
    """Raises IndexDamaged."""
    return tuple(_chunk(row) for group in _grouped(blob) for row in _open(group, _spans))


def unpack_chunk(blob: bytes, number: int) -> Chunk | None:
    """One of the chunks; None when there are not so many. Raises IndexDamaged."""
    groups = _grouped(blob)
    if number // _GROUP >= len(groups):
        return None
    rows = _open(groups[number // _GROUP], _spans)
    return _chunk(rows[number % _GROUP]) if number % _GROUP < len(rows) else None


def bands(found: Sequence[tuple[int, bytes]]) -> bytes:
    """Pack (symbol, keys) pairs. Inverse: `unpack_bands`."""
    return _encode(found) if found else b""


def unpack_bands(blob: bytes) -> list[tuple[int, bytes]]:
    """Raises IndexDamaged."""
    try:
        return msgspec.msgpack.decode(blob, type=list[tuple[int, bytes]]) if blob else []
    except msgspec.MsgspecError as error:
        raise IndexDamaged(f"bands are damaged: {error}") from error


def band_words(keys: bytes) -> str:
    """Band keys as words for a full-text table: eight hexadecimal digits per uint32."""
    return keys.hex(" ", 4)


def word(name: str) -> str:
    """A name as one word for a full-text table whose tokenizer is `ascii` with `_` and `$`."""
    return name if _PLAIN.fullmatch(name) else "·" + name.encode("utf-8", "surrogatepass").hex()


def used_words(names: Sequence[str], keys: Sequence[str]) -> str:
    """What a file uses, as one document: its references' names, and its imports' keys behind a mark."""
    return " ".join([*map(word, names), *(IMPORT_MARK + word(key) for key in keys)])


def names_of(stored: str) -> tuple[str, ...]:
    """Imported names from their stored text, one a line."""
    return tuple(stored.split("\n")) if stored else ()


def _chunk(row: tuple[int, int, str]) -> Chunk:
    return Chunk(start_line=row[0], end_line=row[1], text=row[2])


def _grouped(blob: bytes) -> list[bytes]:
    try:
        return _groups.decode(blob)
    except msgspec.MsgspecError as error:
        raise IndexDamaged(f"chunks are damaged: {error}") from error


def _narrow(column: npt.NDArray[np.int64]) -> tuple[int, bytes]:
    high = int(np.abs(column).max()) if len(column) else 0
    kind = 0 if high < 1 << 7 else 1 if high < 1 << 15 else 2
    return kind, column.astype(_TYPES[kind]).tobytes()


def _open(blob: bytes, decoder: msgspec.msgpack.Decoder[_T]) -> _T:
    try:
        return decoder.decode(zlib.decompress(blob))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise IndexDamaged(f"a stored blob is damaged: {error}") from error
