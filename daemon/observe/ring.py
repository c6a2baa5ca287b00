"""The ledger's SQLite file: a ring of rows, apart from them the texts, which are purged by age, and a ring of
what became of answers (observe/fates.py).

`row` holds what quotes no source text, `content` the rest, compressed. What is deleted is overwritten with
zeros (secure_delete) and the log that may still hold it is cut, so that purged text is in no file of ours.
The rows can be spared: a damaged, foreign or otherwise versioned file is put aside and a new one begun.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from daemon.observe import fates
from daemon.observe.entries import Content, Entry
from daemon.observe.fates import Fate

APPLICATION = 0x464F4C47
"""SQLite's application_id of a ledger."""
VERSION = 2
"""Stored as user_version. Rows of another version are not worth a migration."""
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_PRAGMAS = ("journal_mode = wal", "synchronous = normal", "secure_delete = on", "temp_store = memory")
_TABLES = f"""
begin;
create table row(
    seq integer primary key autoincrement, id text not null, at real not null, data blob not null);
create index row_id on row(id);
create table content(seq integer primary key, at real not null, data blob not null);
{fates.TABLE}pragma application_id = {APPLICATION};
pragma user_version = {VERSION};
commit;
"""
_SKEW_S = 60.0
"""A text from further in the future than this was stored before the clock was set back."""
_SIDES = ("-wal", "-shm")
_ASIDE = ".damaged"


class Ring:
    """At most `rows` newest entries and `answers` newest fates in the file at `path`; texts for `keep_s`
    seconds (negative: as long as their rows, 0: never). One thread at a time. Raises OSError and
    sqlite3.Error when the file cannot be had.
    """

    def __init__(self, path: Path, rows: int, keep_s: float, answers: int = 0) -> None:
        self._path, self._rows, self._keep_s, self._answers = path, rows, keep_s, answers
        self.note = ""
        """Why the last file was put aside."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._db = self._open()
        except sqlite3.DatabaseError as error:
            if not damaged(error):
                raise
            put_aside(path)
            self.note = f"the last file was put aside: {error}"
            self._db = self._open()
        try:
            self.purge()
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite's side files get its mode
        self._path.chmod(0o600)
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            for pragma in _PRAGMAS:
                db.execute(f"pragma {pragma}")
            if not db.execute("select count(*) from sqlite_master").fetchone()[0]:
                db.executescript(_TABLES)
            _check(db)
        except BaseException:
            db.close()
            raise
        return db

    @property
    def there(self) -> bool:
        """Whether the file still has its name: somebody may have removed it."""
        return self._path.exists()

    def write(self, rows: Sequence[Entry | Fate]) -> None:
        """Add rows in one transaction; the oldest beyond the ring go."""
        with self._transaction():
            fates.write(self._db, [one for one in rows if isinstance(one, Fate)], self._answers)
            for entry in (one for one in rows if isinstance(one, Entry)):
                row = msgspec.msgpack.encode(msgspec.structs.replace(entry, content=None))
                written = self._db.execute(
                    "insert into row(id, at, data) values (?, ?, ?)", (entry.id, entry.when, row)
                )
                if entry.content is not None and self._keep_s:
                    packed = zlib.compress(msgspec.msgpack.encode(entry.content), 1)
                    self._db.execute(
                        "insert into content values (?, ?, ?)", (written.lastrowid, entry.when, packed)
                    )
            for table in ("row", "content"):
                self._db.execute(
                    f"delete from {table} where seq <= (select max(seq) from row) - ?",  # noqa: S608
                    (self._rows,),
                )

    def last(self, count: int) -> list[Entry]:
        """The newest `count`, oldest first, without their texts."""
        found = self._db.execute("select data from row order by seq desc limit ?", (count,)).fetchall()
        return [entry for (data,) in reversed(found) if (entry := _entry(data)) is not None]

    def find(self, prefix: str, limit: int) -> list[Entry]:
        """The newest `limit` whose id begins with `prefix`, newest first, with the texts still kept."""
        found = self._db.execute(
            "select row.data, content.data from row left join content using (seq)"
            " where substr(row.id, 1, ?) = ? order by seq desc limit ?",
            (len(prefix), prefix, limit),
        ).fetchall()
        return [entry for row, packed in found if (entry := _entry(row, packed)) is not None]

    def figures(self, since: float, shown_ms: float) -> dict[str, Any]:
        """See fates.figures."""
        return fates.figures(self._db, since, shown_ms)

    @property
    def rows(self) -> int:
        """How many entries there are."""
        return int(self._db.execute("select count(*) from row").fetchone()[0])

    def purge(self, early_s: float = 0.0, *, everything: bool = False) -> None:
        """Take out texts that are `keep_s` − `early_s` seconds old, of files put aside as well."""
        if self._keep_s < 0:
            return
        now = time.time()
        oldest = now + _SKEW_S if everything else now - max(0.0, self._keep_s - early_s)
        with contextlib.suppress(FileNotFoundError):
            if _aside(self._path).stat().st_mtime <= oldest:
                _aside(self._path).unlink()
        with self._transaction():
            self._db.execute("delete from content where at <= ? or at > ?", (oldest, now + _SKEW_S))
        self._db.execute("pragma wal_checkpoint(truncate)").fetchall()

    def close(self) -> None:
        """The last connection's end takes the log away."""
        self._db.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("rollback")
            raise
        self._db.execute("commit")


def damaged(error: Exception) -> bool:
    """Whether SQLite says that the file is not a sound database."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in _DAMAGE


def put_aside(path: Path) -> None:
    """Rename the file, in place of an earlier one, without its log. It is removed when texts would be."""
    path.replace(_aside(path))
    os.utime(_aside(path))
    _remove(path, _SIDES)


def remove(path: Path) -> None:
    """Delete the file and all that lies beside it."""
    _remove(path, ("", *_SIDES, _ASIDE))


def _remove(path: Path, suffixes: Sequence[str]) -> None:
    for suffix in suffixes:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _aside(path: Path) -> Path:
    return path.with_name(path.name + _ASIDE)


def _check(db: sqlite3.Connection) -> None:
    kind, version = (
        db.execute(f"pragma {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    sound = (kind, version) == (APPLICATION, VERSION)
    if not sound or db.execute("pragma quick_check(1)").fetchone()[0] != "ok":
        error = sqlite3.DatabaseError(
            "its structure is damaged" if sound else "it is no ledger of this version"
        )
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def _entry(row: bytes, packed: bytes | None = None) -> Entry | None:
    """None for a row that another build wrote differently."""
    try:
        entry = msgspec.msgpack.decode(row, type=Entry)
        if packed is None:
            return entry
        content = msgspec.msgpack.decode(zlib.decompress(packed), type=Content)
        return msgspec.structs.replace(entry, content=content)
    except (msgspec.MsgspecError, zlib.error):
        return None
