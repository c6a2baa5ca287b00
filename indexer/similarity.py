"""MinHash signatures of callables, cut into bands: callables whose signatures resemble share a band key.

Shingles are the words of the name (split by case and underscore), the words of parameters, and whole type
names. Sources: Broder 1997 (MinHash), Indyk and Motwani 1998 (LSH bands), Dietzfelbinger 1996
(multiply-shift).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from random import Random

import numpy as np
import numpy.typing as npt

from indexer.records import ParsedFile

BANDS = 8
ROWS = 2
"""8 bands of 2 rows: signatures sharing half of their shingles meet with p = 0.9, a tenth with p = 0.08."""
VERSION = 1
"""Raised whenever the same signature would get other keys: stored bands are then stale."""
CALLABLES = frozenset(("function", "method", "constructor"))

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_CALLED = re.compile(r"([^\W\d]\w*)\s*(?:<[^()]*>|\[[^()\]]*\])?\s*\(")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_DECLARING = """
abstract async auto char class const constexpr constructor cls def defp end explicit export extern final fn
for fun func function impl inline internal let local mut mutating noexcept open operator override priv private
proc protected pub public readonly ref sealed self static sub suspend synchronized template this throws
typename unsafe val var virtual where
"""
_NOISE = frozenset(_DECLARING.split())
"""Words that say how something is declared, not what it does."""
_RANDOM = Random(VERSION)  # noqa: S311 - fixed multipliers, not secrets
_FACTORS = np.array([_RANDOM.getrandbits(64) | 1 for _ in range(BANDS * ROWS)], dtype=np.uint64)
_OFFSETS = np.array([_RANDOM.getrandbits(64) for _ in range(BANDS * ROWS)], dtype=np.uint64)
_MIXERS = np.array(
    [[_RANDOM.getrandbits(64) | 1 for _ in range(ROWS)] for _ in range(BANDS)], dtype=np.uint64
)
_HALF = np.uint64(32)


def bands(parsed: ParsedFile, source: bytes = b"") -> tuple[tuple[int, bytes], ...]:
    """(symbol index, band keys) of every callable in a file. Keys: BANDS little-endian uint32, in order.

    `source` is not needed while signatures carry all that is compared; it may stay empty.
    """
    found = [(i, shingles(s.signature)) for i, s in enumerate(parsed.symbols) if s.kind in CALLABLES]
    found = [(i, hashes) for i, hashes in found if hashes]
    keys = _keys([hashes for _, hashes in found])
    return tuple((i, key) for (i, _), key in zip(found, keys, strict=True))


def query_bands(signature: str) -> bytes:
    """Band keys of one signature, as stored by `bands`; empty when it has no words to compare."""
    hashes = shingles(signature)
    return _keys([hashes])[0] if hashes else b""


def shared(first: bytes, second: bytes) -> float:
    """Share of bands with equal keys, 0 to 1: grows with the resemblance of the signatures."""
    if not first or len(first) != len(second):
        return 0.0
    return float(np.mean(np.frombuffer(first, "<u4") == np.frombuffer(second, "<u4")))


def shingles(signature: str) -> list[int]:
    """Hashes (64 bits) of what a signature is made of; may repeat. Empty when nothing but noise is in it."""
    called = next((m for m in _CALLED.finditer(signature) if m[1] not in _NOISE), None)
    name = called[1] if called else ""
    out = list(_name(name)) if called else []
    for identifier in _IDENTIFIER.findall(signature):
        if identifier not in _NOISE and identifier != name:
            out += _part(identifier)
    return out


@lru_cache(maxsize=1 << 15)
def _name(identifier: str) -> tuple[int, ...]:
    words = [w.lower() for w in _WORD.findall(identifier)]
    # A name says more than a parameter: each of its words counts twice.
    return tuple(_hash(text) for w in words for text in (f"n:{w}", f"N:{w}"))


@lru_cache(maxsize=1 << 15)
def _part(identifier: str) -> tuple[int, ...]:
    words = [w.lower() for w in _WORD.findall(identifier)]
    whole = [f"t:{identifier}"] if len(words) > 1 else []
    return tuple(_hash(text) for text in (*(f"p:{w}" for w in words), *whole))


def _hash(text: str) -> int:
    data = text.encode("utf-8", "replace")
    return zlib.crc32(data) << 32 | zlib.adler32(data)


def _keys(sets: Sequence[Sequence[int]]) -> list[bytes]:
    """Band keys of each non-empty set of hashes, all in one pass."""
    if not sets:
        return []
    starts = np.cumsum([0, *(len(s) for s in sets[:-1])])
    hashes: npt.NDArray[np.uint64] = np.fromiter((h for s in sets for h in s), dtype=np.uint64)
    permuted = (hashes[:, None] * _FACTORS + _OFFSETS) >> _HALF
    least = np.minimum.reduceat(permuted, starts, axis=0).reshape(-1, BANDS, ROWS)
    mixed = (least * _MIXERS).sum(axis=2, dtype=np.uint64) >> _HALF
    packed = mixed.astype("<u4").tobytes()
    width = BANDS * 4
    return [packed[i : i + width] for i in range(0, len(packed), width)]
