"""The tokenizer of the loaded model, for planning in this process."""

from __future__ import annotations

from pathlib import Path

from daemon.errors import NotSupported
from indexer.errors import VocabularyUnusable
from indexer.tokens import TiktokenTokenizer, Tokenizer
from indexer.vocabulary import load


def tokenizer_of(exported: Path, note: str, model: Path) -> Tokenizer:
    """From the exported vocabulary; from the model's own file where only llama.cpp can split its text.

    Raises NotSupported.
    """
    try:
        vocabulary = load(exported)
        if not note:
            return TiktokenTokenizer(vocabulary)
    except VocabularyUnusable as error:
        raise NotSupported(str(error), "Restart the daemon: the vocabulary is exported anew") from error
    from daemon.engine.words import Words  # noqa: PLC0415 - llama.cpp in this process only where it must be

    return Words(model, vocabulary.control)
