"""Tables of one root's database, its version, and how connections to it are opened.

    file ─┬─ symbol (rows)        reference, outline, chunk, facts (one blob per file)
          ├─ import (rows)        chunk_text, used, band (full-text tables without content)
          └─ edge (file → file)   stale (edges to compute again), meta

Full-text tables are log-structured, hold no text, and take a tenth of the source; what is needed to take a
document out of them again is kept in the blobs. Changes come as named migrations, each in one transaction
with its "applied" row.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlite_utils import Database, Migrations

from indexer.errors import IndexBlocked, IndexDamaged, IndexUnwritable

VERSION = 2
"""Raised with every migration; stored as user_version. A reader takes no other."""
APPLICATION = 0x464F5259
"""SQLite's application_id of our files."""
BUSY_MS = 5000
FILE_COLUMNS = "path, size, mtime_ns, digest, language, reason, lines, tokens"
"""Columns of `file` that make a FileRow, in its order."""

_TEXTS = ("chunk_text", "used", "band")
_SEGMENTS = 4
"""So many segments a full-text table may have, each of which every query looks into."""
_MERGED = 256
"""Pages written by one step of merging them, 4 KB each."""

migrations = Migrations("foretype-index")

_EFFECTIVE = os.access in os.supports_effective_ids
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_SCHEMA)
_UNWRITABLE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_NOMEM,
)
_TABLES = """
create table file(
    id integer primary key autoincrement, path text not null unique, size integer not null,
    mtime_ns integer not null, digest blob not null, language text not null, reason text not null,
    lines integer not null, tokens integer not null, errors integer not null, symbols integer not null,
    uses integer not null);
create table symbol(
    file integer not null, seq integer not null, kind integer not null, name text not null, qualified text,
    start_byte integer not null, end_byte integer not null, start_line integer not null,
    end_line integer not null, name_start integer not null, name_end integer not null,
    parent integer not null, exported integer not null, signature text not null, doc text not null,
    primary key(file, seq)) without rowid;
create index symbol_name on symbol(name, file);
create table import(
    file integer not null, seq integer not null, module text not null, names text not null,
    line integer not null, level integer not null, target integer, primary key(file, seq)) without rowid;
create table reference(file integer primary key, data blob not null);
create table outline(file integer primary key, data blob not null);
create table chunk(file integer primary key, data blob not null);
create table facts(file integer primary key, used blob not null, bands blob not null);
create table edge(
    source integer not null, target integer not null, imports integer not null, uses integer not null,
    primary key(source, target)) without rowid;
create index edge_target on edge(target);
create table stale(file integer primary key);
create table meta(key text primary key, value) without rowid;
create virtual table chunk_text using fts5(
    body, content='', columnsize=0, detail=none, tokenize="unicode61 remove_diacritics 0");
create virtual table used using fts5(
    names, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_$'");
create virtual table band using fts5(
    keys, content='', columnsize=0, detail=none, tokenize="ascii");
insert into chunk_text(chunk_text, rank) values ('hashsize', 8388608);
insert into used(used, rank) values ('hashsize', 4194304);
insert into band(band, rank) values ('hashsize', 4194304);
insert into meta values ('generation', 0);
"""


@migrations(name="0001_tables")
def _tables(db: Database) -> None:
    for statement in _TABLES.split(";"):
        if statement.strip():
            db.execute(statement)
    db.execute(f"pragma application_id = {APPLICATION}")
    db.execute("pragma user_version = 1")


@migrations(name="0002_exported")
def _exported(db: Database) -> None:
    """Where a name is defined, and whether others see it, is read from the index alone."""
    db.execute("drop index symbol_name")
    db.execute("create index symbol_name on symbol(name, file, exported)")
    db.execute("pragma user_version = 2")


