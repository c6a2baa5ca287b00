"""File-to-file edges: which files a file imports, and in which it uses names that are defined only there.

An edge is a function of what is stored, so whatever the order of changes, the edges end the same. What a
change may have moved is marked stale in its own transaction: the changed files, the users of names whose only
place of definition changed, and the files whose imports may mean a path that came or went. `settle` computes
those again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence

from indexer import packing, resolve
from indexer.languages import registry
from indexer.records import Import

Rule = registry.Imports
_NONE = Rule()
_INSERT = "insert into edge(source, target, imports, uses) values (?, ?, ?, ?)"
_PLACES = "select name, min(file), max(file) from symbol group by name"
_IMPORTS = "select seq, module, names, line, level, target from import where file = ? order by seq"


def rule_of(language: str) -> Rule:
    """How a language's imports name files; no rule for a language that is not known."""
    found = registry.find(language)
    return found.facts.imports if found else _NONE


def import_keys(imports: Iterable[Import], path: str, language: str) -> list[str]:
    """Under which keys the files lie that these imports could mean, sorted."""
    rule = rule_of(language)
    return sorted({key for item in imports for key in resolve.keys(item, path, rule)})


def only_place(db: sqlite3.Connection, name: str) -> int | None:
    """The one file that defines `name`; None when there is none, or another one too."""
    found = db.execute("select file from symbol where name = ? group by file limit 2", (name,)).fetchall()
    return int(found[0][0]) if len(found) == 1 else None


class Graph:
    """Edges of one database, over the writer's connection and inside its transactions."""

    def __init__(self, db: sqlite3.Connection, ids: dict[str, int]) -> None:
        self._db = db
        self._ids = ids
        self._paths = resolve.Paths(ids)

    def moved(self, came: Iterable[str], gone: Iterable[str]) -> None:
        """Keep the paths of the root in step with `ids`; mark whom it concerns."""
        keys: set[str] = set()
        for path in came:
            self._paths.add(path)
            keys.update(resolve.Paths.keys(path))
        for path in gone:
            self._paths.discard(path)
            keys.update(resolve.Paths.keys(path))
        self.mark_users(packing.IMPORT_MARK + packing.word(key) for key in keys)

    def mark(self, files: Iterable[int]) -> None:
        """These files' edges are to be computed again."""
        self._db.executemany("insert or ignore into stale values (?)", ((file,) for file in files))

    def mark_users(self, words: Iterable[str]) -> None:
        """Mark the files that use any of these words (as in packing.used_words)."""
        self._db.executemany(
            "insert or ignore into stale select rowid from used where used match ?",
            ((f'"{word}"',) for word in words),
        )

    def mark_all(self) -> None:
        """So much changed that computing everything is cheaper."""
        self._db.execute("insert or replace into meta values ('stale_all', 1)")

    def all_stale(self) -> bool:
        """Whether `mark_all` waits to be settled."""
        return self._db.execute("select 1 from meta where key = 'stale_all'").fetchone() is not None

    def waiting(self) -> int:
        """How many files' edges are stale."""
        table = "file" if self.all_stale() else "stale"
        return int(self._db.execute(f"select count(*) from {table}").fetchone()[0])  # noqa: S608 - two constants

    def settle(self, limit: int) -> int:
        """Compute at most `limit` stale files again, or all when all is stale. Returns how many are left."""
        if self.all_stale():
            self._everything()
            return 0
        files = [row[0] for row in self._db.execute("select file from stale order by file limit ?", (limit,))]
        if files:
            self._db.executemany("delete from edge where source = ?", ((f,) for f in files))
            self._compute(files, lambda name: only_place(self._db, name))
            self._db.executemany("delete from stale where file = ?", ((f,) for f in files))
        return self.waiting()

    def _everything(self) -> None:
        places = {name: first for name, first, last in self._db.execute(_PLACES) if first == last}
        self._db.execute("delete from edge")
        self._compute([row[0] for row in self._db.execute("select id from file order by id")], places.get)
        self._db.execute("delete from stale")
        self._db.execute("delete from meta where key = 'stale_all'")

    def _compute(self, files: Sequence[int], place: Callable[[str], int | None]) -> None:
        rows: list[tuple[int, int, int, int]] = []
        for file in files:
            found = self._db.execute("select path, language from file where id = ?", (file,)).fetchone()
            if found is None or not found[1]:
                continue
            imports = self._imports(file, *found)
            uses: dict[int, int] = {}
            blob = self._db.execute("select data from reference where file = ?", (file,)).fetchone()
            counts = packing.References(blob[0]).counts() if blob else {}
            for name, n in counts.items():
                target = place(name)
                if target is not None and target != file:
                    uses[target] = uses.get(target, 0) + n
            both = sorted(imports.keys() | uses.keys())
            rows += [(file, target, imports.get(target, 0), uses.get(target, 0)) for target in both]
        self._db.executemany(_INSERT, rows)

    def _imports(self, file: int, path: str, language: str) -> dict[int, int]:
        """Resolve a file's imports, keep the first target of each; how many imports mean each file."""
        rule = rule_of(language)
        counts: dict[int, int] = {}
        changed = []
        for seq, module, names, line, level, before in self._db.execute(_IMPORTS, (file,)).fetchall():
            item = Import(module=module, names=packing.names_of(names), line=line, level=level)
            hits = [self._ids[hit] for hit in resolve.targets(item, path, rule, self._paths)]
            for hit in hits:
                counts[hit] = counts.get(hit, 0) + 1
            first = hits[0] if hits else None
            if first != before:
                changed.append((first, file, seq))
        self._db.executemany("update import set target = ? where file = ? and seq = ?", changed)
        return counts
