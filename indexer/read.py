"""Read-only queries over one root's database, for the context builder and for commands.

Every query is one short snapshot, uses an index and is bounded; p99 is below 5 ms with a million lines. The
database may be replaced under a reader (it is disposable): the next query opens the new one. Damage that a
query meets is told to the writer and raised as IndexDamaged; without a database queries raise IndexDamaged.
"""

from __future__ import annotations

import functools
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from indexer import lookup, quarantine, rank, schema, seek
from indexer.answers import Edge, Known, Place, Status, Use
from indexer.errors import IndexDamaged
from indexer.records import Chunk, FileRow, Import, Outline, Reference, Snippet, Symbol

MOST = 200
"""No query returns more rows than this, files() excepted."""
_CACHED = 512
_FILES = 32
"""Texts, outlines and references of files that are remembered, 50 KB each."""
_KNOWN = 20_000
"""Files whose paths are remembered, 100 bytes each."""
_T = TypeVar("_T")


class Reader:
    """Queries of one database. Opens on first use; may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._lock = threading.RLock()
        self._cache: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._files: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._words: dict[str, seek.Places] = {}
        self._paths: Known = {}
        self._seen = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the database go. A later query opens it again."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db = None
            self._forget()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Several queries on one state, for the milliseconds that a build of context takes. Other threads'
        queries wait."""
        with self._snapshot():
            yield

    def generation(self) -> int:
        """Grows with every transaction of the writer; two equal answers: nothing changed between them."""
        with self._snapshot() as db:
            return int(db.execute("select value from meta where key = 'generation'").fetchone()[0])

    def notes(self) -> dict[str, str | int]:
        """What the writer noted beside the index."""
        with self._snapshot() as db:
            rows = db.execute("select substr(key, 6), value from meta where key glob 'note.*'").fetchall()
        return dict(rows)

    def status(self) -> Status:
        """Counts by language, skipped by reason with examples, sizes. Scans the file table: 1 µs a file."""
        with self._snapshot() as db:
            return lookup.status(db, self.path)

    def files(self, language: str = "", after: str = "", limit: int = 1000) -> tuple[FileRow, ...]:
        """Stored files by path, skipped ones included, beginning behind the path `after`."""
        with self._snapshot() as db:
            return lookup.files(db, language, after, limit)

    def file(self, path: str) -> FileRow | None:
        """One file's row."""
        with self._snapshot() as db:
            return lookup.file(db, path)

    def symbols(self, path: str) -> tuple[Symbol, ...]:
        """All symbols of a file; a symbol's place in the tuple is its number."""
        with self._snapshot() as db:
            return lookup.symbols(db, path)

    def symbol_at(self, path: str, byte: int) -> tuple[int, Symbol] | None:
        """Number and row of the innermost symbol around a byte of a file."""
        with self._snapshot() as db:
            return lookup.symbol_at(db, path, byte)

    def definitions(self, name: str, limit: int = 20, near: str = "") -> tuple[Place, ...]:
        """Where `name` is defined: exported first, nearest to the path `near` first."""
        return self._cached("definitions", self._definitions, name, min(limit, MOST), _folder(near))

    def find(self, prefix: str, limit: int = 50) -> tuple[Place, ...]:
        """Symbols whose names begin with `prefix`, in order of names."""
        with self._snapshot() as db:
            return lookup.find(db, prefix, min(limit, MOST))

    def outlines(self, path: str) -> tuple[Outline, ...]:
        """Outlines of a file and of its types, the file's first."""
        return self._recent("outlines", lookup.outlines, path)

    def chunks(self, path: str) -> tuple[Chunk, ...]:
        """The stored text of a file, in chunks."""
        return self._recent("chunks", lookup.chunks, path)

    def imports(self, path: str) -> tuple[tuple[Import, str], ...]:
        """A file's imports with the path that each means, empty when it is not in the root."""
        with self._snapshot() as db:
            return lookup.imports(db, path)

    def import_outlines(self, path: str, limit: int = 20) -> tuple[Snippet, ...]:
        """Outlines of the files that a file imports, those it uses most first."""
        return self._cached("import_outlines", lookup.import_outlines, path, min(limit, MOST))

    def references(self, path: str) -> tuple[Reference, ...]:
        """All references in a file."""
        with self._snapshot() as db:
            return lookup.references(db, path)

    def callers(self, name: str, limit: int = 20, near: str = "") -> tuple[Use, ...]:
        """Where `name` is used (imports left out): files nearest to `near` first, calls first in each."""
        return self._cached("callers", self._callers, name, min(limit, MOST), _folder(near))

    def siblings(self, path: str, symbol: int, limit: int = 50) -> tuple[Place, ...]:
        """Symbols beside a symbol, under the same parent; with symbol -1 those at the top of the file."""
        with self._snapshot() as db:
            return lookup.siblings(db, path, symbol, min(limit, MOST))

    def similar(self, bands: bytes, limit: int = 10, apart: str = "") -> tuple[Place, ...]:
        """Callables whose signatures share bands (similarity.query_bands), most shared first; `score` is the
        share of bands. Those in the file `apart` are left out."""
        return self._cached("similar", seek.similar, bands, min(limit, MOST), apart)

    def search(self, text: str, limit: int = 10, apart: str = "") -> tuple[Snippet, ...]:
        """Chunks that hold the words of `text`, rare words weighing most; `apart` is a path left out."""
        query = functools.partial(seek.search, known=self._words)
        return self._cached("search", query, text, min(limit, MOST), apart)

    def edges(self, path: str, limit: int = 50) -> tuple[Edge, ...]:
        """Files that a file refers to, the heaviest edge first."""
        return self._cached("edges", lookup.edges, path, min(limit, MOST), True)

    def edges_to(self, path: str, limit: int = 50) -> tuple[Edge, ...]:
        """Files that refer to a file, the heaviest edge first."""
        return self._cached("edges_to", lookup.edges, path, min(limit, MOST), False)

    def importance(self, most: int = 200_000) -> dict[str, float]:
        """Path → importance by references, 1 the largest. Reads at most `most` edges, 0.2 s for 100,000: not
        for the path of a request."""
        return self._cached("importance", _importance, most)

    def _definitions(self, db: sqlite3.Connection, name: str, limit: int, near: str) -> tuple[Place, ...]:
        named = self._cached("named", lambda db, name: lookup.named(db, name, self._known()), name)
        return lookup.definitions(db, named, limit, near)

    def _callers(self, db: sqlite3.Connection, name: str, limit: int, near: str) -> tuple[Use, ...]:
        ids = seek.using(db, name, near, self._known())
        return seek.callers(db, name, limit, ids, lambda file: self._recent("uses", seek.references, file))

    def _known(self) -> Known:
        if len(self._paths) > _KNOWN:
            self._paths.clear()
        return self._paths

    def _forget(self) -> None:
        """What was read is of another state of the database."""
        self._cache.clear()
        self._files.clear()
        self._words.clear()
        self._paths.clear()

    def _cached(self, kind: str, query: Callable[..., _T], *arguments: Any) -> _T:
        return self._kept(self._cache, _CACHED, (kind, *arguments), query)

    def _recent(self, kind: str, query: Callable[..., _T], file: str | int) -> _T:
        """What is large, of files read lately: those near the work are asked for again and again."""
        return self._kept(self._files, _FILES, (kind, file), query)

    def _kept(
        self,
        table: OrderedDict[tuple[Any, ...], Any],
        most: int,
        key: tuple[Any, ...],
        query: Callable[..., _T],
    ) -> _T:
        with self._snapshot() as db:
            if key in table:
                table.move_to_end(key)
            else:
                table[key] = query(db, *key[1:])
                while len(table) > most:
                    table.popitem(last=False)
            found: _T = table[key]
            return found

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """One consistent state for several statements; held for a query, or for a few inside together()."""
        with self._lock:
            if self._db is not None and self._db.in_transaction:
                yield self._db  # inside together()
                return
            try:
                with schema.translated("read"):
                    db = self._opened()
                    version = db.execute("pragma data_version").fetchone()[0]
                    if version != self._seen:
                        self._forget()
                        self._seen = version
                    db.execute("begin")
                    try:
                        yield db
                    finally:
                        if db.in_transaction:
                            db.execute("rollback")
            except IndexDamaged:
                self._damaged()
                raise

    def _opened(self) -> sqlite3.Connection:
        """The connection; another one when the file was replaced."""
        now = _identity(self.path)
        if now is None:
            self.close()
            raise IndexDamaged(f"{self.path.name}: there is no index yet")
        if self._db is None or now != self._file:
            self.close()
            try:
                self._db = schema.open_reader(self.path)
            except IndexDamaged as error:
                if error.__cause__ is not None and now == _identity(self.path):
                    quarantine.report(self.path)  # SQLite met it: not only foreign, or of another version
                raise
            self._file = now
            self._seen = -1
        return self._db

    def _damaged(self) -> None:
        """Tell the writer of damage inside the database that still stands there. One that was just replaced
        need not be reported; what is absent, foreign or of another version the writer sees at its start."""
        ours = self._db is not None and self._file == _identity(self.path)
        self.close()
        if ours:
            quarantine.report(self.path)


def _folder(path: str) -> str:
    """All that tells how near a path is: answers hold for all files of its folder."""
    return path[: path.rfind("/") + 1]


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _importance(db: sqlite3.Connection, most: int) -> dict[str, float]:
    rows: Sequence[tuple[int, int, int, int]] = db.execute(
        "select source, target, imports, uses from edge limit ?", (most,)
    ).fetchall()
    scores = rank.importance((a, b, rank.weight(i, u)) for a, b, i, u in rows)
    paths: dict[int, str] = dict(db.execute("select id, path from file"))
    return {paths[file]: score for file, score in scores.items() if file in paths}
