"""The n-grams of one root, kept by a thread of their own: sorting must not delay what becomes searchable."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

from indexer.ngrams import NgramWriter
from indexer.records import FileRow

_log = logging.getLogger(__name__)
FOLDER = "ngrams"
_QUEUE = 256
"""Files that may wait here; more make the writer of rows wait."""
_QUIET_S = 1.0
_LATEST_S = 5.0
_TIDY_S = 3.0
"""Of quiet before each step of tidying."""

Change = tuple[str, FileRow | None, bytes]
"""(path, its row, its ids)"""


class Grams:
    """Adds and removals in order; committed when nothing has come for a second, or after five.

    Segments are merged only in quiet: during a first index, and at the end, somebody waits.
    """

    def __init__(self, folder: Path, vocabulary: str, most_bytes: int) -> None:
        self.trouble = ""
        self.held = False
        """Whether merging has to wait: it takes a core for seconds."""
        self._writer = NgramWriter(folder / FOLDER, vocabulary=vocabulary, max_bytes=most_bytes)
        self._queue: queue.Queue[Change | None] = queue.Queue(_QUEUE)
        self._thread = threading.Thread(target=self._run, daemon=True, name="grams")

    def files(self) -> dict[str, bytes]:
        """Path → digest of what is inside. Only before `start`."""
        return self._writer.files()

    def start(self) -> None:
        """Begin to take files."""
        self._thread.start()

    def put(self, path: str, row: FileRow | None = None, ids: bytes = b"") -> None:
        """A file's tokens; without any it is forgotten."""
        self._queue.put((path, row, ids))

    def close(self) -> None:
        """Commit and end."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(30.0)

    def _run(self) -> None:
        first, untidy = 0.0, False
        while True:
            try:
                change = self._queue.get(timeout=_QUIET_S if first else _TIDY_S if untidy else None)
            except queue.Empty:
                if first or not self.held:
                    untidy = self._try(self._writer.commit if first else self._writer.compact)
                first = 0.0
                continue
            if change is None:
                self._try(self._writer.commit)
                return
            first = first or time.monotonic()
            try:
                self._take(*change)
            except (OSError, ValueError) as error:
                self.trouble = f"n-grams: {error}"
            if time.monotonic() - first > _LATEST_S:
                untidy, first = self._try(self._writer.commit), 0.0

    def _take(self, path: str, row: FileRow | None, ids: bytes) -> None:
        if row is not None and ids:
            self._writer.add_file(path, ids, digest=row.digest, changed_ns=row.mtime_ns)
        else:
            self._writer.remove_file(path)

    def _try(self, step: Callable[[], bool]) -> bool:
        """A commit, or one step of tidying; False when there was nothing to do, or it failed."""
        done = False
        try:
            done = step()
            self.trouble = ""
        except OSError as error:
            self.trouble = f"n-grams: {error.strerror or error}"
            _log.warning("%s", self.trouble)
        return done
