"""Notices from systems that watch whole trees themselves (macOS, Windows), through watchdog's observer."""

from __future__ import annotations

import os

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from indexer.pending import Pending


class RecursiveSource(FileSystemEventHandler):
    """watchdog's observer, for systems that watch whole trees themselves. Raises OSError."""

    recursive = True

    def __init__(self, root: str, pending: Pending, marks: frozenset[str]) -> None:
        self._root, self._pending, self._names = os.path.realpath(root), pending, marks
        self._observer = Observer()
        self._observer.schedule(self, self._root, recursive=True)
        self._observer.start()

    def watched(self) -> set[str]:
        """See Source."""
        return {""}

    def watch(self, folder: str) -> None:
        """See Source."""

    def forget(self, folder: str) -> None:
        """See Source."""

    def mark(self, folder: str) -> None:
        """See Source: those inside the root are heard, others are found by the periodic look."""

    def close(self) -> None:
        """See Source."""
        self._observer.stop()
        self._observer.join()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called by the observer's thread."""
        if event.event_type in ("opened", "closed_no_write"):
            return
        if event.event_type == "modified" and event.is_directory:
            return
        for raw in (event.src_path, event.dest_path):
            if raw:
                self._notice(os.fsdecode(raw), event.event_type)

    def _notice(self, full: str, kind: str) -> None:
        if full == self._root:
            if kind in ("deleted", "moved"):
                self._pending.lose()
            return
        if not full.startswith(self._root + os.sep):
            return
        path = full[len(self._root) + 1 :].replace(os.sep, "/")
        parts = path.split("/")
        if ".git" not in parts:
            self._pending.path(path)
        elif parts[-1] in self._names or parts[-1] == ".git":
            self._pending.mark(parts[-1])
