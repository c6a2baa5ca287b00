"""One text that the mirror follows, with its tree: parsed on the loop when that is quick, else beside it."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

from daemon.documents import positions
from daemon.documents.contents import Content
from daemon.documents.document import Document, language_of
from daemon.documents.regions import Where
from daemon.documents.trees import Parsed, follow, shifted
from indexer.errors import NestingTooDeep, ParseBudgetExceeded
from indexer.languages.registry import Language
from indexer.parse import extract

LARGEST_PARSED = 1_048_576
"""Bytes; a larger text has no tree."""
QUICK_BYTES = 12_000
"""A first parse of so much takes about a millisecond."""
QUICK_S = 0.0008
"""What one parse may take on the loop."""
LONG_S = 2.0
_AGAIN_S = 30.0
"""Until a text that could not be parsed in time is tried again."""
_SLOW_S = 0.0015
"""A parse beside the loop that took longer says that the next one would not be quick either."""


@dataclass(eq=False)
class Buffer:
    """Fields are read and written under the mirror's lock, except in `content`."""

    where: Where
    language: Language | None
    language_name: str
    text: str = ""
    source: bytes = b""
    version: int = 0
    clients: dict[str, int] = field(default_factory=dict)
    """Client that opened it → the newest version of its own that we saw."""
    seen: float = 0.0
    """Wall clock of the last time that a client showed it."""
    parsed: Parsed | None = None
    why: str = ""
    _job: Future[None] | None = None
    _slow: bool = False
    _not_before: float = 0.0
    _content: tuple[int, bool, Content] | None = None
    _disk: tuple[tuple[int, int] | None, int, bool] = (None, -1, False)

    def take(self, text: str, source: bytes) -> None:
        """The text is now another one."""
        self.text, self.source = text, source
        self.version += 1
        if self.language is None and self.version < 2:
            self.language = language_of(self.where.path, source, self.language_name)

    def grow(self, pool: ThreadPoolExecutor, lock: RLock) -> None:
        """Bring the tree up to date, at once when it takes no time, else in `pool`."""
        if self.language is None:
            self.why = "no grammar for its language"
        elif len(self.source) > LARGEST_PARSED:
            self.parsed, self.why = None, "too large to be parsed"
        elif self._job is None and time.monotonic() >= self._not_before:
            self._grow(self.language, pool, lock)

    def _grow(self, language: Language, pool: ThreadPoolExecutor, lock: RLock) -> None:
        if not self._slow and (self.parsed is not None or len(self.source) <= QUICK_BYTES):
            try:
                self.parsed, self.why = follow(self.parsed, self.source, language, QUICK_S), ""
                return
            except NestingTooDeep as error:
                self.parsed, self.why = None, str(error)
                return
            except ParseBudgetExceeded:
                self.why = "not parsed yet"
        self.why = self.why or "not parsed yet"
        self._job = pool.submit(self._work, language, self.parsed, self.source, lock)

    def _work(self, language: Language, parsed: Parsed | None, source: bytes, lock: RLock) -> None:
        """In the pool. Goes on until the tree is that of the newest text, twice at most."""
        for _ in range(2):
            began = time.monotonic()
            why = ""
            try:
                parsed = follow(parsed, source, language, LONG_S)
            except ParseBudgetExceeded as error:
                parsed, why = None, str(error)
            with lock:
                self.parsed, self.why = parsed, why
                self._slow = time.monotonic() - began > _SLOW_S
                if why:
                    self._not_before = time.monotonic() + _AGAIN_S
                if why or source is self.source:
                    break
                source = self.source
        with lock:
            self._job = None

    @property
    def busy(self) -> bool:
        """A parse goes on beside the loop."""
        return self._job is not None

    def document(self, offset: int = -1) -> Document:
        """The present state."""
        tree, moved, why = None, False, self.why
        if self.parsed is not None:
            moved = self.parsed.source is not self.source
            tree = shifted(self.parsed, self.source) if moved else self.parsed.tree
            why = "parsed later: the tree is an older one" if moved else ""
        return Document(
            path=self.where.path,
            root=self.where.root,
            relative=self.where.relative,
            language=self.language.name if self.language else self.language_name,
            text=self.text,
            offset=offset,
            whole=True,
            open=bool(self.clients),
            version=self.version,
            source=self.source,
            tree=tree,
            moved=moved,
            why=why,
        )

    def rest(self, *, uses: bool) -> None:
        """Make what context will ask of an unsaved text; `uses`: also by those who work elsewhere. Not for
        the loop."""
        if self.where.root and not self.saved() and (content := self.content(uses=uses)) is not None:
            content.complete()

    def on_disk(self) -> Path | None:
        """Its file, when its place is known."""
        _, path, root, relative = self.where
        if root:
            return Path(root, relative)
        return Path(path) if Path(path).is_absolute() else None

    def saved(self) -> bool:
        """Whether the file holds this text, or a newer one than what a client showed without opening it.

        Reads the file when it changed: not for the loop.
        """
        file = self.on_disk()
        try:
            if file is None:
                return False
            found = file.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if not self.clients and found.st_mtime > self.seen:
                return True
            if (stamp, self.version) != self._disk[:2]:
                same = found.st_size <= 4 * len(self.source) + 4 and self._holds(file)
                self._disk = (stamp, self.version, same)
        except FileNotFoundError:  # removed since, and nobody has it open: nothing of it is left
            return not self.clients and self._disk[0] is not None
        except OSError:
            return False
        return self._disk[2]

    def _holds(self, file: Path) -> bool:
        text, _ = positions.normalise(positions.decode(file.read_bytes()))
        return text == self.text

    def content(self, *, uses: bool = True) -> Content | None:
        """What an index would know of this text, without `uses` no references and no count of errors, which
        are half of the work; None when it cannot be parsed. Not for the loop."""
        version, source, language, parsed = self.version, self.source, self.language, self.parsed
        if self._content is not None and self._content[0] == version and self._content[1] >= uses:
            return self._content[2]
        if language is None or len(source) > LARGEST_PARSED:
            return None
        try:
            parsed = follow(parsed, source, language, LONG_S)
            found = Content(source, extract(source, parsed.tree, language, LONG_S, uses=uses), language)
        except ParseBudgetExceeded:
            return None
        self._content = (version, uses, found)
        return found
