"""A reconcile in a thread of its own, so that changes are taken in meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from indexer import walk
from indexer.content import Caps
from indexer.ignore import rules_for
from indexer.records import FileChange, FileRow
from indexer.specs import Rules


class Scan:
    """What is on disk against `known`, which nobody changes meanwhile. `rules` are those it was made with."""

    def __init__(
        self, root: Path, known: Mapping[str, FileRow], caps: Caps, wake: Callable[[], None], mounted: bool
    ) -> None:
        self.finished = False
        self.rules: Rules | None = None
        self.here: set[str] = set()
        """Every path that was listed."""
        self.left_out = ""
        """What could not be listed, in words; empty when everything was."""
        self.mounted = mounted
        """Whether the root is a mount point now; given: whether it was one."""
        self._root, self._known, self._caps, self._wake = root, known, caps, wake
        self._found: list[FileChange] = []
        self._error: Exception | None = None
        threading.Thread(target=self._run, daemon=True, name="scan").start()

    def _run(self) -> None:
        try:
            rules = rules_for(self._root, self._caps.depth, self._caps.ignore)
            listing = walk.scan(self._root, self._caps, rules)
            self._found = walk.compare(self._root, listing, self._known, self.mounted)
            self.mounted = os.path.ismount(self._root)
            self.rules = rules
            self.here = {f.path for f in listing.files} | {s.stat.path for s in listing.skipped}
            if listing.truncated:
                self.left_out = f"{listing.truncated} files beyond index.max_files are left out"
            elif listing.unnamable:
                self.left_out = f"names that are no text are left out, such as {listing.unnamable[0]}"
        except Exception as error:  # delivered to whoever asks for the result
            self._error = error
        self.finished = True
        self._wake()

    def result(self) -> list[FileChange]:
        """The differences. Raises what the scan raised."""
        if self._error is not None:
            raise self._error
        return self._found
