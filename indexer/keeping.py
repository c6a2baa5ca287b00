"""The writing side of one root. Disk errors never leave here: rows wait, and everything is tried again."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import msgspec

from indexer import extraction
from indexer.errors import IndexDamaged
from indexer.frames import Made, Plan, RootSpec
from indexer.grams import Grams
from indexer.holding import TROUBLE, Holding
from indexer.records import FileRow
from indexer.tally import Tally
from indexer.waiting import Waiting

_log = logging.getLogger(__name__)
RETRY_S = 5.0
_HELD = "a reader holds an old snapshot; the log cannot be emptied"
_SETTLE = 200
"""Files whose edges are computed in one turn, about 0.1 s."""
TIDY_S = 0.5
"""After so much quiet the log is emptied."""


class Keeper:
    """One root's store. Only one process keeps a folder; a second says so and leaves it alone."""

    def __init__(self, spec: RootSpec, plan: Plan) -> None:
        self.folder = Path(spec.folder)
        self.trouble = ""
        """Why nothing can be written now; empty when it can."""
        self.harm = ""
        """Why the index was built again since the start; empty when it was not."""
        self.vocabulary = ""
        """Name of the vocabulary that all stored token counts are of."""
        self.complete = False
        """Whether everything was written once since the index was begun."""
        self.delay_ms = 0.0
        self.done = self.total = 0
        self.tally = Tally()
        self._spec, self._plan = spec, plan
        self.holding = Holding(self.folder, spec.generation)
        self._known: dict[str, FileRow] = {}
        self.waiting = Waiting()
        self._retry = 0.0
        self._grams: Grams | None = None
        self._stale: set[str] = set()
        self._edges, self._untidy = True, False
        self._written = 0.0

    @property
    def opened(self) -> bool:
        """Whether the store can be written."""
        return self.holding.store is not None

    @property
    def pending(self) -> int:
        """Files that wait to be written."""
        return len(self.waiting)

    @property
    def ready(self) -> bool:
        """Whether rows may be made: they can be written, or not too many wait for that."""
        return self.opened and not (self.trouble and self.waiting.full)

    def known(self) -> dict[str, FileRow]:
        """A copy of all rows by path, those about to be written included."""
        return self.waiting.over(self._known)

    def paths(self) -> set[str]:
        """Of all files that are stored or about to be."""
        return self._known.keys() | self.waiting.rows.keys()

    def row(self, path: str) -> FileRow | None:
        """The row of `path` that is stored, or about to be."""
        if path in self.waiting.rows:
            made = self.waiting.rows[path]
            return made.row if made else None
        return self._known.get(path)

    def digest(self, path: str) -> bytes:
        """Of the content as stored or about to be; empty when rows have to be made whatever it is."""
        row = self.row(path)
        return row.digest if row is not None and path not in self._stale else b""

    def stale(self) -> list[str]:
        """Paths whose rows were made with another vocabulary, or by other rules."""
        return sorted(self._stale)

    def remarks(self) -> tuple[str, ...]:
        """What is not as it should be besides `trouble`."""
        store = self.holding.store
        blocked = _HELD if store and store.wal_blocked else ""
        return blocked, self._grams.trouble if self._grams else ""

    def hold(self, busy: bool) -> None:
        """While completions run, n-grams are not merged."""
        if self._grams is not None:
            self._grams.held = busy

    def open(self, now: float) -> bool:
        """Open the store if it is not and the time has come; whether it was opened now."""
        if self.holding.store is not None or now < self._retry:
            return False
        try:
            store, last = self.holding.open()
            self._known = store.known()
            self.waiting.forget_unchanged()
            self._date()
        except TROUBLE as error:
            self._fail(error, now)
            return False
        self.trouble, self.harm = "", store.quarantined or self.harm
        self.complete = last is not None and last.complete and bool(self._known)
        self.tally = Tally(self._known.values())
        self._open_grams(last.vocabulary if last else "")
        return True

    def _date(self) -> None:
        """Find out which rows were made by other rules. They serve until they are made anew."""
        made_by = extraction.fingerprint()
        same = self.holding.notes.get("rules") == made_by
        self._stale = {path for path, row in self._known.items() if row.digest and not same}
        if not self._known:
            self.holding.note(rules=made_by)

    def look(self, now: float) -> None:
        """Now and then: whether somebody took the index away, or met damage in it."""
        try:
            self.holding.look()
        except TROUBLE as error:
            self._fail(error, now)

    def _open_grams(self, counted: str) -> None:
        """Find out which rows need tokens of the present vocabulary; `counted` is the one they have."""
        name = Path(self._plan.vocabulary).stem
        rows = [row for row in self._known.values() if not row.reason]
        self.vocabulary = counted if rows else name
        if not name:
            return
        if counted != name:
            self._stale.update(row.path for row in rows)
        elif any(row.tokens for row in rows):
            self._stale.update(row.path for row in rows if row.lines and not row.tokens)
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

    def settle(self, now: float, quiet_s: float = TIDY_S) -> None:
        """Nothing else is to be done: bring some edges up to date; tidy when all are and it stays quiet."""
        store = self.holding.store
        if store is None or not self.unsettled or (self.trouble and now < self._retry):
            return
        try:
            if self._edges:
                self._edges = store.settle(_SETTLE) > 0
            elif now - self._written >= quiet_s:
                store.maintain()
                self._untidy = store.wal_blocked
                self._written = now + RETRY_S  # should a reader be in the way
            self.trouble = ""
        except TROUBLE as error:
            self._fail(error, now)

    @property
    def unsettled(self) -> bool:
        """Whether `settle` has something to do."""
        return self.holding.store is not None and (self._edges or self._untidy)

    @property
    def busy_settling(self) -> bool:
        """Whether edges wait, so that `settle` should be called again at once."""
        return self._edges and not self.trouble

    def walked(self, mounted: bool, now: float) -> None:
        """Everything that a scan found is written. `mounted`: whether the root is a mount point."""
        self.complete = True
        if self._plan.vocabulary:
            self.vocabulary = Path(self._plan.vocabulary).stem
        try:
            if not self._stale:
                self.holding.note(rules=extraction.fingerprint())
            if self._known:
                self.holding.note(mounted=int(mounted))
        except TROUBLE as error:
            self._fail(error, now)

    def degrade(self, reason: str, now: float) -> None:
        """Nothing can be written for now; try again in RETRY_S."""
        if reason != self.trouble:
            _log.warning("index of %s: %s", self._spec.path, reason)
        self.trouble = reason
        self._retry = now + RETRY_S

    def accept(self, made: Made, urgent: bool) -> bool:
        """Rows to write. False: they are said to be as stored, and are stored no more; make them."""
        self.waiting.urgent |= urgent
        self.done = min(self.total, self.done + 1)
        if made.row is None:
            self.remove(made.path)
            return True
        if made.file is None:
            earlier, stored = self.waiting.rows.get(made.path), self._known.get(made.path)
            if earlier is not None and earlier.file is not None:
                return True  # the same content as what is about to be written
            if stored is None or stored.digest != made.row.digest or made.path in self._stale:
                return False
            row = msgspec.structs.replace(stored, size=made.row.size, mtime_ns=made.row.mtime_ns)
            if earlier is None and stored == row:
                return True
            made = msgspec.structs.replace(made, row=row)
        self.waiting.add(made.path, made)
        return True

    def remove(self, path: str) -> None:
        """`path` is to be forgotten."""
        if path in self._known:
            self.waiting.urgent = True
            self.waiting.add(path, None)
        else:
            self.waiting.rows.pop(path, None)

    def due(self, now: float, idle: bool) -> bool:
        """Whether it is time to write."""
        return not (self.trouble and now < self._retry) and self.waiting.due(now, idle)

    def write(self, now: float) -> None:
        """One transaction with everything that waits."""
        store = self.holding.store
        if store is None or not self.waiting:
            return
        made = [m for m in self.waiting.rows.values() if m is not None]
        files = [m.file for m in made if m.file is not None]
        same = [m.row for m in made if m.file is None and m.row is not None]
        removed = [path for path, m in self.waiting.rows.items() if m is None]
        try:
            store.apply(files, removed)
            if same:
                store.touch(same)
        except TROUBLE as error:
            self._fail(error, now)
            return
        self.trouble = ""
        for path, one in self.waiting.rows.items():
            self._stored(path, one)
        self.waiting.clear()
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
        self._untidy = True
        if isinstance(error, IndexDamaged):
            self.harm, self._retry = self.trouble, now  # the store has put it aside and begins afresh
            self._shut()

    def _shut(self) -> None:
        """Let go of store and n-grams; opening them again compares the one with the other."""
        self._let_grams_go()
        self.holding.shut()

    def _let_grams_go(self) -> None:
        if self._grams is not None:
            self._grams.close()
            self._grams = None

    def flush(self) -> None:
        """Write what is ready, the n-grams as well; nothing can be added afterwards."""
        self.write(time.monotonic())
        self._let_grams_go()

    def close(self) -> None:
        """Write what is ready and let go."""
        self.flush()
        self.holding.release()
