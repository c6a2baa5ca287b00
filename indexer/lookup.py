"""Queries by key: a file and what belongs to it, a name, an edge. Each reads an index and is bounded."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from indexer import packing, quarantine, rank
from indexer.answers import (
    CANDIDATES,
    READ_FILES,
    SYMBOL,
    Edge,
    Known,
    Place,
    Status,
    chunks_of,
    file_row,
    identity,
    located,
    place_row,
    symbol_row,
    symbols_of,
)
from indexer.records import Chunk, FileRow, Import, Outline, Reference, Snippet, Symbol
from indexer.schema import FILE_COLUMNS

Named = dict[tuple[int, str], list[tuple[str, int, int]]]
"""(Whether they are hidden, folder) → (path, number, file's id) of symbols with one name."""
_EXAMPLES = 3
NAMED = "select not exported, file, seq from symbol where name = ? limit ?"


def files(db: sqlite3.Connection, language: str, after: str, limit: int) -> tuple[FileRow, ...]:
    """Rows by path."""
    where, values = "path > ?", [after]
    if language:
        where, values = "path > ? and language = ?", [after, language]
    sql = f"select {FILE_COLUMNS} from file where {where} order by path limit ?"  # noqa: S608 - constants
    return tuple(file_row(row) for row in db.execute(sql, (*values, limit)))


def file(db: sqlite3.Connection, path: str) -> FileRow | None:
    """One row."""
    row = db.execute(f"select {FILE_COLUMNS} from file where path = ?", (path,)).fetchone()  # noqa: S608
    return file_row(row) if row else None


def symbols(db: sqlite3.Connection, path: str) -> tuple[Symbol, ...]:
    """All of a file."""
    sql = f"select {SYMBOL} from symbol s where file = ? order by seq"  # noqa: S608 - constant columns
    return tuple(symbol_row(row) for row in db.execute(sql, (identity(db, path),)))


def symbol_at(db: sqlite3.Connection, path: str, byte: int) -> tuple[int, Symbol] | None:
    """The smallest symbol around a byte."""
    sql = (
        f"select s.seq, {SYMBOL} from symbol s where file = ? and start_byte <= ? and end_byte > ? "  # noqa: S608
        "order by end_byte - start_byte, seq desc limit 1"
    )
    row = db.execute(sql, (identity(db, path), byte, byte)).fetchone()
    return (row[0], symbol_row(row[1:])) if row else None


def named(db: sqlite3.Connection, name: str, known: Known) -> Named:
    """All symbols of a name. Reads its index alone. `known`: see `located`."""
    rows = db.execute(NAMED, (name, CANDIDATES)).fetchall()
    located(db, [file for _, file, _ in rows], known)
    found: Named = {}
    for hidden, file, seq in rows:
        folder, path = known[file]
        found.setdefault((hidden, folder), []).append((path, seq, file))
    return found


def definitions(db: sqlite3.Connection, named: Named, limit: int, near: str) -> tuple[Place, ...]:
    """The best of what `named` found: exported ones first, then by how near they are."""
    here = near.rpartition("/")[0]
    folders = sorted(
        (2 * hidden - rank.near_folders(here, folder), hidden, folder) for hidden, folder in named
    )
    best: list[tuple[float, str, int, int]] = []
    worst = 0.0
    for value, hidden, folder in folders:
        if len(best) >= limit and value > worst:
            break
        worst = value
        best += [(value, *row) for row in named[hidden, folder]]
    best = sorted(best)[:limit]
    symbols = symbols_of(db, [(file, seq) for _, _, seq, file in best])
    found = ((path, seq, symbols.get((file, seq))) for _, path, seq, file in best)
    return tuple(Place(path=path, number=seq, symbol=symbol) for path, seq, symbol in found if symbol)


def find(db: sqlite3.Connection, prefix: str, limit: int) -> tuple[Place, ...]:
    """By the beginning of a name."""
    sql = (
        f"select f.path, s.seq, {SYMBOL} from symbol s join file f on f.id = s.file "  # noqa: S608 - constants
        "where s.name >= ? and s.name < ? order by s.name, s.file, s.seq limit ?"
    )
    return tuple(place_row(row) for row in db.execute(sql, (prefix, prefix + "\U0010ffff", limit)))


def siblings(db: sqlite3.Connection, path: str, symbol: int, limit: int) -> tuple[Place, ...]:
    """Under the same parent."""
    file = identity(db, path)
    row = db.execute("select parent from symbol where file = ? and seq = ?", (file, symbol)).fetchone()
    sql = (
        f"select ?, s.seq, {SYMBOL} from symbol s "  # noqa: S608 - constant columns
        "where s.file = ? and s.parent = ? and s.seq <> ? order by s.seq limit ?"
    )
    return tuple(place_row(r) for r in db.execute(sql, (path, file, row[0] if row else -1, symbol, limit)))


def outlines(db: sqlite3.Connection, path: str) -> tuple[Outline, ...]:
    """Of a file and its types."""
    row = db.execute("select data from outline where file = ?", (identity(db, path),)).fetchone()
    return packing.unpack_outlines(row[0]) if row else ()


def chunks(db: sqlite3.Connection, path: str) -> tuple[Chunk, ...]:
    """The text of a file."""
    return chunks_of(db, identity(db, path))


def references(db: sqlite3.Connection, path: str) -> tuple[Reference, ...]:
    """Of a file."""
    row = db.execute("select data from reference where file = ?", (identity(db, path),)).fetchone()
    return packing.References(row[0]).rows() if row else ()


def imports(db: sqlite3.Connection, path: str) -> tuple[tuple[Import, str], ...]:
    """Of a file, with targets."""
    sql = (
        "select i.module, i.names, i.line, i.level, ifnull(f.path, '') from import i "
        "left join file f on f.id = i.target where i.file = ? order by i.seq"
    )
    return tuple(
        (Import(module=module, names=packing.names_of(names), line=line, level=level), target)
        for module, names, line, level, target in db.execute(sql, (identity(db, path),))
    )


def import_outlines(db: sqlite3.Connection, path: str, limit: int) -> tuple[Snippet, ...]:
    """File outlines over edges that hold an import."""
    sql = (
        "select f.path, f.lines, o.data, e.imports, e.uses from edge e join file f on f.id = e.target "
        "join outline o on o.file = e.target where e.source = ? and e.imports > 0 "
        "order by e.uses desc, e.imports desc, f.path limit ?"
    )
    found = []
    for other, lines, data, count, uses in db.execute(sql, (identity(db, path), min(limit, READ_FILES))):
        whole = next((o.text for o in packing.unpack_outlines(data) if o.symbol < 0), "")
        if whole:
            score = rank.weight(count, uses)
            found.append(
                Snippet(path=other, start_line=0, end_line=lines, text=whole, kind="outline", score=score)
            )
    return tuple(found)


def edges(db: sqlite3.Connection, path: str, limit: int, outgoing: bool) -> tuple[Edge, ...]:
    """One side of the graph around a file."""
    here, there = ("source", "target") if outgoing else ("target", "source")
    sql = (
        f"select f.path, e.imports, e.uses from edge e join file f on f.id = e.{there} "  # noqa: S608 - constants
        f"where e.{here} = ? order by e.imports desc, e.uses desc limit ?"
    )
    rows = db.execute(sql, (identity(db, path), CANDIDATES)).fetchall()
    found = [Edge(path=p, imports=i, uses=u, weight=rank.weight(i, u)) for p, i, u in rows]
    found.sort(key=lambda e: (-e.weight, e.path))
    return tuple(found[:limit])


def status(db: sqlite3.Connection, path: Path) -> Status:
    """Counts and sizes."""
    totals = db.execute(
        "select count(*), ifnull(sum(lines), 0), ifnull(sum(symbols), 0), ifnull(sum(uses), 0), "
        "ifnull(sum(tokens), 0), ifnull(sum(errors), 0) from file where reason = ''"
    ).fetchone()
    languages = "select language, count(*) from file where reason = '' group by language"
    skipped: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for reason, example in db.execute("select reason, path from file where reason <> '' order by path"):
        counts[reason] = counts.get(reason, 0) + 1
        if counts[reason] <= _EXAMPLES:
            skipped.setdefault(reason, []).append(example)
    meta = dict(db.execute("select key, value from meta"))
    stale = db.execute("select count(*) from stale").fetchone()[0]
    log = quarantine.beside(path, "-wal")
    return Status(
        files=totals[0],
        lines=totals[1],
        symbols=totals[2],
        references=totals[3],
        tokens=totals[4],
        errors=totals[5],
        languages=dict(db.execute(languages)),
        skipped={reason: (n, tuple(skipped[reason])) for reason, n in sorted(counts.items())},
        stale=totals[0] if meta.get("stale_all") else stale,
        database_bytes=path.stat().st_size,
        wal_bytes=log.stat().st_size if log.exists() else 0,
        generation=meta["generation"],
    )
