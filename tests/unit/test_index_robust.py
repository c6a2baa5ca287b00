"""The real indexer process when the disk, the folder, the database or another process is in the way: it says
so, the last good state is served, and it is well again when the cause is gone."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.harm import foreign, garbage, newer, overwrite, truncate
from support.indexing import DEADLINE_S, Indexer, index_once, until_equal
from support.rows import noise_text

from daemon.bench.equivalence import dump
from indexer import extraction, statefile
from indexer.errors import IndexDamaged
from indexer.frames import DATABASE
from indexer.read import Reader

MEMBER = "import ctypes; ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)"
"""Takes from root the right to pass over permissions (CAP_DAC_OVERRIDE), for good; nobody else has it."""


def write(root: Path, name: str, text: str) -> Path:
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    where = tmp_path / "root"
    for number in range(30):
        used = f"name{number - 1}()" if number else "1"
        write(where, f"m{number}.py", f"def name{number}():\n    return {used}\n")
    return where


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


def size(file: Path) -> int:
    """Bytes of a file that may be gone: SQLite removes an empty log with its last user."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def until(what: Callable[[], bool], why: str = "it did not happen in time") -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < deadline, why
        threading.Event().wait(0.02)


def finds(folder: Path, name: str) -> bool:
    """Whether somebody who looks now finds a definition of `name`."""
    with contextlib.suppress(IndexDamaged), Reader(folder / DATABASE) as reader:
        return bool(reader.definitions(name))
    return False


def fresh(root: Path) -> dict[str, Any]:
    anew = root.with_name("anew")
    shutil.rmtree(anew, ignore_errors=True)
    index_once(root, anew)
    return dump(anew)


def test_what_was_damaged_while_nobody_looked_is_built_again(root: Path, folder: Path) -> None:
    index_once(root, folder)
    wanted = dump(folder)
    for harm in (overwrite, truncate, garbage, foreign, newer):
        harm(folder / DATABASE)
        with Indexer(root, folder) as indexer:
            state = indexer.ready()
            assert state.rebuilt, harm
            assert (state.complete, state.files) == (True, 30)
            until_equal(folder, wanted)
    assert len([p for p in folder.glob("*.damaged-*") if not p.name.endswith(("-wal", "-shm"))]) == 2


def unlink(path: Path) -> None:
    path.unlink()


def uproot(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace(path: Path) -> None:
    garbage(path.with_name("other"))
    path.with_name("other").replace(path)


def scramble(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))
    with Reader(path) as reader, contextlib.suppress(IndexDamaged):
        reader.definitions("name7")


@pytest.mark.skipif(sys.platform == "win32", reason="an open file stays in its place there")
def test_damage_under_a_running_indexer_is_noticed_without_any_change(root: Path, folder: Path) -> None:
    with Indexer(root, folder) as indexer:
        indexer.ready()
        wanted = dump(folder)
        for harm, words in (
            (truncate, "cut"),
            (unlink, "removed or replaced"),
            (uproot, "index was removed"),
            (replace, "removed or replaced"),
            (scramble, "reader"),
        ):
            until(lambda: not size(folder / f"{DATABASE}-wal"))
            os.utime(root / "m3.py")
            harm(folder / DATABASE)
            indexer.wait(lambda state, words=words: words in state.rebuilt and state.phase == "ready")
            until_equal(folder, wanted)
        write(root, "later.py", "def later():\n    pass\n")
        until(lambda: finds(folder, "later"))
    again = statefile.load(folder)
    assert again is not None
    assert (again.complete, again.languages) == (True, {"python": 31})


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file size are POSIX")
def test_a_full_disk_is_said_and_indexing_goes_on_when_there_is_room(root: Path, folder: Path) -> None:
    index_once(root, folder)
    for number in range(40):
        write(root, f"more{number}.txt", noise_text(number, 100_000))
    limit = (folder / DATABASE).stat().st_size + (1 << 20)
    full = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))"
    with Indexer(root, folder, before=full) as indexer:
        state = indexer.wait(lambda state: state.phase == "degraded")
        assert state.degraded
        assert not state.complete
        assert finds(folder, "name7")
        if sys.platform == "linux":
            import resource

            free = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(indexer.process.pid, resource.RLIMIT_FSIZE, free)
            assert indexer.ready().files == 70
    with Indexer(root, folder) as indexer:
        assert indexer.ready().complete
        until_equal(folder, fresh(root))
    assert not list(folder.glob(f"{DATABASE}.damaged-*"))


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="directory permissions are POSIX")
def test_a_read_only_index_is_served_and_kept_again_when_it_is_writable(root: Path, folder: Path) -> None:
    index_once(root, folder)
    write(root, "later.py", "def later():\n    pass\n")
    with contextlib.ExitStack() as stack:
        with read_only(folder):
            indexer = stack.enter_context(Indexer(root, folder, before=MEMBER))
            state = indexer.wait(lambda state: state.phase == "degraded")
            assert "open" in state.detail
            assert finds(folder, "name7")
        assert indexer.ready().files == 31
        assert finds(folder, "later")


