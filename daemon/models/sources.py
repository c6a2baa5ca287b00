"""What the sources of a pull share: the task, its progress, and how a source gives up."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from daemon.errors import PullError
from daemon.models.entries import Entry
from daemon.models.partial import Partial

RESERVE = 64 << 20
"""Bytes of the disk that a pull leaves free."""
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


class SourceFailed(Exception):
    """This source cannot deliver; says why. What it wrote stays for the next try."""


class Progress(msgspec.Struct, frozen=True):
    """How far a pull is, in bytes. `total` is an estimate until a source has told its size."""

    done: int
    total: int
    note: str


def free_bytes(folder: Path) -> int:
    """Free bytes on the disk that holds `folder`."""
    return shutil.disk_usage(folder).free


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One pull: which entry, into which partial file, who is told."""

    entry: Entry
    partial: Partial
    progress: Callable[[Progress], None]
    free: Callable[[Path], int]

    @property
    def pinned(self) -> bool:
        """Whether the hash, and so the exact size, is known beforehand."""
        return bool(self.entry.sha256)

    def report(self, note: str, done: int | None = None, total: int | None = None) -> None:
        """Tell how far we are."""
        at = self.partial.size if done is None else done
        self.progress(Progress(done=at, total=total or self.entry.bytes, note=note))

    def check_size(self, total: int) -> None:
        """Refuse a source that offers another size than expected (a portal's page, another file)."""
        expected = self.entry.bytes
        if self.pinned and total != expected:
            raise SourceFailed(f"it offers {total} bytes, expected {expected}")
        if total > 2 * expected:
            raise SourceFailed(f"it offers {total} bytes, expected about {expected}")

    def check_space(self, more: int) -> None:
        """Refuse to begin what the disk cannot hold. Raises PullError with the numbers."""
        folder = self.partial.path.parent
        free = self.free(folder)
        if more + RESERVE > free:
            raise PullError(
                f"not enough disk space for {self.entry.name}: {gigabytes(more + RESERVE)} more needed, "
                f"{gigabytes(free)} free in {folder}",
                "Free some space, or set FORETYPE_MODELS to a folder on a larger disk",
            )


def gigabytes(count: int) -> str:
    """Bytes for people."""
    return f"{count / 1e9:.2f} GB" if count >= 10_000_000 else f"{count / 1e6:.2f} MB"


def disk_error(error: OSError, task: Task) -> PullError:
    """What a failed write means to the user; the partial file stays."""
    folder = task.partial.path.parent
    kept = f"the first {gigabytes(task.partial.on_disk())} are kept for the next try"
    if error.errno in _FULL:
        return PullError(
            f"the disk is full while writing {task.entry.name} to {folder}; {kept}", "Free some space"
        )
    return PullError(
        f"{folder} cannot be written ({error.strerror or error}); {kept}", "Check its permissions"
    )
