"""A model's vocabulary as a file: exported once by the engine, read by every process that counts tokens."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from indexer.errors import VocabularyUnusable

FORMAT = 4


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """One model's vocabulary as exported by the engine. `pieces[i]` are the bytes of token i; tokens that
    text must never become (control, user-defined, unused) have empty pieces."""

    format: int
    sha256: str
    kind: str
    """`bpe`, or another of llama.cpp's vocabulary types."""
    pre: str
    """Name of the pre-tokenizer."""
    pieces: list[bytes]
    control: dict[str, int] = {}
    """Name → id of the tokens that text never becomes, as rendered prompts spell them."""
    note: str = ""
    """Why other processes cannot count with it exactly; empty when they can (checked at export)."""


def save(vocabulary: Vocabulary, path: Path) -> None:
    """Write atomically: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(msgspec.msgpack.encode(vocabulary))
    part.replace(path)


def load(path: Path) -> Vocabulary:
    """Read an exported vocabulary. Raises VocabularyUnusable when absent, damaged or of another format."""
    try:
        vocabulary = msgspec.msgpack.decode(path.read_bytes(), type=Vocabulary)
    except OSError as error:
        raise VocabularyUnusable(f"no vocabulary at {path.name}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise VocabularyUnusable(f"vocabulary {path.name} is damaged") from error
    if vocabulary.format != FORMAT:
        raise VocabularyUnusable(f"vocabulary {path.name} has format {vocabulary.format}, not {FORMAT}")
    return vocabulary
