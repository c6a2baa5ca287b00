"""Pages as files of one folder: written behind, in one thread, by one process at a time, under a ceiling.

Room is made before a file is written, so the ceiling holds at every moment for whoever looks at the folder.
Where nothing can be written, `why` says so, pages that are there are still read, and it is tried again later.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import queue
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from daemon.engine import pagefile
from daemon.engine.pagefile import PART, SUFFIX, Page, PageDamaged
from daemon.errors import LifecycleError
from daemon.instance import Lock

_log = logging.getLogger(__name__)
_BLOCK = 4096
_SPARE = 512 * 1024 * 1024
"""Bytes that are left to others on the disk."""
_AGAIN_S = 300.0
"""After so long a level that went off is tried again."""
OLDEST_S = 30 * 24 * 3600.0
"""What was not used for so long is forgotten: no text lies here for ever."""
MB = 1024 * 1024


class Disk:
    """The files of one user. Methods belong to the engine thread; the writer is the only other one."""

    def __init__(self, folder: Path, ceiling: int, identity: bytes) -> None:
        self.ceiling = ceiling
        self.why = "" if ceiling else "engine.disk_mb is 0"
        self.damaged = 0
        """Files that were not what they said they were."""
        self._folder = folder
        self._identity = identity
        self._lock = Lock(folder / "lock")
        self._owned = False
        self._again = 0.0
        self._files: dict[str, tuple[int, float]] = {}
        """Name → (bytes of its blocks, last use) of every page in the folder, whoever computed it."""
        self._touched: set[str] = set()
        self._guard = threading.Lock()
        self._pending: set[bytes] = set()
        self._queue: queue.SimpleQueue[tuple[Page, mmap.mmap]] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._open()

    @property
    def size(self) -> int:
        """Bytes of all files, whole blocks."""
        with self._guard:
            return sum(size for size, _ in self._files.values())

    @property
    def count(self) -> int:
        """Files of all models."""
        return len(self._files)

    @property
    def pending(self) -> int:
        """Pages that wait to be written."""
        return len(self._pending)

    def writes(self) -> bool:
        """Whether a page can be put. Looks again at a level that went off, after a while."""
        if self.ceiling and self.why and time.monotonic() >= self._again:
            self._open()
        return not self.why

    def has(self, page: Page) -> bool:
        """Whether its file is there."""
        return self._name(page) in self._files

    def waits(self, page: Page) -> bool:
        """Whether its state must stay in memory until it is written."""
        return page.key in self._pending

    def put(self, page: Page) -> None:
        """Write it behind. `page.data` may be given up once it no longer waits."""
        if page.data is None or self.has(page) or self.waits(page) or not self.writes():
            return
        self._pending.add(page.key)
        self._queue.put((page, page.data))
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, daemon=True, name="pages")
            self._writer.start()

    def take(self, page: Page) -> mmap.mmap | None:
        """Its state; None where the file is gone, damaged and removed for it, or not to be read now."""
        name = self._name(page)
        try:
            data = pagefile.read(self._folder / name, self._identity, page)
        except PageDamaged as damage:
            _log.warning("a page is damaged: %s", damage)
            self._remove(name)
            self.damaged += 1
            return None
        except FileNotFoundError:
            with self._guard:
                self._files.pop(name, None)
            return None
        except OSError:
            return None
        return data

    def touch(self, page: Page) -> None:
        """Note its last use."""
        name = self._name(page)
        with self._guard:
            if name in self._files:
                self._files[name] = (self._files[name][0], page.used)
                self._touched.add(name)

    def remember(self) -> None:
        """Note in the files when they were last used, so that the next process knows it."""
        with self._guard:
            times = {name: self._files[name][1] for name in self._touched if name in self._files}
            self._touched.clear()
        for name, used in times.items():
            with contextlib.suppress(OSError):
                os.utime(self._folder / name, (used, used))

    def expire(self) -> None:
        """Remove what has been unused for too long, whoever computed it."""
        oldest = time.time() - OLDEST_S
        with self._guard:
            old = [name for name, (_, used) in self._files.items() if used < oldest]
        for name in old if self._owned else ():
            self._remove(name)

    def drop(self, page: Page) -> None:
        """Remove its file where the folder is ours to write; one that waits is not written."""
        self._pending.discard(page.key)
        if self._owned and not self.why and self.has(page):
            self._remove(self._name(page))

    def pages(self) -> Iterator[Page]:
        """What is there of this model. A file whose head is damaged, or that has another's name, is removed.

        Raises nothing: what cannot be read is not there.
        """
        mine = self._identity.hex()[:16] + "-"
        for name, (_, used) in sorted(self._files.items()):
            if not name.startswith(mine):
                continue
            try:
                head = pagefile.read_head(self._folder / name)
            except OSError:
                continue
            except PageDamaged:
                self._remove(name)
                self.damaged += 1
                continue
            tokens, widths = np.frombuffer(head.tokens, np.int32), np.frombuffer(head.widths, np.int32)
            page = Page(head.parent, head.start, tokens, widths, head.size, used)
            if self._name(page) == name:
                yield page
            else:
                self._remove(name)
                self.damaged += 1

    def close(self) -> None:
        """Give the folder back; what waits is lost."""
        self._pending.clear()
        self._lock.release()

    def _open(self) -> None:
        """Make the folder ours, see what is there, and bring it under the ceiling; 0 leaves nothing."""
        if not self.ceiling and not self._folder.is_dir():
            return
        try:
            self._own()
            self._files = self._scan()
        except OSError as error:
            self._off(f"{error.strerror or error}")
        except LifecycleError as error:
            self._off(error.message)
        else:
            self.why = "" if self._owned else "another process writes there"
            self._again = time.monotonic() + _AGAIN_S
            self.expire()
            if self._owned:
                self._fit(0, (float("inf"), 0))
            if not self.ceiling:
                self.why = "engine.disk_mb is 0"

    def _own(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = self._folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
            raise LifecycleError(f"{self._folder.name} is not a folder of this user")
        if stat.S_IMODE(found.st_mode) != 0o700 and os.name == "posix":
            self._folder.chmod(0o700)
        self._owned = self._owned or self._lock.acquire()

    def _scan(self) -> dict[str, tuple[int, float]]:
        """Pages that are there. A temporary file is stale: only the owner of the lock writes any."""
        found = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.endswith(PART) and self._owned:
                    self._unlink(entry.name)
                elif entry.name.endswith(SUFFIX):
                    with contextlib.suppress(FileNotFoundError):  # its owner removed it meanwhile
                        seen = entry.stat(follow_symlinks=False)
                        found[entry.name] = (_blocks(seen.st_size), seen.st_mtime)
        return found

    def _fit(self, size: int, rank: tuple[float, int]) -> bool:
        """Remove what is worth less than `rank` until `size` more bytes fit under the ceiling."""
        with self._guard:
            held = self._files.items()
            order = sorted((used, -pagefile.start_of(name), name, taken) for name, (taken, used) in held)
        total = sum(taken for *_, taken in order)
        for used, start, name, taken in order:
            if total + size <= self.ceiling:
                break
            if (used, start) >= rank:
                return False
            total -= taken
            self._remove(name)
        return total + size <= self.ceiling

    def _write_all(self) -> None:
        while True:
            page, data = self._queue.get()
            if page.key in self._pending and not self.why:
                try:
                    self._write(page, data)
                except OSError as error:
                    self._unlink(self._name(page).replace(SUFFIX, PART))
                    self._off(f"{error.strerror or error}")
            self._pending.discard(page.key)
            del page, data

    def _write(self, page: Page, data: mmap.mmap) -> None:
        size = _blocks(page.size + 4 * 1024)
        if shutil.disk_usage(self._folder).free < size + _SPARE:
            self._off(f"less than {_SPARE // MB} MB are free on its disk")
        elif self._fit(size, page.rank):
            name = self._name(page)
            pagefile.write(self._folder / name, self._identity, page, data)
            with self._guard:
                self._files[name] = (size, page.used)

    def _off(self, why: str) -> None:
        if why != self.why:
            _log.warning("pages are not written to disk: %s", why)
        self.why, self._again = why, time.monotonic() + _AGAIN_S

    def _remove(self, name: str) -> None:
        with self._guard:
            self._files.pop(name, None)
        self._unlink(name)

    def _unlink(self, name: str) -> None:
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            _log.warning("a page cannot be removed: %s", error.strerror)

    def _name(self, page: Page) -> str:
        return pagefile.file_name(self._identity, page)


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
