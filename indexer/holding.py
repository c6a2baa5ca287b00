"""One index folder in this process's hands: its lock, its database, and the facts noted beside the rows."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from indexer import grams, statefile
from indexer.errors import IndexBlocked, IndexDamaged, IndexUnwritable
from indexer.frames import DATABASE, RootState
from indexer.lock import FolderLock
from indexer.store import Store

TROUBLE = (OSError, IndexDamaged, IndexUnwritable, IndexBlocked)
"""What every step here may raise."""


class Holding:
    """Only one process holds a folder. A new `generation` asks for a fresh database."""

    def __init__(self, folder: Path, generation: int) -> None:
        self.folder = folder
        self.store: Store | None = None
        self.foreign = False
        """Whether another process holds the folder."""
        self.notes: dict[str, str | int] = {}
        self._generation = generation
        self._lock = FolderLock(folder)

    @property
    def mounted(self) -> bool:
        """Whether the root was a mount point when it last held a file; also when nobody knows."""
        return bool(self.notes.get("mounted", True))

    def open(self) -> tuple[Store, RootState | None]:
        """Take the folder; the database, and the state that was told last of it. Raises IndexBlocked when
        another process has it."""
        self.foreign = not self._lock.acquire()
        if self.foreign:
            raise IndexBlocked("another process keeps this index")
        last = statefile.load(self.folder)
        if last is not None and last.generation != self._generation:
            self._forget()
            last = None
        self.store = Store(self.folder / DATABASE)
        self.notes = self.store.notes()
        return self.store, last

    def _forget(self) -> None:
        """A rebuild was asked for: nothing of the old index stays."""
        for file in self.folder.glob(f"{DATABASE}*"):
            file.unlink()
        shutil.rmtree(self.folder / grams.FOLDER, ignore_errors=True)

    def look(self) -> None:
        """Raises IndexDamaged when somebody took the folder away or harmed the database; open it again."""
        if self.store is not None and self._lock.lost():
            self.release()
            raise IndexDamaged("the index was removed")
        if self.store is not None:
            self.store.look()

    def note(self, **values: str | int) -> None:
        """Keep facts that are new."""
        if self.store is not None and any(self.notes.get(key) != value for key, value in values.items()):
            self.store.note(**values)
            self.notes |= values

    def shut(self) -> None:
        """Close the database; the folder stays ours."""
        if self.store is not None:
            with contextlib.suppress(*TROUBLE):
                self.store.close()
            self.store = None

    def release(self) -> None:
        """Close the database and let others have the folder."""
        self.shut()
        self._lock.release()
