"""The writer: equal to a plain model after any history, atomic, bounded, and disposable."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database
from support import rows

from indexer import lookup, schema
from indexer.errors import IndexBlocked, IndexDamaged, IndexUnwritable
from indexer.read import Reader
from indexer.records import FileRow, Import, IndexedFile
from indexer.store import WAL_TRUNCATE, Store

NAMES = ["run", "load", "größe", "save_all", "_hidden", "Parser", "x", "$dollar", "operator+", "日本"]
PATHS = [
    "a.py",
    "b.py",
    "pkg/__init__.py",
    "pkg/a.py",
    "pkg/b.py",
    "pkg/sub/__init__.py",
    "src/c.py",
    "x y/d.py",
]


def some_file(source: random.Random, path: str) -> IndexedFile:
    imports = [
        Import(module=source.choice(["a", "b", "pkg", "pkg.a", "pkg.sub", "c", "os"]), line=i)
        for i in range(source.randrange(3))
    ]
    if source.random() < 0.5:
        imports.append(Import(module="", names=(source.choice("abc"),), level=source.randint(1, 2)))
    if source.random() < 0.1:
        return IndexedFile(row=FileRow(path=path, size=3, mtime_ns=4, digest=b"d" * 16, reason="binary"))
    return rows.made(
        path,
        defines=source.sample(NAMES, source.randrange(4)),
        uses=[source.choice(NAMES) for _ in range(source.randrange(9))],
        imports=imports,
        text=" ".join(source.choices(["alpha", "beta", "füŋ", "snake_case", "42", *NAMES], k=30)),
    )


@pytest.mark.parametrize("seed", range(6))
def test_any_history_equals_a_fresh_build(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    model: dict[str, IndexedFile] = {}
    store = Store(tmp_path / "lived.db")
    for step in range(60):
        chosen = source.sample(PATHS, source.randrange(4))
        batch = [some_file(source, path) for path in chosen]
        removed = source.sample(PATHS, source.randrange(3))
        store.apply(batch, removed)
        for path in removed:
            model.pop(path, None)
        model.update({file.row.path: file for file in batch})
        if step % 20 == 7:
            store.close()
            store = Store(tmp_path / "lived.db")
            assert not store.quarantined
        assert store.known() == {path: file.row for path, file in model.items()}
        if step % 10 == 9:
            store.maintain()
            fresh = tmp_path / f"fresh{step}.db"
            with Store(fresh) as other:
                other.apply(list(model.values()))
                other.maintain()
            assert rows.everything(tmp_path / "lived.db") == rows.everything(fresh)
    store.close()


def test_a_first_index_in_bulk_equals_one_file_at_a_time(tmp_path: Path) -> None:
    source = random.Random(11)
    files = [some_file(source, f"{'pkg/' if i % 3 else ''}m{i}.py") for i in range(150)]
    with Store(tmp_path / "bulk.db") as store:
        store.apply(files)
        assert store.settle() == 0
    with Store(tmp_path / "single.db") as store:
        for file in files:
            store.apply([file])
        store.maintain()
    assert rows.everything(tmp_path / "bulk.db") == rows.everything(tmp_path / "single.db")


def test_edges_follow_what_others_define_and_import(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with Store(path) as store, Reader(path) as reader:
        user = rows.made("app/main.py", uses=["helper", "helper"], imports=[Import(module="app.util")])
        store.apply([user])
        assert reader.edges("app/main.py") == ()
        store.apply([rows.made("app/util.py", defines=["helper"])])
        (edge,) = reader.edges("app/main.py")
        assert (edge.path, edge.imports, edge.uses) == ("app/util.py", 1, 2)
        assert reader.imports("app/main.py")[0][1] == "app/util.py"
        store.apply([rows.made("other.py", defines=["helper"])])
        assert [(e.imports, e.uses) for e in reader.edges("app/main.py")] == [(1, 0)]
        store.apply([], ["app/util.py"])
        assert [(e.path, e.uses) for e in reader.edges("app/main.py")] == [("other.py", 2)]
        assert [e.path for e in reader.edges_to("other.py")] == ["app/main.py"]


def test_touch_changes_only_the_stat(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    file = rows.made("a.py", defines=["f"])
    with Store(path) as store:
        store.apply([file])
        before = rows.everything(path)["words"]
        moved = FileRow(path="a.py", size=9, mtime_ns=77, digest=file.row.digest, language="python")
        store.touch([moved])
        known = store.known()["a.py"]
        assert (known.size, known.mtime_ns, known.lines) == (9, 77, file.row.lines)
        assert rows.everything(path)["words"] == before


def test_one_file_that_cannot_be_stored_leaves_the_batch_unwritten(tmp_path: Path) -> None:
    with Store(tmp_path / "x.db") as store:
        store.apply([rows.made("a.py", defines=["f"])])
        bad = rows.made(
            "bad.py", defines=["ok"], text="lone \ud800 surrogate".encode(errors="replace").decode()
        )
        wrong = IndexedFile(row=FileRow(path="w.py", size=1, mtime_ns=1 << 70, digest=b""))
        with pytest.raises(OverflowError):
            store.apply([bad, wrong], ["a.py"])
        assert list(store.known()) == ["a.py"]
        store.apply([bad], ["a.py"])
        assert list(store.known()) == ["bad.py"]


def test_migrations_are_named_and_recorded(tmp_path: Path) -> None:
    Store(tmp_path / "x.db").close()
    db = sqlite3.connect(tmp_path / "x.db")
    applied = [row[0] for row in db.execute("select name from _sqlite_migrations")]
    assert applied == ["0001_tables", "0002_exported"]
    assert db.execute("pragma user_version").fetchone()[0] == schema.VERSION
    assert db.execute("pragma journal_mode").fetchone()[0] == "wal"
    db.close()


def test_a_database_of_the_first_version_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    db = sqlite3.connect(path, isolation_level=None)
    schema.migrations.apply(Database(db, execute_plugins=False), stop_before="0002_exported")
    assert db.execute("pragma user_version").fetchone()[0] == 1
    db.execute("insert into meta values ('note.old', 'kept')")
    db.close()
    with pytest.raises(IndexDamaged, match="older version"), Reader(path) as reader:
        reader.notes()
    with Store(path) as store, Reader(path) as reader:
        assert not store.quarantined
        assert reader.notes() == {"old": "kept"}
        store.apply([rows.made("a.py", defines=["f", "_f"])])
        assert [p.path for p in reader.definitions("f")] == ["a.py"]
        (plan,) = asked(path, f"explain query plan {lookup.NAMED}", "f", 1)
        assert "COVERING INDEX symbol_name" in plan[-1]


def test_segments_of_text_are_merged_while_idle(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with Store(path) as store, Reader(path) as reader:
        for i in range(12):
            store.apply([rows.made(f"f{i}.py", defines=[f"f{i}"], uses=["used"], text=f"common word{i}\n")])
        assert max(segments(path)) > 4
        found = [reader.search("common word3"), reader.callers("used")]
        store.maintain()
        assert segments(path) == [1, 1, 1]
        assert [reader.search("common word3"), reader.callers("used")] == found
        store.apply([rows.made("new.py", uses=["used"], text="word3\n")], ["f3.py"])
        assert [s.path for s in reader.search("word3")] == ["new.py"]


def segments(path: Path) -> list[int]:
    tables = ("chunk_text", "used", "band")
    return [asked(path, f"select count(distinct segid) from {table}_idx")[0][0] for table in tables]


def asked(path: Path, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql, values).fetchall()


def test_a_migration_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_TABLES", schema._TABLES + "; create table file(again)")
    with pytest.raises(sqlite3.OperationalError):
        schema.open_writer(tmp_path / "x.db")
    monkeypatch.undo()
    with Store(tmp_path / "x.db") as store:
        assert not store.quarantined
        store.apply([rows.made("a.py")])


def fill(store: Store, written: list[int]) -> None:
    for i in range(200):
        store.apply([rows.noise(f"f{i}", i, 1 << 20)])
        written.append(i)


def test_the_log_stays_bounded_while_a_reader_holds_on(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with Store(path) as store:
        store.apply([rows.noise("first", 0, 1000)])
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("begin")
        assert holder.execute("select count(*) from file").fetchone()[0] == 1
        written: list[int] = []
        with pytest.raises(IndexBlocked, match="reader"):
            fill(store, written)
        assert store.wal_blocked
        assert store.wal_bytes() <= 64 << 20
        assert len(store.known()) == 1 + len(written)
        assert holder.execute("select count(*) from file").fetchone()[0] == 1
        holder.execute("rollback")
        holder.close()
        store.apply([rows.noise("last", 1, 1000)])
        assert not store.wal_blocked
        assert store.wal_bytes() <= WAL_TRUNCATE
        store.maintain()
        assert store.wal_bytes() == 0


def test_a_second_writer_waits_and_both_see_all(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with Store(path) as one, Store(path) as two:
        for i in range(20):
            one.apply([rows.made(f"one{i}.py", defines=[f"f{i}"])])
            two.apply([rows.made(f"two{i}.py", uses=[f"f{i}"])])
        assert len(one.known()) == len(two.known()) == 40
        with Reader(path) as reader:
            assert [e.path for e in reader.edges("two7.py")] == ["one7.py"]


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(IndexUnwritable):
        Store(tmp_path / "file" / "x.db")


def test_a_batch_of_much_text_is_split_at_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with Store(path) as store, Reader(path) as reader:
        before = reader.generation()
        store.apply([rows.noise(f"f{i}", i, 1 << 20) for i in range(6)])
        assert reader.generation() - before > 1
        assert len(store.known()) == 6
