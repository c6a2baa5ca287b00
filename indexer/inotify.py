"""Linux: one inotify watch for each folder that matters, over watchdog's reader of the kernel's queue.

watchdog's own recursive emitter watches ignored folders too, passes over reached limits below the root and
tells no handler about lost notices; all three matter here.
"""

from __future__ import annotations

import errno
import itertools
import os
import threading

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from indexer.pending import Pending

_MASK = Mask(
    InotifyConstants.IN_CREATE
    | InotifyConstants.IN_MODIFY
    | InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_ATTRIB
    | InotifyConstants.IN_MOVED_FROM
    | InotifyConstants.IN_MOVED_TO
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
    | InotifyConstants.IN_DONT_FOLLOW
    | InotifyConstants.IN_EXCL_UNLINK
)
_PASSED_OVER = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG)


class InotifySource:
    """Implements watch.Source. Raises OSError at once when there can be no further inotify instance."""

    recursive = False

    def __init__(self, root: str, pending: Pending, marks: frozenset[str]) -> None:
        self._root, self._pending, self._names = root, pending, marks
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._at: dict[WatchDescriptor, tuple[str, CallbackId]] = {}
        self._wds: dict[str, WatchDescriptor] = {}
        self._mark_folders: set[str] = set()
        self._closing = False
        self._reader = InotifyFD()
        self._reader.name = "inotify"
        self._reader.start()

    def watched(self) -> set[str]:
        """Folders watched now, relative."""
        with self._lock:
            return set(self._wds) - self._mark_folders

    def watch(self, folder: str) -> None:
        """See Source."""
        self._add(folder, f"{self._root}/{folder}" if folder else self._root)

    def mark(self, folder: str) -> None:
        """See Source."""
        self._mark_folders.add(folder)
        self._add(folder, folder)

    def forget(self, folder: str) -> None:
        """See Source."""
        lead = f"{folder}/"
        with self._lock:
            names = [n for n in self._wds if n == folder or n.startswith(lead)]
            gone = [(wd, self._at.pop(wd)[1]) for wd in (self._wds.pop(n) for n in names) if wd in self._at]
        self._reader.remove_callbacks(gone)

    def close(self) -> None:
        """See Source."""
        self._closing = True  # the end of our own watches is no news
        self._reader.stop()
        self._reader.join()

    def _add(self, name: str, full: str) -> None:
        ident = CallbackId(next(self._ids))
        try:
            wd = self._reader.add_callback(os.fsencode(full), _MASK, self, ident)
        except OSError as error:
            if error.errno in _PASSED_OVER:
                return
            raise
        if wd < 0:  # watchdog takes a folder that may not be read for a success
            self._reader.remove_callbacks([(wd, ident)])
            return
        with self._lock:
            before = self._at.get(wd)
            self._at[wd] = (name, ident)
            self._wds[name] = wd
        if before is not None:
            self._reader.remove_callbacks([(wd, before[1])])

    def on_event(self, event: InotifyEvent) -> None:
        """Called by the reader's thread."""
        with self._lock:
            folder, _ = self._at.get(event.wd, (None, 0))
        if folder is None:
            return
        name = os.fsdecode(event.name)
        if folder in self._mark_folders:
            if name in self._names:
                self._pending.mark(name)
        elif not name:
            if not folder and not event.is_attrib:
                self._pending.lose()
        elif name == ".git":
            self._pending.mark(name)
        else:
            self._notice(event, f"{folder}/{name}" if folder else name)

    def _notice(self, event: InotifyEvent, path: str) -> None:
        if event.is_directory and event.is_moved_from:
            self._pending.moved(path)
        elif event.is_directory and (event.is_create or event.is_moved_to):
            self._pending.folder(path)
        self._pending.path(path)

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """Called by the reader: the folder is gone, or the reader closes."""
        if self._closing:
            return
        with self._lock:
            folder, _ = self._at.pop(wd, ("?", 0))
            if self._wds.get(folder) == wd:
                del self._wds[folder]
        if not folder:
            self._pending.lose()

    def on_queue_overflow(self) -> None:
        """Called by the reader: the kernel dropped notices."""
        self._pending.flood()