def open_writer(path: Path) -> sqlite3.Connection:
    """Open for writing, made or migrated to VERSION. Raises IndexDamaged for a foreign or newer database."""
    with translated("open"):
        db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_MS / 1000, check_same_thread=False)
    try:
        with translated("open"):
            _check_kind(db, path, writer=True)
            for pragma in (
                "journal_mode = wal",
                "synchronous = normal",
                "wal_autocheckpoint = 0",
                "cache_size = -12288",
                "cache_spill = off",
                "temp_store = memory",
            ):
                db.execute(f"pragma {pragma}")
            migrations.apply(Database(db, execute_plugins=False, recursive_triggers=False))
            if db.execute("pragma user_version").fetchone()[0] != VERSION:
                raise IndexDamaged(f"{path.name}: its migrations do not lead to version {VERSION}")
    except BaseException:
        db.close()
        raise
    return db


def open_reader(path: Path) -> sqlite3.Connection:
    """Open read-only. Raises IndexDamaged when there is none, or it is foreign or of another version."""
    if not path.is_file():
        raise IndexDamaged(f"{path.name}: there is no index yet")
    quoted = path.absolute().as_uri()
    try:
        return _reader(f"{quoted}?mode=ro", path)
    except IndexUnwritable:
        log = path.with_name(path.name + "-wal")
        if os.access(path.parent, os.W_OK, effective_ids=_EFFECTIVE) or (log.exists() and log.stat().st_size):
            raise
    # The directory is read-only and no writer has left a log behind: nobody is writing.
    return _reader(f"{quoted}?mode=ro&immutable=1", path)


def _reader(uri: str, path: Path) -> sqlite3.Connection:
    with translated("open"):
        db = sqlite3.connect(
            uri, uri=True, isolation_level=None, timeout=BUSY_MS / 1000, check_same_thread=False
        )
    try:
        with translated("open"):
            db.execute("pragma cache_size = -8192")
            db.execute("pragma query_only = on")
            _check_kind(db, path, writer=False)
    except BaseException:
        db.close()
        raise
    return db


def _check_kind(db: sqlite3.Connection, path: Path, *, writer: bool) -> None:
    kind = db.execute("pragma application_id").fetchone()[0]
    version = db.execute("pragma user_version").fetchone()[0]
    tables = "select count(*) from sqlite_master where name not like '%_sqlite_migrations%'"
    empty = not db.execute(tables).fetchone()[0]
    if writer and empty and not version:
        return
    if kind != APPLICATION or empty:
        raise IndexDamaged(f"{path.name}: not an index of ours")
    if version > VERSION:
        raise IndexDamaged(f"{path.name}: written by a newer version ({version}, this is {VERSION})")
    if version < VERSION and not writer:
        raise IndexDamaged(f"{path.name}: of an older version ({version}, this is {VERSION})")


def merge(db: sqlite3.Connection) -> None:
    """Make one segment of a full-text table's many, where there are too many: 0.15 s for a million lines, in
    short transactions."""
    for table in _TEXTS:
        segments = f"select count(distinct segid) from {table}_idx"  # noqa: S608 - constant names
        if db.execute(segments).fetchone()[0] <= _SEGMENTS:
            continue
        pages, before = -_MERGED, 0  # negative at first: all segments, not only those that are due
        while pages < 0 or db.total_changes - before > 1:
            before = db.total_changes
            db.execute(f"insert into {table}({table}, rank) values ('merge', ?)", (pages,))  # noqa: S608
            pages = _MERGED


def intact(db: sqlite3.Connection) -> bool:
    """Whether SQLite finds the structure of the file sound: quick_check, about 0.2 s per 100 MB."""
    try:
        return bool(db.execute("pragma quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.DatabaseError:
        return False


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """SQLite's errors as ours: IndexDamaged, IndexUnwritable, IndexBlocked. Others pass through."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        primary = (code or 0) & 0xFF
        if primary in _DAMAGE or "malformed" in str(error) or "not a database" in str(error):
            raise IndexDamaged(f"{doing}: {error}") from error
        if primary in _UNWRITABLE:
            raise IndexUnwritable(f"{doing}: {error}") from error
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise IndexBlocked(f"{doing}: another process holds the database") from error
        raise
