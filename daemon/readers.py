"""Which index answers for a file: one read-only Reader per root, opened when it is first asked for."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple, Protocol

from daemon import roots
from daemon.errors import SettingsError
from daemon.settings import Index
from indexer.frames import DATABASE
from indexer.read import Reader


class Found(NamedTuple):
    """The index for a file. `path` is relative to `root`, with `/`."""

    reader: Reader
    root: Path
    path: str


class Finder(Protocol):
    """The indexes of all roots, or the one of a measurement."""

    def find(self, path: str) -> Found | None:
        """Which index answers for a file."""


class Readers:
    """The indexes of all roots. May be called from any thread."""

    def __init__(self, settings: Index) -> None:
        self._settings = settings
        self._stamp: tuple[int, int] | None = (0, 0)
        self._open: dict[Path, Reader] = {}
        """Replaced, never changed: other threads may be going through it."""
        self._lock = threading.Lock()

    def all(self) -> tuple[Found, ...]:
        """Every root's index; `path` is empty."""
        return tuple(Found(reader, root, "") for root, reader in self._now().items())

    def find(self, path: str) -> Found | None:
        """The index whose root holds `path`: an absolute path by the innermost root, a relative one by the
        only root that has it on disk. None when no root does, or when more than one does."""
        now = self._now()
        given = Path(path)
        if given.is_absolute():
            real = roots.normal(given)
            holding = [root for root in now if real.is_relative_to(root)]
            if not holding:
                return None
            root = max(holding, key=lambda r: len(r.parts))
            return Found(now[root], root, real.relative_to(root).as_posix())
        if ".." in given.parts or not path:
            return None
        having = [root for root in now if (root / given).is_file()]
        return Found(now[having[0]], having[0], given.as_posix()) if len(having) == 1 else None

    def close(self) -> None:
        """Let all databases go."""
        with self._lock:
            gone, self._open, self._stamp = self._open, {}, (0, 0)
        for reader in gone.values():
            reader.close()

    def _now(self) -> dict[Path, Reader]:
        """Root → index, with a changed list of roots taken in: one stat when nothing changed."""
        with self._lock:
            if (stamp := roots.stamp()) == self._stamp:
                return self._open
            before, self._stamp = self._open, stamp
            if not self._settings.on:
                return before
            try:
                specs = roots.specs(self._settings)
            except SettingsError:
                return before  # status tells; the roots known so far stay
            known = {Path(spec.path): Path(spec.folder) for spec in specs}
            now = {root: before.get(root) or Reader(folder / DATABASE) for root, folder in known.items()}
            self._open = now
        for root in before.keys() - now.keys():
            before[root].close()
        return now
