"""Which index answers for a file: one read-only Reader per root, opened when it is first asked for."""

from __future__ import annotations

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

    def all(self) -> tuple[Found, ...]:
        """Every root's index; `path` is empty."""
        self._refresh()
        return tuple(Found(reader, root, "") for root, reader in self._open.items())

    def find(self, path: str) -> Found | None:
        """The index whose root holds `path`: an absolute path by the innermost root, a relative one by the
        only root that has it on disk. None when no root does, or when more than one does."""
        self._refresh()
        given = Path(path)
        if given.is_absolute():
            real = roots.normal(given)
            holding = [root for root in self._open if real.is_relative_to(root)]
            if not holding:
                return None
            root = max(holding, key=lambda r: len(r.parts))
            return Found(self._open[root], root, real.relative_to(root).as_posix())
        if ".." in given.parts or not path:
            return None
        having = [root for root in self._open if (root / given).is_file()]
        return Found(self._open[having[0]], having[0], given.as_posix()) if len(having) == 1 else None

    def close(self) -> None:
        """Let all databases go."""
        for reader in self._open.values():
            reader.close()
        self._open.clear()
        self._stamp = (0, 0)

    def _refresh(self) -> None:
        """Take in a changed list of roots: one stat when nothing changed."""
        if (stamp := _stamp()) == self._stamp:
            return
        self._stamp = stamp
        if not self._settings.on:
            return
        try:
            specs = roots.specs(self._settings)
        except SettingsError:
            return  # status tells; the roots known so far stay
        known = {Path(spec.path): Path(spec.folder) for spec in specs}
        for root in [root for root in self._open if root not in known]:
            self._open.pop(root).close()
        for root, folder in known.items():
            self._open.setdefault(root, Reader(folder / DATABASE))


def _stamp() -> tuple[int, int] | None:
    try:
        found = roots.file().stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
