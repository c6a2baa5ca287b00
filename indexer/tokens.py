"""Token-exact counting and encoding with the model's own vocabulary, in any process, without weights.

The engine exports each model's vocabulary once (pieces, control ids, pre-tokenizer). Here it becomes a
tiktoken Encoding. File text is encoded as ordinary text: control and user-defined tokens are not even in
the merge table, so text can never become one. Source of the split patterns: llama.cpp src/llama-vocab.cpp.
"""

from __future__ import annotations

import array
import re
import sys
from collections.abc import Mapping
from typing import Protocol

import tiktoken

from indexer.errors import VocabularyUnusable
from indexer.vocabulary import Vocabulary

_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_QWEN2 = _WORDS + (r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
_LLAMA3 = _QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
_STARCODER = r"\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PATTERNS = {
    "qwen2": _QWEN2,
    "llama-bpe": _LLAMA3,
    "gpt-2": _GPT2,
    "starcoder": _STARCODER,
    "refact": _STARCODER,
    "command-r": _STARCODER,
    "smollm": _STARCODER,
    "codeshell": _STARCODER,
}
"""llama.cpp's name of a pre-tokenizer → its split. Models beyond these count through the engine."""


class Tokenizer(Protocol):
    """Text → ids. Ids travel as little-endian int32 bytes."""

    @property
    def control(self) -> Mapping[str, int]:
        """Name → id of the tokens that text never becomes."""
        ...

    def encode(self, text: str) -> bytes:
        """Ids of `text`, never a control id."""
        ...


def encode_rendered(tokenizer: Tokenizer, text: str) -> bytes:
    """Ids of a rendered prompt: names of control tokens become their ids, longest first, as llama.cpp's
    parse_special does; what stands between is ordinary text."""
    names = sorted(tokenizer.control, key=len, reverse=True)
    if not names:
        return tokenizer.encode(text)
    found = []
    for part in re.split(f"({'|'.join(map(re.escape, names))})", text):
        token = tokenizer.control.get(part)
        found.append(tokenizer.encode(part) if token is None else to_bytes([token]))
    return b"".join(found)


class TiktokenTokenizer:
    """Tokenizer over an exported vocabulary. Raises VocabularyUnusable for kinds it cannot express."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        pattern = PATTERNS.get(vocabulary.pre)
        if vocabulary.kind != "bpe" or pattern is None:
            raise VocabularyUnusable(
                f"tokenizer {vocabulary.kind}/{vocabulary.pre} cannot be expressed as byte pair ranks"
            )
        ranks = {piece: i for i, piece in enumerate(vocabulary.pieces) if piece}
        if any(bytes([b]) not in ranks for b in range(256)):
            raise VocabularyUnusable("the vocabulary lacks single bytes")
        self.control: Mapping[str, int] = vocabulary.control
        self._encoding = tiktoken.Encoding(
            vocabulary.sha256[:16], pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
        )
        ranks.clear()  # the Encoding keeps it to be pickled, what it encodes by is a copy: 100 bytes a token

    def encode(self, text: str) -> bytes:
        """Ids of `text`; lone surrogates are encoded as the replacement character."""
        return to_bytes(self._encoding.encode_ordinary(text))


def to_bytes(ids: list[int]) -> bytes:
    """Ids → little-endian int32 bytes."""
    numbers = array.array("i", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def to_ids(tokens: bytes) -> list[int]:
    """Little-endian int32 bytes → ids."""
    numbers = array.array("i")
    numbers.frombytes(tokens)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def count(tokens: bytes) -> int:
    """How many ids `tokens` holds."""
    return len(tokens) // 4
