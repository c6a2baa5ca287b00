"""One writer per index folder: a file held open and locked, freed by the system whenever its holder ends."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class FolderLock:
    """The lock file of one index folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "writer.lock"
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Whether it is ours now. Raises OSError when the file cannot be made."""
        if self._descriptor is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if sys.platform == "win32":
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def lost(self) -> bool:
        """Whether our lock file was removed, so that another process may hold one of its name."""
        if self._descriptor is None:
            return False
        try:
            return not os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except OSError:
            return True

    def release(self) -> None:
        """Give it back; harmless when it is not ours."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
