"""What a tokenizer keeps of the vocabulary that it was made of."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from indexer import tokens
from indexer.vocabulary import FORMAT, Vocabulary, load, save

WORDS = 20_000


def vocabulary() -> Vocabulary:
    """All single bytes, then words of ten letters."""
    pieces = [bytes([byte]) for byte in range(256)] + [b"word%06d" % n for n in range(WORDS)]
    return Vocabulary(format=FORMAT, sha256="words", kind="bpe", pre="qwen2", pieces=pieces)


def test_a_tokenizer_holds_its_vocabulary_once(tmp_path: Path) -> None:
    """Beside tiktoken's own copy, which no interpreter counts, nothing grows with the tokens: pieces
    and ranks in Python would be 90 bytes each."""
    save(vocabulary(), tmp_path / "v")
    tokens.TiktokenTokenizer(load(tmp_path / "v"))
    gc.collect()
    tracemalloc.start()
    try:
        made = tokens.TiktokenTokenizer(load(tmp_path / "v"))
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak > 60 * WORDS, "what was read is not counted here"
    assert held < 2 * WORDS
    assert tokens.to_ids(made.encode("ab")) == [ord("a"), ord("b")]
