"""The model's vocabulary inside the engine: pieces as bytes, and which tokens agree with bytes still owed."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

import msgspec
import numpy as np

from daemon import paths
from daemon.engine.binding import Ids, Model
from indexer import tokens
from indexer.errors import VocabularyUnusable

_PROBE = (
    "def f(x):\n\treturn {\"a\": x + 1, 'é': [None, 0x1F, 12345]}  # 你好\r\n\n"
    "    if self._items is None: pass\n"
)
"""Covers words, digits, indentation, line ends, quotes and text beyond ASCII."""


class Pieces:
    """Bytes of every token with an index by prefix, built once per model (0.2 s for 152k tokens)."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self._ids = sorted((i for i, p in enumerate(pieces) if p), key=pieces.__getitem__)
        self._sorted = [pieces[i] for i in self._ids]
        self._exact: dict[bytes, int] = {}
        for i in reversed(self._ids):
            self._exact[pieces[i]] = i

    def agreeing(self, must: bytes) -> Ids:
        """Ids of all tokens whose bytes begin with `must`, or are a beginning of it."""
        low = bisect_left(self._sorted, must)
        upper = _after(must)
        high = bisect_left(self._sorted, upper) if upper else len(self._sorted)
        longer = self._ids[low:high]
        shorter = [self._exact[must[:n]] for n in range(1, len(must)) if must[:n] in self._exact]
        return np.array(longer + shorter, np.int32)


def _after(prefix: bytes) -> bytes:
    """The smallest bytes greater than everything that begins with `prefix`; empty when there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else b""


def export(model: Model, sha256: str) -> tuple[tokens.Vocabulary, Path]:
    """The model's vocabulary, from the cache, or read from llama.cpp, checked against it, and cached.

    Returns it with the file where other processes find it.
    """
    path = paths.vocabulary_dir() / f"{sha256}.msgpack"
    try:
        vocabulary = tokens.load(path)
        if vocabulary.sha256 != sha256 or len(vocabulary.pieces) != model.n_vocab:
            raise VocabularyUnusable("vocabulary of another model")
    except VocabularyUnusable:
        vocabulary = tokens.Vocabulary(
            format=tokens.FORMAT,
            sha256=sha256,
            kind=model.kind,
            pre=model.meta("tokenizer.ggml.pre"),
            pieces=model.pieces(),
        )
        vocabulary = msgspec.structs.replace(vocabulary, note=_verify(model, vocabulary))
        path = _save(vocabulary, path)
    return vocabulary, path


def _save(vocabulary: tokens.Vocabulary, path: Path) -> Path:
    """In the cache, or beside the socket where the cache cannot be written."""
    try:
        tokens.save(vocabulary, path)
    except OSError:
        path = paths.runtime_dir() / path.name
        tokens.save(vocabulary, path)
    return path


def _verify(model: Model, vocabulary: tokens.Vocabulary) -> str:
    try:
        ours = tokens.to_ids(tokens.TiktokenTokenizer(vocabulary).encode(_PROBE))
    except VocabularyUnusable as error:
        return str(error)
    return "" if ours == model.tokenize(_PROBE) else "the exported vocabulary splits text differently"
