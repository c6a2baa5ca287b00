"""Killed writers, damaged, foreign and newer databases, full disks, many readers; real processes."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import rows, writing
from support.harm import empty, foreign, garbage, newer, overwrite, truncate

from indexer import quarantine
from indexer.errors import IndexDamaged
from indexer.read import Reader
from indexer.store import Store

TESTS = Path(__file__).resolve().parents[1]
FULL = f"""
import resource, signal, sys
sys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent)!r}]
from pathlib import Path
from support import rows
from indexer.errors import IndexUnwritable
from indexer.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
for i in range(100):
    try:
        store.apply([rows.noise(f"f{{i}}", i, 1 << 18)])
    except IndexUnwritable as error:
        print(i, len(store.known()), error, flush=True)
        break
"""


READ_ONLY = f"""
import os, sys
sys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent)!r}]
from pathlib import Path
from support import rows
from indexer.errors import IndexUnwritable
from indexer.read import Reader
from indexer.store import Store
path = Path(sys.argv[1])
if os.geteuid() == 0:
    os.seteuid(65534)
with Reader(path) as reader:
    print(len(reader.symbols("d7.py")))
try:
    Store(path)
except IndexUnwritable:
    print("unwritable")
"""


def build(path: Path) -> None:
    with Store(path) as store:
        for i in range(40):
            names = [f"f{i}_{j}" for j in range(20)]
            store.apply([rows.made(f"d{i}.py", defines=names, uses=[f"f{i - 1}_{j}" for j in range(20)])])
    assert path.stat().st_size > 20 * 4096


@pytest.mark.parametrize("harm", [overwrite, truncate, garbage, empty, foreign, newer])
def test_damage_is_put_aside_and_built_again(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "x.db"
    build(path)
    harm(path)
    with Store(path) as store:
        assert bool(store.quarantined) == (harm is not empty)
        assert store.known() == {}
        assert len(list(tmp_path.glob("x.db.damaged-*"))) == (harm is not empty)
        store.apply([rows.made("new.py", defines=["fresh"])])
        with Reader(path) as reader:
            assert [p.path for p in reader.definitions("fresh")] == ["new.py"]
    with Store(path) as store:
        assert not store.quarantined
        assert list(store.known()) == ["new.py"]


@pytest.mark.parametrize("harm", [garbage, empty, foreign, newer, Path.unlink])
def test_a_reader_refuses_what_is_not_ours(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "x.db"
    build(path)
    harm(path)
    with Reader(path) as reader, pytest.raises(IndexDamaged):
        reader.definitions("f1_1")


def test_damage_after_a_kill_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    build(path)
    quarantine.unseal(path)
    with Store(path) as store:
        assert not store.quarantined
    quarantine.unseal(path)
    overwrite(path)
    with Store(path) as store:
        assert "not closed" in store.quarantined


def test_damage_met_by_a_reader_reaches_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    build(path)
    with Store(path) as store, Reader(path) as reader:
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(random.Random(7).randbytes(size - 4096))
        with pytest.raises(IndexDamaged):
            reader.definitions("f1_1")
        with pytest.raises(IndexDamaged):
            store.apply([rows.made("a.py", defines=["f"])])
        assert store.quarantined
        assert store.known() == {}
        store.apply([rows.made("a.py", defines=["f"])])
        assert [p.path for p in reader.definitions("f")] == ["a.py"]


def test_damage_met_by_the_writer_is_raised_once(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    build(path)
    with Store(path) as store:
        assert store.check()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(random.Random(8).randbytes(path.stat().st_size - 4096))
        assert not store.check()
        assert store.check()
        assert store.known() == {}


def test_only_two_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    for _ in range(4):
        with Store(path) as store:
            store.apply([rows.made("a.py")])
            store.rebuild()
            assert store.known() == {}
    names = [p.name for p in tmp_path.iterdir() if ".damaged-" in p.name and p.suffix != ""]
    assert len([n for n in names if not n.endswith(("-wal", "-shm"))]) == quarantine.KEEP


def versions(path: Path) -> set[str]:
    """The version in each file, after checking that each file is whole."""
    found = set()
    with Reader(path) as reader:
        for row in reader.files():
            symbols = reader.symbols(row.path)
            assert len(symbols) == len(reader.references(row.path)) == writing.NAMES
            version = {s.name.split("_")[0] for s in symbols}
            assert version == {r.name.split("_")[0] for r in reader.references(row.path)}
            (chunk,) = reader.chunks(row.path)
            assert version == {word.split("_")[0] for word in chunk.text.split() if word.startswith("v")}
            found |= version
    return found


def test_a_killed_writer_never_leaves_half_a_batch(tmp_path: Path) -> None:
    path, source, last = tmp_path / "x.db", random.Random(3), 0
    context = writing.context()
    for _ in range(20):
        pipe, other = context.Pipe(duplex=False)
        child = context.Process(target=writing.write_forever, args=(str(path), last, other))
        child.start()
        other.close()
        assert pipe.poll(60)
        assert pipe.recv() == "sound"
        for _ in range(source.randrange(1, 4)):
            assert pipe.poll(60)
            last = pipe.recv()
        # The child is in its next transaction; where in it is up to chance.
        child.join(source.random() * 0.05)
        assert child.exitcode is None
        child.kill()
        child.join(60)
        with contextlib.suppress(EOFError):
            while True:
                last = pipe.recv()
        pipe.close()
        child.close()
        (version,) = versions(path)
        assert last <= int(version[1:]) <= last + 1
        last = int(version[1:])


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file size are POSIX")
def test_a_full_disk_is_said_and_the_last_state_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    count, known = map(int, done.stdout.split()[:2])
    assert count == known > 0, done.stderr
    with Reader(path) as reader:
        assert len(reader.files()) == known
        assert all(reader.chunks(row.path) for row in reader.files())
    with Store(path) as store:
        assert not store.quarantined
        assert len(store.known()) == known


@pytest.mark.skipif(sys.platform == "win32", reason="directory permissions are POSIX")
def test_a_read_only_directory_is_said_and_stays_readable() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        build(path)
        Path(folder).chmod(0o555)
        command = [sys.executable, "-c", READ_ONLY, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        Path(folder).chmod(0o755)
    assert done.stdout.split() == ["20", "unwritable"], done.stderr


def test_twenty_readers_beside_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    build(path)
    stop, errors, answers = threading.Event(), [], [0] * 20

    def query(number: int) -> None:
        try:
            with Reader(path) as reader:
                while not stop.is_set():
                    assert len(reader.symbols("d7.py")) == 20
                    reader.definitions("f3_3")
                    reader.callers("f3_3")
                    reader.search("def f4")
                    answers[number] += 1
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=query, args=(i,)) for i in range(20)]
    with Store(path) as store:
        for thread in threads:
            thread.start()
        deadline, i = time.monotonic() + 60, 0
        while (min(answers) < 3 or i < 4) and not errors and time.monotonic() < deadline:
            i += 1
            names = [f"f7_{j}" for j in range(20)]
            store.apply([rows.made("d7.py", defines=names, uses=[f"f6_{i % 20}"])])
        stop.set()
        for thread in threads:
            thread.join(20)
    assert not errors
    assert min(answers) >= 3
    assert i >= 4
