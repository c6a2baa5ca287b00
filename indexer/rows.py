"""Records → rows of one database, inside the writer's transaction. Batches go in by executemany."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence

from indexer import edges, packing
from indexer.errors import IndexDamaged
from indexer.records import FileRow, IndexedFile, ParsedFile, Symbol
from indexer.schema import FILE_COLUMNS

_FILE = f"insert into file(id, {FILE_COLUMNS}, errors, symbols, uses) values (?,?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608
_SYMBOL = "insert into symbol values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_IMPORT = "insert into import values (?,?,?,?,?,?,null)"
_BULK = 64
"""A batch of more files, and of more than a tenth of all, has all edges computed again."""
_Value = str | int | bytes | None


class Rows:
    """Writes into one database and keeps in memory what that needs: paths, ids and the graph of files."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._seen = -1
        self.refresh()

    def refresh(self) -> None:
        """Read the paths again if another process wrote, or a transaction of ours failed."""
        version = self._db.execute("pragma data_version").fetchone()[0]
        if version == self._seen:
            return
        self._ids: dict[str, int] = dict(self._db.execute("select path, id from file").fetchall())
        last = self._db.execute("select seq from sqlite_sequence where name = 'file'").fetchone()
        self._next = (last[0] if last else 0) + 1
        self.graph = edges.Graph(self._db, self._ids)
        self._seen = version

    def forget(self) -> None:
        """What is in memory may be ahead of the database."""
        self._seen = -1

    def write(self, files: Sequence[IndexedFile], removed: Sequence[str]) -> int:
        """Replace `files`, take out `removed`. Returns how many files' edges are stale then."""
        came = [f.row.path for f in files if f.row.path not in self._ids]
        gone = [path for path in removed if path in self._ids]
        old = [self._ids[path] for path in (*gone, *(f.row.path for f in files)) if path in self._ids]
        bulk = len(files) > _BULK and len(files) * 10 > len(self._ids)
        every = bulk or self.graph.all_stale()
        touched = {} if every else self._places(self._defined(files, old))
        self._erase(old)
        for path in gone:
            file = self._ids.pop(path)
            self._db.execute("delete from edge where source = ? or target = ?", (file, file))
            self._db.execute("delete from stale where file = ?", (file,))
        for path in came:
            self._ids[path] = self._next
            self._next += 1
        self._insert(files)
        self.graph.moved(came, gone)
        if every:
            self.graph.mark_all()
        else:
            now = self._places(touched)
            self.graph.mark_users(packing.word(name) for name, place in touched.items() if now[name] != place)
            self.graph.mark(self._ids[f.row.path] for f in files)
        return self.graph.waiting()

    def _defined(self, files: Sequence[IndexedFile], old: Sequence[int]) -> set[str]:
        """Names whose places of definition this batch changes."""
        before: dict[int, set[str]] = {}
        for file in old:
            rows = self._db.execute("select name from symbol where file = ?", (file,))
            before[file] = {row[0] for row in rows}
        changed: set[str] = set()
        for item in files:
            names = {s.name for s in item.parsed.symbols} if item.parsed else set()
            changed |= names ^ before.pop(self._ids.get(item.row.path, -1), set())
        return changed.union(*before.values())

    def _places(self, names: Iterable[str]) -> dict[str, int | None]:
        return {name: edges.only_place(self._db, name) for name in names}

    def _erase(self, files: Sequence[int]) -> None:
        """Take files' rows out. A full-text table without content must be told what it is to forget."""
        text: list[tuple[int, str]] = []
        used: list[tuple[int, str]] = []
        band: list[tuple[int, str]] = []
        for file in files:
            blob = self._db.execute("select data from chunk where file = ?", (file,)).fetchone()
            text += _texts(file, [c.text for c in packing.unpack_chunks(blob[0])]) if blob else []
            facts = self._db.execute("select used, bands from facts where file = ?", (file,)).fetchone()
            if facts:
                used.append((file, _inflate(facts[0])))
                band += _bands(file, packing.unpack_bands(facts[1]))
        self._db.executemany("insert into chunk_text(chunk_text, rowid, body) values ('delete', ?, ?)", text)
        self._db.executemany("insert into used(used, rowid, names) values ('delete', ?, ?)", used)
        self._db.executemany("insert into band(band, rowid, keys) values ('delete', ?, ?)", band)
        ids = [(file,) for file in files]
        for table in ("symbol", "import", "reference", "outline", "chunk", "facts"):
            self._db.executemany(f"delete from {table} where file = ?", ids)  # noqa: S608 - constant names
        self._db.executemany("delete from file where id = ?", ids)

    def _insert(self, files: Sequence[IndexedFile]) -> None:
        rows: dict[str, list[tuple[_Value, ...]]] = {}
        for item in files:
            file = self._ids[item.row.path]
            parsed = item.parsed or ParsedFile(language="")
            counts = (parsed.errors, len(parsed.symbols), len(parsed.references))
            rows.setdefault(_FILE, []).append((file, *file_values(item.row), *counts))
            self._parsed(rows, file, item.row.path, parsed, item.bands)
            if item.outlines:
                _add(rows, "insert into outline values (?,?)", (file, packing.outlines(item.outlines)))
            if item.chunks:
                _add(rows, "insert into chunk values (?,?)", (file, packing.chunks(item.chunks)))
                texts = _texts(file, [chunk.text for chunk in item.chunks])
                rows.setdefault("insert into chunk_text(rowid, body) values (?,?)", []).extend(texts)
        for statement, values in rows.items():
            self._db.executemany(statement, values)

    def _parsed(
        self,
        rows: dict[str, list[tuple[_Value, ...]]],
        file: int,
        path: str,
        parsed: ParsedFile,
        bands: Sequence[tuple[int, bytes]],
    ) -> None:
        symbols = [_symbol(file, seq, s) for seq, s in enumerate(parsed.symbols)]
        rows.setdefault(_SYMBOL, []).extend(symbols)
        names: Sequence[str] = ()
        if parsed.references:
            names = list(dict.fromkeys([r.name for r in parsed.references]))
            _add(rows, "insert into reference values (?,?)", (file, packing.references(parsed.references)))
        for seq, item in enumerate(parsed.imports):
            imported = "\n".join(item.names)
            _add(rows, _IMPORT, (file, seq, item.module, imported, item.line, item.level))
        used = packing.used_words(names, edges.import_keys(parsed.imports, path, parsed.language))
        if used or bands:
            facts = (file, zlib.compress(used.encode(), 1), packing.bands(bands))
            _add(rows, "insert into facts values (?,?,?)", facts)
            _add(rows, "insert into used(rowid, names) values (?,?)", (file, used))
            rows.setdefault("insert into band(rowid, keys) values (?,?)", []).extend(_bands(file, bands))


