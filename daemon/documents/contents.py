"""What an index would know of an open text, made once a version: when typing pauses, before context asks.

text changes → due ─ nobody types for a moment → extract, outlines ─→ Content, kept with its buffer
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event, Lock
from typing import Generic, TypeVar

from indexer.languages.registry import Language
from indexer.outline import outline
from indexer.records import ParsedFile

_PAUSE_S = 0.25
"""Without a change for so long, nobody types."""
_OUTLINED = 100_000
"""Bytes of a text up to which all its outlines are made ahead: 1 ms for 15 kB."""
_T = TypeVar("_T")


class Content:
    """One version of a text as an index holds a file; `source` is its UTF-8."""

    def __init__(self, source: bytes, parsed: ParsedFile, language: Language) -> None:
        self.source = source
        self.parsed = parsed
        self._language = language
        self._outlines: dict[int, str] = {}

    def outline(self, number: int) -> str:
        """Of a type by its symbol's number, or of the whole for -1; empty when it has none."""
        if (known := self._outlines.get(number)) is not None:
            return known
        found = outline(self.source, self.parsed, self._language, number)
        return self._outlines.setdefault(number, found[0].text if found else "")

    def complete(self) -> None:
        """Make what will be asked for."""
        if len(self.source) <= _OUTLINED and not self._outlines:
            found = outline(self.source, self.parsed, self._language)
            self._outlines.update({-1: "", **{one.symbol: one.text for one in found}})


class Pause(Generic[_T]):
    """Work on what changed lately, in a thread, once nothing changes for a moment."""

    def __init__(self, work: Callable[[_T], object]) -> None:
        self._work = work
        self._pool = ThreadPoolExecutor(1, "contents")
        self._due: dict[_T, None] = {}
        self._changes = 0
        self._busy = self._ended = False
        self._hurry = Event()
        self._lock = Lock()

    def after(self, item: _T) -> None:
        """Something changed. May be called from any thread."""
        with self._lock:
            self._due[item] = None
            self._changes += 1
            if not self._busy and not self._ended:
                self._busy = True
                self._pool.submit(self._rest)

    def settle(self, seconds: float) -> bool:
        """Do not wait for a pause, but for the work; False when that takes longer."""
        self._hurry.set()
        done, _ = wait([self._pool.submit(self._hurry.clear)], seconds)
        return bool(done)

    def shut(self) -> None:
        """End the thread."""
        with self._lock:
            self._ended = True
        self._hurry.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _rest(self) -> None:
        before = -1
        while before != self._changes and not self._hurry.is_set():
            before = self._changes
            self._hurry.wait(_PAUSE_S)
        with self._lock:
            due, self._due, self._busy = self._due, {}, False
        for item in due:
            if not self._ended:
                self._work(item)


def prepare(language: Language) -> None:
    """Compile its queries, 160 ms once in a process, before the first keystroke needs them."""
    language.scope_query()
    language.import_query()
    language.query()
