"""The writing side of one root: its folder, its lock, its store and n-grams, and what waits to be written.

Errors of the disk never leave here: they become a reason, rows wait, and everything is tried again later.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from pathlib import Path

from indexer import grams, statefile
from indexer.errors import IndexBlocked, IndexDamaged, IndexUnwritable
from indexer.frames import DATABASE, Made, Plan, RootSpec
from indexer.grams import Grams
from indexer.lock import FolderLock
from indexer.records import FileRow
from indexer.store import Store
from indexer.tally import Tally

_log = logging.getLogger(__name__)
RETRY_S = 5.0
_TROUBLE = (OSError, IndexDamaged, IndexUnwritable, IndexBlocked)
_SETTLE = 200
"""Files whose edges are computed in one turn, about 0.1 s."""
_TIDY_S = 0.5
"""After so much quiet the log is emptied."""
_FILES, _BYTES, _AGE_S = 96, 4 << 20, 0.4
"""A transaction holds up to this, and no row waits longer."""


class Keeper:
    """One root's store. Only one process keeps a folder; a second says so and leaves it alone."""

    def __init__(self, spec: RootSpec, plan: Plan) -> None:
        self.folder = Path(spec.folder)
        self.trouble = ""
        """Why nothing can be written now; empty when it can."""
        self.vocabulary = ""
        """Name of the vocabulary that all stored token counts are of."""
        self.complete = False
        """Whether everything was written once since the index was begun."""
        self.urgent = False
        """Whether something that waits was just changed by a person."""
        self.delay_ms = 0.0
        self.done = self.total = 0
        self.tally = Tally()
        self._spec, self._plan = spec, plan
        self._lock = FolderLock(self.folder)
        self._store: Store | None = None
        self._known: dict[str, FileRow] = {}
        self._pending: dict[str, Made | None] = {}
        self._bytes = 0
        self._oldest = 0.0
        self._retry = 0.0
        self._grams: Grams | None = None
        self._stale: set[str] = set()
        self._edges, self._untidy = True, False
        self._written = 0.0

    @property
    def opened(self) -> bool:
        """Whether the store can be written."""
        return self._store is not None

    @property
    def pending(self) -> int:
        """Files that wait to be written."""
        return len(self._pending)

    def known(self) -> dict[str, FileRow]:
        """A copy of all rows by path, those about to be written included."""
        rows = dict(self._known)
        for path, made in self._pending.items():
            if made is not None and made.row is not None:
                rows[path] = made.row
            else:
                rows.pop(path, None)
        return rows

    def paths(self) -> set[str]:
        """Of all files that are stored or about to be."""
        return self._known.keys() | self._pending.keys()

    def row(self, path: str) -> FileRow | None:
        """The row of `path` that is stored, or about to be."""
        if path in self._pending:
            made = self._pending[path]
            return made.row if made else None
        return self._known.get(path)

    def digest(self, path: str) -> bytes:
        """Of the content as stored or about to be; empty when rows have to be made whatever it is."""
        row = self.row(path)
        return row.digest if row is not None and path not in self._stale else b""

    def stale(self) -> list[str]:
        """Paths whose rows were made with another vocabulary."""
        return sorted(self._stale)

    @property
    def grams_trouble(self) -> str:
        """Why the n-grams cannot be written; empty when they can."""
        return self._grams.trouble if self._grams else ""

    def hold(self, busy: bool) -> None:
        """While completions run, n-grams are not merged."""
        if self._grams is not None:
            self._grams.held = busy

    def open(self, now: float) -> bool:
        """Open the store if it is not and the time has come; whether it was opened now."""
        if self._store is not None or now < self._retry:
            return False
        try:
            if not self._lock.acquire():
                self.degrade("another process keeps this index", now)
                return False
            last = statefile.load(self.folder)
            if last is not None and last.generation != self._spec.generation:
                self._forget()
                last = None
            self._store = Store(self.folder / DATABASE)
            self._known = self._store.known()
        except _TROUBLE as error:
            self._fail(error, now)
            return False
        self.trouble = ""
        self.complete = last is not None and last.complete and bool(self._known)
        self.tally = Tally(self._known.values())
        self._open_grams(last.vocabulary if last else "")
        return True

    def _forget(self) -> None:
        """A rebuild was asked for: nothing of the old index stays."""
        for file in self.folder.glob(f"{DATABASE}*"):
            file.unlink()
        shutil.rmtree(self.folder / grams.FOLDER, ignore_errors=True)

    def _open_grams(self, counted: str) -> None:
        """Find out which rows need tokens of the present vocabulary; `counted` is the one they have."""
        name = Path(self._plan.vocabulary).stem
        rows = [row for row in self._known.values() if not row.reason]
        self.vocabulary = counted if rows else name
        if not name:
            return
        if counted != name:
            self._stale = {row.path for row in rows}
        elif any(row.tokens for row in rows):
            self._stale = {row.path for row in rows if row.lines and not row.tokens}
        if self._plan.ngram_mb and self._grams is None:
            try:
                self._grams = Grams(self.folder, name, self._plan.ngram_mb << 20)
            except OSError as error:
                _log.warning("no n-grams of %s: %s", self._spec.path, error)
                return
            inside = self._grams.files()
            self._stale.update(r.path for r in rows if r.tokens and inside.get(r.path) != r.digest)
            self._grams.start()
            for path in inside.keys() - self._known.keys():
                self._grams.put(path)

    def settle(self, now: float) -> None:
        """Nothing else is to be done: bring some edges up to date; tidy when all are and it stays quiet."""
        if self._store is None or not self.unsettled or (self.trouble and now < self._retry):
            return
        try:
            if self._edges:
                self._edges = self._store.settle(_SETTLE) > 0
            elif now - self._written >= _TIDY_S:
                self._store.maintain()
                self._untidy = False
        except _TROUBLE as error:
            self._fail(error, now)

    @property
    def unsettled(self) -> bool:
        """Whether `settle` has something to do."""
        return self._store is not None and (self._edges or self._untidy)

    @property
    def busy_settling(self) -> bool:
        """Whether edges wait, so that `settle` should be called again at once."""
        return self._edges and not self.trouble

    def walked(self) -> None:
        """Everything that a scan found is written."""
        self.complete = True
        if self._plan.vocabulary:
            self.vocabulary = Path(self._plan.vocabulary).stem

    def degrade(self, reason: str, now: float) -> None:
        """Nothing can be written for now; try again in RETRY_S."""
        if reason != self.trouble:
            _log.warning("index of %s: %s", self._spec.path, reason)
        self.trouble = reason
        self._retry = now + RETRY_S

    def begin_walk(self, files: int) -> None:
        """A scan found `files` to look at."""
        self.done, self.total = 0, files

    def accept(self, made: Made, urgent: bool) -> None:
        """Rows to write."""
        self.urgent = self.urgent or urgent
        self.done = min(self.total, self.done + 1)
        if made.row is None:
            self.remove(made.path)
            return
        if made.file is None:
            earlier = self._pending.get(made.path)
            if earlier is None and self._known.get(made.path) == made.row:
                return
            if earlier is not None and earlier.file is not None:
                return  # the same content as what is about to be written
        self._add(made.path, made)
        self._bytes += made.row.size

    def remove(self, path: str) -> None:
        """`path` is to be forgotten."""
        if path in self._known:
            self.urgent = True
            self._add(path, None)
        else:
            self._pending.pop(path, None)

    def _add(self, path: str, made: Made | None) -> None:
        if not self._pending:
            self._oldest = time.monotonic()
        self._pending[path] = made

    def due(self, now: float, idle: bool) -> bool:
        """Whether it is time to write: nothing more is coming, or enough waits."""
        if not self._pending or (self.trouble and now < self._retry):
            return False
        full = len(self._pending) >= _FILES or self._bytes >= _BYTES
        return idle or full or now - self._oldest >= _AGE_S

    def write(self, now: float) -> None:
        """One transaction with everything that waits."""
        if self._store is None or not self._pending:
            return
        made = [m for m in self._pending.values() if m is not None]
        files = [m.file for m in made if m.file is not None]
        same = [m.row for m in made if m.file is None and m.row is not None]
        removed = [path for path, m in self._pending.items() if m is None]
        try:
            self._store.apply(files, removed)
            if same:
                self._store.touch(same)
        except _TROUBLE as error:
            self._fail(error, now)
            return
        self.trouble = ""
        for path, one in self._pending.items():
            self._stored(path, one)
        self._pending.clear()
        self._bytes, self.urgent = 0, False
        self._edges = self._untidy = True
        self._written = now

    def _stored(self, path: str, made: Made | None) -> None:
        old, new = self._known.pop(path, None), made.row if made else None
        self._stale.discard(path)
        if new is not None:
            self._known[path] = new
            delay = time.time() - new.mtime_ns / 1e9
            if 0 <= delay < 60:
                self.delay_ms = delay * 1000
        self.tally.replace(old, new)
        if self._grams is not None and (made is None or made.file is not None):
            self._grams.put(path, new, made.ids if made else b"")

    def _fail(self, error: Exception, now: float) -> None:
        self.degrade(str(error) or type(error).__name__, now)
        if isinstance(error, IndexDamaged):
            self._retry = now  # the store has put it aside and begins afresh
            self._shut()

    def _shut(self) -> None:
        if self._store is not None:
            with contextlib.suppress(*_TROUBLE):
                self._store.close()
            self._store = None

    def flush(self) -> None:
        """Write what is ready, the n-grams as well; nothing can be added afterwards."""
        self.write(time.monotonic())
        if self._grams is not None:
            self._grams.close()
            self._grams = None

    def close(self) -> None:
        """Write what is ready and let go."""
        self.flush()
        self._shut()
        self._lock.release()
