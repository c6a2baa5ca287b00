"""What queries answer beyond records.py's rows, and how rows of the database become them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from indexer import packing
from indexer.records import Chunk, FileRow, Record, Reference, Span, Symbol

SYMBOL = (
    "s.kind, s.name, s.qualified, s.start_byte, s.end_byte, s.start_line, s.end_line, s.name_start, "
    "s.name_end, s.parent, s.exported, s.signature, s.doc"
)
"""Columns that symbol_row reads."""
CANDIDATES = 400
"""Rows looked at before the best are chosen."""
READ_FILES = 24
"""Files whose blobs one query opens at most."""
Known = dict[int, tuple[str, str]]
"""File's id → its folder and its path."""


class Place(Record, frozen=True):
    """A symbol, where it is, and its number in that file."""

    path: str
    number: int
    symbol: Symbol
    score: float = 0.0


class Use(Record, frozen=True):
    """A reference, where it is, and the symbol around it."""

    path: str
    reference: Reference
    inside: Symbol | None = None


class Edge(Record, frozen=True):
    """A file on the other end: how many imports mean it, how often names are used that only it defines."""

    path: str
    imports: int
    uses: int
    weight: float


class Status(Record, frozen=True):
    """What is stored. `languages`: files by language; `skipped`: reason → (count, examples)."""

    files: int
    lines: int
    symbols: int
    references: int
    tokens: int
    errors: int
    languages: dict[str, int]
    skipped: dict[str, tuple[int, tuple[str, ...]]]
    stale: int
    """Files whose edges are still to be computed."""
    database_bytes: int
    wal_bytes: int
    generation: int


def identity(db: sqlite3.Connection, path: str) -> int:
    """A file's id, 0 when it is not stored."""
    row = db.execute("select id from file where path = ?", (path,)).fetchone()
    return int(row[0]) if row else 0


def paths_of(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Paths by id, for those that are stored."""
    unique = list(dict.fromkeys(ids))
    marks = ",".join("?" * len(unique))
    return dict(db.execute(f"select id, path from file where id in ({marks})", unique))  # noqa: S608 - marks only


def located(db: sqlite3.Connection, ids: Iterable[int], known: Known) -> None:
    """Let `known` hold folder and path of files, empty for one that is not stored. Whoever keeps it clears it
    when the database changes."""
    if unknown := set(ids) - known.keys():
        paths = paths_of(db, unknown)
        known.update(
            (file, (paths.get(file, "").rpartition("/")[0], paths.get(file, ""))) for file in unknown
        )


def symbol_of(db: sqlite3.Connection, file: int, number: int) -> Symbol | None:
    """A symbol by its number; None for -1."""
    sql = f"select {SYMBOL} from symbol s where file = ? and seq = ?"  # noqa: S608 - constant columns
    row = db.execute(sql, (file, number)).fetchone() if number >= 0 else None
    return symbol_row(row) if row else None


def symbols_of(db: sqlite3.Connection, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Symbol]:
    """Symbols by (file, number), those that are stored."""
    pairs = ",".join(["(?,?)"] * len(places))
    sql = f"select s.file, s.seq, {SYMBOL} from (values {pairs}) v "  # noqa: S608 - constants and marks
    sql += "cross join symbol s on s.file = v.column1 and s.seq = v.column2"
    rows = db.execute(sql, list(chain.from_iterable(places))) if places else ()
    return {(row[0], row[1]): symbol_row(row[2:]) for row in rows}


def chunks_of(db: sqlite3.Connection, file: int) -> tuple[Chunk, ...]:
    """The stored text of a file. Raises IndexDamaged."""
    row = db.execute("select data from chunk where file = ?", (file,)).fetchone()
    return packing.unpack_chunks(row[0]) if row else ()


def chunk_of(db: sqlite3.Connection, file: int, number: int) -> Chunk | None:
    """One chunk of a file. Raises IndexDamaged."""
    row = db.execute("select data from chunk where file = ?", (file,)).fetchone()
    return packing.unpack_chunk(row[0], number) if row else None


def file_row(row: tuple[Any, ...]) -> FileRow:
    """A row of schema.FILE_COLUMNS."""
    return FileRow(**dict(zip(FileRow.__struct_fields__, row, strict=True)))


def place_row(row: tuple[Any, ...]) -> Place:
    """A row of path, number and SYMBOL."""
    return Place(path=str(row[0]), number=int(row[1]), symbol=symbol_row(row[2:]))


def symbol_row(row: Sequence[Any]) -> Symbol:
    """A row of SYMBOL."""
    kind, name, qualified, start, end, first, last, name_start, name_end, parent, exported, text, doc = row
    span = Span(start_byte=start, end_byte=end, start_line=first, end_line=last)
    return Symbol(
        kind=packing.KINDS[kind],
        name=name,
        qualified=name if qualified is None else qualified,
        span=span,
        name_start=name_start,
        name_end=name_end,
        parent=parent,
        signature=text,
        doc=doc,
        exported=bool(exported),
    )
