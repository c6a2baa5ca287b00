"""The model's vocabulary inside the engine: pieces as bytes, and which tokens agree with bytes still owed."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

import msgspec
import numpy as np

from daemon import paths
from daemon.engine.binding import Ids, Model
from indexer.errors import VocabularyUnusable
from indexer.vocabulary import FORMAT, Vocabulary, load, save

_PROBE = (
    "def f(x):\n\treturn {\"a\": x + 1, 'é': [None, 0x1F, 12345]}  # 你好\r\n\n"
    "    if self._items is None: pass\n"
)
"""Covers words, digits, indentation, line ends, quotes and text beyond ASCII."""


class Pieces:
    """Bytes of every token with an index by prefix, built once per model (0.2 s for 152k tokens). `control`
    marks those without bytes."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.control = np.array([not piece for piece in pieces])
        order = sorted((i for i, p in enumerate(pieces) if p), key=pieces.__getitem__)
        self._ids = np.array(order, np.int32)
        self._sorted = [pieces[i] for i in order]

    def agreeing(self, must: bytes) -> Ids:
        """Ids of all tokens whose bytes begin with `must`, or are a beginning of it."""
        low = bisect_left(self._sorted, must)
        upper = _after(must)
        high = bisect_left(self._sorted, upper) if upper else len(self._sorted)
        shorter = [i for n in range(1, len(must)) if (i := self._exactly(must[:n])) >= 0]
        return np.concatenate([self._ids[low:high], np.array(shorter, np.int32)])

    def _exactly(self, piece: bytes) -> int:
        at = bisect_left(self._sorted, piece)
        return int(self._ids[at]) if at < len(self._sorted) and self._sorted[at] == piece else -1


def _after(prefix: bytes) -> bytes:
    """The smallest bytes greater than everything that begins with `prefix`; empty when there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else b""


def export(model: Model, sha256: str) -> tuple[Vocabulary, Path]:
    """The model's vocabulary, from the cache, or read from llama.cpp, checked against it, and cached.

    Returns it with the file where other processes find it.
    """
    path = paths.vocabulary_dir() / f"{sha256}.msgpack"
    try:
        vocabulary = load(path)
        if vocabulary.sha256 != sha256 or len(vocabulary.pieces) != model.n_vocab:
            raise VocabularyUnusable("vocabulary of another model")
    except VocabularyUnusable:
        vocabulary = Vocabulary(
            format=FORMAT,
            sha256=sha256,
            kind=model.kind,
            pre=model.meta("tokenizer.ggml.pre"),
            pieces=model.pieces(),
            control=model.control(),
        )
        vocabulary = msgspec.structs.replace(vocabulary, note=_verify(model, vocabulary))
        path = _save(vocabulary, path)
    return vocabulary, path


def _save(vocabulary: Vocabulary, path: Path) -> Path:
    """In the cache, or beside the socket where the cache cannot be written."""
    try:
        save(vocabulary, path)
    except OSError:
        path = paths.runtime_dir() / path.name
        save(vocabulary, path)
    return path


def _verify(model: Model, vocabulary: Vocabulary) -> str:
    from indexer import tokens  # noqa: PLC0415 - 60 MB that only the first load of a model needs

    try:
        ours = tokens.to_ids(tokens.TiktokenTokenizer(vocabulary).encode(_PROBE))
    except VocabularyUnusable as error:
        return str(error)
    return "" if ours == model.tokenize(_PROBE) else "the exported vocabulary splits text differently"