@pytest.mark.skipif(sys.platform == "win32", reason="directory permissions are POSIX")
def test_a_read_only_root_is_indexed_like_any_other(root: Path, folder: Path) -> None:
    with read_only(root), Indexer(root, folder, before=MEMBER) as indexer:
        assert indexer.ready().files == 30


def test_a_held_snapshot_is_said_and_keeps_nobody_from_what_is_new(root: Path, folder: Path) -> None:
    with Indexer(root, folder) as indexer:
        indexer.ready()
        holder = sqlite3.connect(folder / DATABASE, isolation_level=None)
        holder.execute("begin")
        assert holder.execute("select count(*) from file").fetchone()[0] == 30
        write(root, "later.py", "def later():\n    pass\n")
        indexer.wait(lambda state: any("old snapshot" in why for why in state.degraded))
        assert finds(folder, "later")
        assert holder.execute("select count(*) from file").fetchone()[0] == 30
        holder.execute("rollback")
        holder.close()
        indexer.wait(lambda state: not any("old snapshot" in why for why in state.degraded))
        until(lambda: not size(folder / f"{DATABASE}-wal"))


def test_a_second_indexer_waits_and_takes_over(root: Path, folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        with Indexer(root, folder) as first:
            first.ready()
            second = stack.enter_context(Indexer(root, folder))
            second.wait(lambda state: state.phase == "degraded" and "another process" in state.detail)
            told = statefile.load(folder)
            assert told is not None
            assert told.phase == "ready"
            write(root, "one.py", "def one():\n    pass\n")
            first.wait(lambda state: state.files == 31)
        write(root, "two.py", "def two():\n    pass\n")
        assert second.ready().files == 32


def test_a_root_that_lost_its_last_file_is_empty(tmp_path: Path, folder: Path) -> None:
    root = tmp_path / "one"
    place = write(root, "only.py", "def only():\n    pass\n")
    index_once(root, folder)
    place.unlink()
    assert index_once(root, folder).complete
    assert not finds(folder, "only")
    with Indexer(root, folder) as indexer:
        indexer.ready()
        write(root, "only.py", "def only():\n    pass\n")
        indexer.wait(lambda state: state.files == 1)
        place.unlink()
        indexer.wait(lambda state: state.files == 0 and state.phase == "ready")
    assert not finds(folder, "only")


def test_names_that_change_only_their_case(root: Path, folder: Path) -> None:
    for number in range(5):
        write(root, f"pkg/sub/n{number}.py", f"def inner{number}():\n    return name{number}()\n")
    with Indexer(root, folder) as indexer:
        indexer.ready()
        (root / "m1.py").rename(root / "M1.py")
        (root / "pkg").rename(root / "PKG")
        until_equal(folder, fresh(root))
        with Reader(folder / DATABASE) as reader:
            assert {"M1.py", "PKG/sub/n0.py"} <= {row.path for row in reader.files()}
    (root / "PKG" / "sub").rename(root / "PKG" / "Sub")
    (root / "M1.py").rename(root / "m1.PY")
    with Indexer(root, folder) as indexer:
        indexer.ready()
        until_equal(folder, fresh(root))


def test_a_time_beyond_all_stored_times_stops_nobody(root: Path, folder: Path) -> None:
    os.utime(root / "m4.py", (20_000_000_000, 20_000_000_000))
    os.utime(root / "m5.py", (-5_000_000_000, -5_000_000_000))
    state = index_once(root, folder)
    assert (state.complete, state.files) == (True, 30)
    with Indexer(root, folder) as indexer:
        assert indexer.ready().files == 30


def older(folder: Path) -> None:
    """As if other rules had made the rows: one symbol has another name, and the note another value."""
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as db:
        db.execute("update symbol set name = 'misread' where name = 'name7'")
        db.execute("update meta set value = 'of an older version' where key = 'note.rules'")
        db.commit()


def test_rows_made_by_other_rules_serve_until_they_are_made_again(root: Path, folder: Path) -> None:
    index_once(root, folder)
    older(folder)
    assert finds(folder, "misread")
    assert finds(folder, "name8")
    with Indexer(root, folder) as indexer:
        state = indexer.wait(lambda state: state.files > 0)
        assert finds(folder, "name8")
        assert state.complete
        indexer.ready()
        assert not finds(folder, "misread")
        until_equal(folder, fresh(root))
    with Reader(folder / DATABASE) as reader:
        assert reader.notes()["rules"] == extraction.fingerprint()
    assert index_once(root, folder).total == 0
