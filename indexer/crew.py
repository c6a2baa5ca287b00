"""A parsing child: batches of paths come in on standard input, rows go out on what was standard output.

Started as `python -I -m indexer --crew`; ends with its parent, at the end of its input.
"""

from __future__ import annotations

import gc
import logging
import os
from pathlib import Path

from indexer import tokens
from indexer.errors import VocabularyUnusable
from indexer.frames import Batch, FromChild, Ready, Setup, Source, ToChild, pack, private_pipes
from indexer.make import Maker
from indexer.vocabulary import load

_log = logging.getLogger(__name__)


def main() -> None:
    """Read Setup, then work through batches until the end of input."""
    stream, sink = private_pipes()
    source: Source[ToChild] = Source(stream, ToChild)
    setup = source.read()
    if not isinstance(setup, Setup):
        return
    tokenizer, note = tokenizer_of(setup.vocabulary)
    maker = Maker(setup, tokenizer)

    def send(message: FromChild) -> None:
        try:
            sink.write(pack(message))
            sink.flush()
        except OSError:
            os._exit(0)  # the parent is gone

    gc.freeze()
    send(Ready(note=note))
    while (message := source.read()) is not None:
        for task in message.tasks if isinstance(message, Batch) else ():
            send(maker.make(task))


def tokenizer_of(vocabulary: str) -> tuple[tokens.Tokenizer | None, str]:
    """The tokenizer of an exported vocabulary file, or None and why there is none."""
    if not vocabulary:
        return None, "no vocabulary yet: tokens are not counted"
    try:
        return tokens.TiktokenTokenizer(load(Path(vocabulary))), ""
    except VocabularyUnusable as error:
        _log.warning("tokens are not counted: %s", error)
        return None, str(error)