def file_values(row: FileRow) -> tuple[_Value, ...]:
    """Values of FILE_COLUMNS."""
    return (row.path, row.size, row.mtime_ns, row.digest, row.language, row.reason, row.lines, row.tokens)


def _symbol(file: int, seq: int, s: Symbol) -> tuple[_Value, ...]:
    span = s.span
    qualified = None if s.qualified == s.name else s.qualified
    where = (span.start_byte, span.end_byte, span.start_line, span.end_line, s.name_start, s.name_end)
    what = (file, seq, packing.KIND_OF[s.kind], s.name, qualified)
    return (*what, *where, s.parent, s.exported, s.signature, s.doc)


def _add(rows: dict[str, list[tuple[_Value, ...]]], statement: str, values: tuple[_Value, ...]) -> None:
    rows.setdefault(statement, []).append(values)


def _texts(file: int, texts: Sequence[str]) -> list[tuple[int, str]]:
    """Rows of chunk_text; what is beyond the last place is searched, and found, as part of it."""
    last = packing.PLACES - 1
    if len(texts) > packing.PLACES:
        texts = [*texts[:last], "\n".join(texts[last:])]
    return [(file << packing.PLACE_BITS | i, text) for i, text in enumerate(texts)]


def _bands(file: int, found: Iterable[tuple[int, bytes]]) -> list[tuple[int, str]]:
    return [
        (file << packing.PLACE_BITS | symbol, packing.band_words(keys))
        for symbol, keys in found
        if symbol < packing.PLACES
    ]


def _inflate(blob: bytes) -> str:
    try:
        return zlib.decompress(blob).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise IndexDamaged(f"a stored blob is damaged: {error}") from error
