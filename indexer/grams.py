"""The n-grams of one root, kept by a thread of their own: sorting must not delay what becomes searchable."""

from __future__ import annotations

import logging
import queue
import threading
import time
from pathlib import Path

from indexer.frames import Made
from indexer.ngrams import NgramWriter

_log = logging.getLogger(__name__)
FOLDER = "ngrams"
_QUEUE = 256
"""Files that may wait here; more make the writer of rows wait."""
_QUIET_S = 1.0
_LATEST_S = 10.0


class Grams:
    """Adds and removals in order; committed when nothing has come for a second, or after ten."""

    def __init__(self, folder: Path, vocabulary: str, most_bytes: int) -> None:
        self.trouble = ""
        self._writer = NgramWriter(folder / FOLDER, vocabulary=vocabulary, max_bytes=most_bytes)
        self._queue: queue.Queue[Made | str | None] = queue.Queue(_QUEUE)
        self._busy = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="grams")

    def files(self) -> dict[str, bytes]:
        """Path → digest of what is inside. Only before `start`."""
        return self._writer.files()

    def start(self) -> None:
        """Begin to take files."""
        self._thread.start()

    def put(self, change: Made | str) -> None:
        """A file's tokens, or the path of one to forget."""
        self._queue.put(change)
        self._busy = True

    @property
    def settled(self) -> bool:
        """Whether readers see everything."""
        return not self._busy

    def close(self) -> None:
        """Commit and end."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(30.0)

    def _run(self) -> None:
        first = 0.0
        while True:
            try:
                change = self._queue.get(timeout=_QUIET_S) if first else self._queue.get()
            except queue.Empty:
                first = self._commit()
                continue
            if change is None:
                self._commit()
                return
            first = first or time.monotonic()
            try:
                self._take(change)
            except (OSError, ValueError) as error:
                self.trouble = f"n-grams: {error}"
            if time.monotonic() - first > _LATEST_S:
                first = self._commit()

    def _take(self, change: Made | str) -> None:
        if isinstance(change, str):
            self._writer.remove_file(change)
        elif change.row is not None and change.ids:
            row = change.row
            self._writer.add_file(row.path, change.ids, digest=row.digest, changed_ns=row.mtime_ns)
        else:
            self._writer.remove_file(change.path)

    def _commit(self) -> float:
        """0.0: nothing waits any more."""
        try:
            self._writer.commit()
            while self._queue.empty() and self._writer.compact():
                pass
            self.trouble = ""
        except OSError as error:
            self.trouble = f"n-grams: {error.strerror or error}"
            _log.warning("%s", self.trouble)
        self._busy = not self._queue.empty()
        return 0.0
