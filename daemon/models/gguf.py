"""A strict reader of GGUF headers (little-endian, versions 2 and 3). Standard library only.

Nothing is mapped and no array is kept: the file is read through one bounded window, arrays are walked over,
and every count is checked before it is believed. Runs in the limited child of header.py.
"""

from __future__ import annotations

import math
import os
import stat
import struct
from pathlib import Path
from typing import Any, BinaryIO

from daemon.models import known

WINDOW = 1 << 20
"""Bytes read at a time."""
MAX_PAIRS = 1024
MAX_TENSORS = 65536
MAX_KEY = 1024
MAX_STRING = 4 << 20
MAX_STRINGS = 3_000_000
"""Array strings in one file; the largest vocabularies have 0.6 million tokens and merges together."""
MAX_KEPT = 1024
"""Numeric arrays up to this length (values per layer) and strings up to this length (names) are kept; longer
ones, such as chat templates, are walked over."""
MAX_ALIGNMENT = 65536
_U64 = struct.Struct("<Q")
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<B",
    10: "<Q",
    11: "<q",
    12: "<d",
}


class GgufError(Exception):
    """The file is not a GGUF that the engine may map; says why."""


class Reader:
    """A forward-only view of a file through one window of bounded size."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.size = file, size
        self.window, self.start, self.at = b"", 0, 0

    @property
    def position(self) -> int:
        """Offset in the file of the next byte."""
        return self.start + self.at

    def fill(self, count: int, what: str) -> None:
        """Have at least `count` bytes in the window; the file must hold them."""
        if count > self.size - self.position:
            raise GgufError(f"the file ends inside {what} (at byte {self.position} of {self.size})")
        if self.at + count > len(self.window):
            self.start, self.at = self.position, 0
            self.file.seek(self.start)
            self.window = self.file.read(max(WINDOW, count))
            if len(self.window) < count:
                raise GgufError(f"the file became shorter while {what} was read")

    def take(self, count: int, what: str) -> bytes:
        """The next `count` bytes."""
        self.fill(count, what)
        self.at += count
        return self.window[self.at - count : self.at]

    def number(self, form: str, what: str) -> Any:
        """The next scalar in struct notation."""
        return struct.unpack(form, self.take(struct.calcsize(form), what))[0]

    def skip(self, count: int, what: str) -> None:
        """Step over `count` bytes without reading them."""
        if count > self.size - self.position:
            raise GgufError(
                f"the file ends inside {what}: it needs {count} bytes, {self.size - self.position} are left"
            )
        if self.at + count <= len(self.window):
            self.at += count
        else:
            self.start, self.at, self.window = self.position + count, 0, b""

    def text(self, what: str, limit: int) -> str:
        """The next length-prefixed UTF-8 string of at most `limit` bytes."""
        length = self.number("<Q", what)
        if length > limit:
            raise GgufError(f"{what} claims a length of {length} bytes (limit {limit})")
        try:
            return self.take(length, what).decode("utf-8")
        except UnicodeDecodeError:
            raise GgufError(f"{what} is not UTF-8") from None

    def strings(self, count: int, what: str, wanted: dict[bytes, str]) -> dict[bytes, int]:
        """Walk over `count` strings; answers the index of each one that is in `wanted`."""
        found: dict[bytes, int] = {}
        lengths = {len(text) for text in wanted}
        unpack = _U64.unpack_from
        window, at = self.window, self.at
        for index in range(count):
            if at + 8 > len(window):
                self.at = at
                self.fill(8, what)
                window, at = self.window, self.at
            length = unpack(window, at)[0]
            at += 8
            if at + length > len(window):
                self.at = at
                if length > MAX_STRING:
                    raise GgufError(f"{what} holds a string that claims {length} bytes (limit {MAX_STRING})")
                self.fill(length, what)
                window, at = self.window, self.at
            if length in lengths and window[at : at + length] in wanted:
                found[window[at : at + length]] = index
            at += length
        self.at = at
        return found


def read(path: Path) -> dict[str, Any]:
    """Everything a caller may know about the file, as plain values. Raises GgufError or OSError."""
    # Non-blocking, so that a pipe under this name cannot hold us.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb", buffering=0) as raw:
        status = os.fstat(raw.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise GgufError("it is not an ordinary file")
        reader = Reader(raw, status.st_size)
        tensors, pairs = _preamble(reader)
        values, seen = _pairs(reader, pairs)
        return {"values": values, **seen, **_tensors(reader, tensors, values), "file_bytes": status.st_size}


def _preamble(reader: Reader) -> tuple[int, int]:
    magic = reader.take(4, "the magic") if reader.size >= 4 else b""
    if magic != b"GGUF":
        raise GgufError("it does not start with GGUF: not a model file, or one of an old format")
    version = reader.number("<I", "the version")
    if version & 0xFFFF == 0:
        raise GgufError("it is a big-endian GGUF")
    if version not in (2, 3):
        raise GgufError(f"GGUF version {version} is not supported (2 and 3 are)")
    tensors, pairs = reader.number("<Q", "the tensor count"), reader.number("<Q", "the metadata count")
    if not 0 < tensors <= MAX_TENSORS:
        raise GgufError(f"it claims {tensors} tensors (limit {MAX_TENSORS})")
    if not 0 < pairs <= MAX_PAIRS:
        raise GgufError(f"it claims {pairs} metadata entries (limit {MAX_PAIRS})")
    return tensors, pairs


def _pairs(reader: Reader, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    values: dict[str, Any] = {}
    seen: dict[str, Any] = {"vocabulary": 0, "found": {}, "strings": 0}
    for _ in range(count):
        key = reader.text("a metadata key", MAX_KEY)
        if key in values:
            raise GgufError(f"metadata key {key[:80]!r} appears twice")
        kind = reader.number("<I", f"the type of {key[:80]}")
        values[key] = _array(reader, key, seen) if kind == _ARRAY else _value(reader, kind, key[:80])
    return values, seen


def _value(reader: Reader, kind: int, key: str) -> Any:
    if kind == _STRING:
        return _text_value(reader, f"the value of {key}")
    if kind not in _SCALARS:
        raise GgufError(f"{key} has the unknown type {kind}")
    value = reader.number(_SCALARS[kind], f"the value of {key}")
    if kind == 7:
        if value > 1:
            raise GgufError(f"{key} is neither true nor false")
        return bool(value)
    return value


def _text_value(reader: Reader, what: str) -> str | None:
    length = reader.number("<Q", what)
    if length > MAX_STRING:
        raise GgufError(f"{what} claims a length of {length} bytes (limit {MAX_STRING})")
    if length > MAX_KEPT:
        reader.skip(length, what)
        return None
    return reader.take(length, what).decode("utf-8", "replace")


def _array(reader: Reader, key: str, seen: dict[str, Any]) -> Any:
    name = key[:80]
    kind, count = reader.number("<I", f"the type of {name}"), reader.number("<Q", f"the length of {name}")
    if kind == _ARRAY:
        raise GgufError(f"{name} is an array of arrays")
    if key == "tokenizer.ggml.tokens":
        if kind != _STRING:
            raise GgufError(f"{name} is not an array of strings")
        seen["vocabulary"] = count
    if kind == _STRING:
        seen["strings"] += count
        if seen["strings"] > MAX_STRINGS:
            raise GgufError(f"{name} claims {count} strings (limit {MAX_STRINGS})")
        wanted = known.FIM_TEXTS if key == "tokenizer.ggml.tokens" else {}
        for text, index in reader.strings(count, name, wanted).items():
            seen["found"].setdefault(wanted[text], index)
        return None
    if kind not in _SCALARS:
        raise GgufError(f"{name} holds values of the unknown type {kind}")
    width = struct.calcsize(_SCALARS[kind])
    if count > MAX_KEPT:
        reader.skip(count * width, name)
        return None
    return list(struct.unpack(f"<{count}{_SCALARS[kind][1]}", reader.take(count * width, name)))


def _tensors(reader: Reader, count: int, values: dict[str, Any]) -> dict[str, Any]:
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise GgufError(f"general.alignment is {alignment}; a power of two up to {MAX_ALIGNMENT} is expected")
    names: set[str] = set()
    expected = 0
    types: dict[str, int] = {}
    embedding = parameters = 0
    for _ in range(count):
        name = reader.text("a tensor name", 63)
        if name in names:
            raise GgufError(f"tensor {name!r} appears twice")
        names.add(name)
        shape, kind, size = _tensor(reader, name)
        parameters += math.prod(shape)
        offset = reader.number("<Q", f"the offset of {name}")
        if offset != expected:
            raise GgufError(f"tensor {name} lies at offset {offset}, expected {expected}")
        types[kind] = types.get(kind, 0) + size
        end = offset + size
        expected = -(-end // alignment) * alignment
        if end > reader.size:
            raise GgufError(
                f"tensor {name} ends at byte {end} of its region, beyond the file ({reader.size} bytes)"
            )
        if name == "token_embd.weight":
            embedding = shape[1] if len(shape) > 1 else 0
    start = -(-reader.position // alignment) * alignment
    if start + end > reader.size:
        raise GgufError(f"the file is cut short: its tensors end at byte {start + end}, it has {reader.size}")
    return {
        "tensors": count,
        "types": types,
        "data_offset": start,
        "weights_bytes": end,
        "rows": embedding,
        "parameters": parameters,
    }


def _tensor(reader: Reader, name: str) -> tuple[list[int], str, int]:
    rank = reader.number("<I", f"the rank of {name}")
    if not 0 < rank <= 4:
        raise GgufError(f"tensor {name} has {rank} dimensions (1 to 4 are possible)")
    shape = list(struct.unpack(f"<{rank}Q", reader.take(8 * rank, f"the shape of {name}")))
    kind = reader.number("<I", f"the type of {name}")
    if kind not in known.TENSOR_TYPES:
        raise GgufError(f"tensor {name} has type {kind}, which this engine does not know")
    label, block, width = known.TENSOR_TYPES[kind]
    elements = math.prod(shape)
    if elements == 0 or elements >= 1 << 62:
        raise GgufError(f"tensor {name} has the impossible shape {' by '.join(map(str, shape))}")
    if shape[0] % block:
        raise GgufError(f"tensor {name}: rows of {shape[0]} do not divide into {label} blocks of {block}")
    return shape, label, elements // block * width
