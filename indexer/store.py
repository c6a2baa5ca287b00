"""The only writer of a root's database. One transaction per batch: a half-indexed file is never visible.

    IndexedFile… → apply ─ begin immediate ─ erase ─ insert ─ mark stale edges ─ commit ─→ settle → checkpoint

The database is disposable. Damage, a foreign or a newer file: it is put aside, a fresh one takes its place.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from indexer import quarantine, schema
from indexer.errors import IndexBlocked, IndexDamaged, IndexUnwritable
from indexer.records import FileRow, IndexedFile
from indexer.rows import Rows
from indexer.schema import FILE_COLUMNS

WAL_TRUNCATE = 16 << 20
"""Bytes of write-ahead log after which it is emptied, once what was written is visible."""
WAL_STOP = 40 << 20
"""Bytes of log that a held reader may cause before writing stops."""
SLICE_BYTES = 3 << 20
"""Text in one transaction; a larger batch becomes several, so that the log stays below 64 MB."""
SLICE_FILES = 1000
SETTLE_NOW = 32
"""Stale edges computed right after a small batch; the rest waits for `settle`."""
_CHECKPOINT_WAIT_MS = 100

log = logging.getLogger(__name__)


class Store:
    """Writer of one database; a context manager. Opening puts aside what cannot be used and begins afresh."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.quarantined = ""
        """Why the last database was put aside, empty when it was not: everything is to be indexed again."""
        self.wal_blocked = False
        """A reader holds an old snapshot: the log cannot be emptied."""
        self._stat: os.stat_result | None = None
        try:
            self._open()
        except IndexDamaged as error:
            self._replace(str(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def known(self) -> dict[str, FileRow]:
        """Path → what is stored, skipped files included."""
        with self._guarded("known"):
            rows = self._db.execute(f"select {FILE_COLUMNS} from file")  # noqa: S608 - constant columns
            return {row[0]: FileRow(**dict(zip(FileRow.__struct_fields__, row, strict=True))) for row in rows}

    def apply(self, files: Sequence[IndexedFile], removed: Sequence[str] = ()) -> None:
        """Write a batch: `files` replace what is stored under their paths, `removed` go. One transaction
        (several, each of whole files, when the batch holds more than SLICE_BYTES of text).

        Raises IndexDamaged (the database was put aside, a fresh one is open: index everything again),
        IndexBlocked and IndexUnwritable (nothing of the transaction was written).
        """
        files = list({file.row.path: file for file in files}.values())
        kept = {file.row.path for file in files}
        gone = [path for path in dict.fromkeys(removed) if path not in kept]
        for part in _slices(files):
            with self._guarded("apply"):
                self._bound_log()
                with self._transaction():
                    waiting = self._rows.write(part, gone)
            gone = []
            if waiting <= SETTLE_NOW:
                # The files are written; edges that cannot follow now stay marked and are settled later.
                with suppress(IndexBlocked, IndexUnwritable):
                    self.settle(SETTLE_NOW)
            self._after_write()

    def touch(self, rows: Sequence[FileRow]) -> None:
        """Size and times of files whose content did not change."""
        with self._guarded("touch"), self._transaction():
            values = [(r.size, r.mtime_ns, r.path) for r in rows]
            self._db.executemany("update file set size = ?, mtime_ns = ? where path = ?", values)

    def settle(self, limit: int = 500) -> int:
        """Bring edges up to date for at most `limit` files; for all at once after a first index. Returns how
        many files still wait. Call while idle, until 0."""
        with self._guarded("settle"):
            self._bound_log()
            with self._transaction():
                left = self._rows.graph.settle(limit)
        return left

    def note(self, **values: str | int) -> None:
        """Keep facts about the index beside it (`complete`, a model's name); read.py's `notes` gives them."""
        with self._guarded("note"), self._transaction():
            rows = [(f"note.{key}", value) for key, value in values.items()]
            self._db.executemany("insert or replace into meta values (?, ?)", rows)

    def notes(self) -> dict[str, str | int]:
        """What `note` kept."""
        with self._guarded("notes"):
            rows = self._db.execute("select substr(key, 6), value from meta where key glob 'note.*'")
            return dict(rows.fetchall())

    def look(self) -> None:
        """Costs two stats. Raises IndexDamaged when a reader met damage, or when somebody removed, replaced
        or cut the file."""
        with self._guarded("look"):
            self._verify()

    def _verify(self) -> None:
        """By stat alone: opening the file here, and closing it, would drop the locks that SQLite holds on it
        for this process, and a reader that leaves would take itself for the last and remove the log."""
        found = self._stat_now()
        if found is None or self._stat is None or not os.path.samestat(found, self._stat):
            raise IndexDamaged("the database was removed or replaced")
        if found.st_size < max(self._least, self._stat.st_size):
            raise IndexDamaged("the database was cut")
        self._stat = found

    def _stat_now(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except OSError:
            return None

    def maintain(self) -> None:
        """While idle: settle what is stale, merge segments of text, empty the log, refresh the planner's
        statistics."""
        while self.settle():
            pass
        with self._guarded("maintain"):
            schema.merge(self._db)
            self._db.execute("pragma optimize")
            self._truncate()

    def check(self) -> bool:
        """Look the whole file over; when it is damaged put it aside, begin afresh and return False."""
        sound = False
        with suppress(IndexDamaged), closing(schema.open_reader(self.path)) as db:
            # The writer's own connection would answer from its page cache.
            sound = schema.intact(db)
        if not sound:
            self._replace("quick_check found damage")
        return sound

    def rebuild(self, reason: str = "rebuild asked for") -> None:
        """Put the database aside and begin afresh."""
        self._replace(reason)

    def wal_bytes(self) -> int:
        """Size of the write-ahead log."""
        return _size(quarantine.beside(self.path, "-wal"))

    def close(self) -> None:
        """Empty the log and seal the file as cleanly closed. Never raises; twice is fine."""
        with suppress(sqlite3.Error, IndexDamaged, OSError):
            self._truncate()
        with suppress(sqlite3.Error):
            self._db.close()
        found = self._stat_now()
        if found is not None and self._stat is not None and os.path.samestat(found, self._stat):
            quarantine.seal(self.path)

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexUnwritable(f"open: {error.strerror}") from error
        suspicion = quarantine.suspicion(self.path)
        if suspicion.certain:
            raise IndexDamaged(suspicion.reason)
        self._db = schema.open_writer(self.path)
        quarantine.unseal(self.path)
        try:
            if suspicion.reason and not schema.intact(self._db):
                raise IndexDamaged(f"{suspicion.reason}, and quick_check found damage")
            with schema.translated("open"):
                self._rows = Rows(self._db)
            self._page = self._db.execute("pragma page_size").fetchone()[0]
            self._stat, self._least = self.path.stat(), 0
        except OSError as error:
            self._db.close()
            raise IndexUnwritable(f"open: {error.strerror}") from error
        except BaseException:
            self._db.close()
            raise

    def _replace(self, reason: str) -> None:
        log.warning("index %s is put aside and built again: %s", self.path.name, reason)
        if hasattr(self, "_db"):
            with suppress(sqlite3.Error):
                self._db.close()
        quarantine.put_aside(self.path)
        self._open()
        self.quarantined = reason
        self.wal_blocked = False

    @contextmanager
    def _guarded(self, doing: str) -> Iterator[None]:
        """Damage, seen here or reported by a reader, puts the database aside and is then raised."""
        try:
            if quarantine.reported(self.path):
                raise IndexDamaged("a reader found damage")
            with schema.translated(doing):
                yield
        except IndexDamaged as error:
            try:
                self._replace(str(error))
            except IndexUnwritable as another:
                raise IndexDamaged(f"{error}; {another}") from another
            raise

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            self._rows.refresh()
            yield
            self._db.execute("update meta set value = value + 1 where key = 'generation'")
            self._db.execute("commit")
        except BaseException:
            with suppress(sqlite3.Error):
                if self._db.in_transaction:
                    self._db.execute("rollback")
            self._rows.forget()
            raise

    def _bound_log(self) -> None:
        if self.wal_bytes() < WAL_STOP or self._truncate():
            return
        raise IndexBlocked(f"a reader holds an old snapshot; the log has {self.wal_bytes() >> 20} MB")

    def _after_write(self) -> None:
        if self.wal_bytes() > WAL_TRUNCATE:
            with suppress(sqlite3.OperationalError):
                self._truncate()

    def _truncate(self) -> bool:
        """Empty the log. False, and said once, when a reader is in the way."""
        if not self.wal_bytes():
            self.wal_blocked = False
            return True
        self._verify()  # before the file grows
        self._db.execute(f"pragma busy_timeout = {_CHECKPOINT_WAIT_MS}")
        try:
            busy = bool(self._db.execute("pragma wal_checkpoint(truncate)").fetchone()[0])
        finally:
            self._db.execute(f"pragma busy_timeout = {schema.BUSY_MS}")
        if busy and not self.wal_blocked:
            log.warning("index %s: a reader holds an old snapshot, the log cannot be emptied", self.path.name)
        self.wal_blocked = busy
        if not busy:  # all is in the file now, however short somebody cut it since
            self._least = self._db.execute("pragma page_count").fetchone()[0] * self._page
        self._verify()
        return not busy


def _slices(files: Sequence[IndexedFile]) -> Iterator[list[IndexedFile]]:
    """Whole files, at most about SLICE_BYTES of text together; one empty slice for no files."""
    part: list[IndexedFile] = []
    size = 0
    for file in files:
        text = sum(len(chunk.text) for chunk in file.chunks) or file.row.lines * 40
        if part and (size + text > SLICE_BYTES or len(part) >= SLICE_FILES):
            yield part
            part, size = [], 0
        part.append(file)
        size += text
    yield part


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
