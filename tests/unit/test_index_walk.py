"""What is on disk against what is known; files are read safely."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from support import ignore_repos as repos
from support.listed import paths

from indexer import walk
from indexer.content import Caps
from indexer.errors import RootUnavailable
from indexer.records import FileRow


def test_everything_left_out_is_listed_with_its_reason(tmp_path: Path) -> None:
    root = repos.start(tmp_path / "r")
    repos.fill(root, "a.py", ".env", "k/id_rsa", "d/e/e/p.py")
    repos.fill(root, "big.py", text="x" * 5000)
    (root / "link.py").symlink_to("a.py")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"\xff.py")).write_bytes(b"x")
    listing = walk.scan(root, Caps(size=4000, depth=2))
    assert {s.stat.path: s.reason for s in listing.skipped} == {
        ".env": "denied",
        "k/id_rsa": "denied",
        "d/e/e/p.py": "depth",
        "big.py": "size",
        "link.py": "link",
        "pipe": "special",
    }
    assert [f.path for f in listing.files] == ["a.py"]
    assert listing.unnamable == ("\\udcff.py",)
    assert walk.scan(root, Caps(files=3)).truncated == 4


def row(root: Path, path: str) -> FileRow:
    loaded = walk.load(root, path)
    assert loaded is not None
    stat = loaded.stat
    return FileRow(
        path=path, size=stat.size, mtime_ns=stat.mtime_ns, digest=loaded.digest, reason=loaded.reason
    )


def test_reconcile_names_what_may_have_changed(tmp_path: Path) -> None:
    root = repos.start(tmp_path / "r")
    repos.fill(root, "same.py", "touched.py", "edited.py", "gone.py", ".env", "to-link.py")
    old = time.time_ns() - 10**10
    for path in root.glob("*.py"):
        os.utime(path, ns=(old, old))
    known = {f.name: row(root, f.name) for f in root.iterdir() if f.name != ".git"}
    assert walk.reconcile(root, known) == []
    os.utime(root / "touched.py", ns=(old + 1, old + 1))
    (root / "edited.py").write_text("y\n", encoding="utf-8")
    (root / "gone.py").unlink()
    (root / "to-link.py").unlink()
    (root / "to-link.py").symlink_to("same.py")
    repos.fill(root, "new.py")
    changes = walk.reconcile(root, known)
    assert {(c.path, c.gone) for c in changes} == {
        ("touched.py", False),
        ("edited.py", False),
        ("gone.py", True),
        ("new.py", False),
        ("to-link.py", False),
    }
    assert walk.digest(root / "touched.py") == known["touched.py"].digest
    assert walk.digest(root / "edited.py") != known["edited.py"].digest


def test_content_decides_while_a_time_stamp_is_fresh(tmp_path: Path) -> None:
    repos.fill(tmp_path / "r", "a.py")
    known = {"a.py": row(tmp_path / "r", "a.py")}
    assert [c.path for c in walk.reconcile(tmp_path / "r", known)] == ["a.py"]


def test_lost_root_leaves_the_last_good_state(tmp_path: Path) -> None:
    root = tmp_path / "r"
    repos.fill(root, "a.py")
    known = {"a.py": row(root, "a.py")}
    shutil.rmtree(root)
    with pytest.raises(RootUnavailable):
        walk.reconcile(root, known)
    root.mkdir()  # an empty mount point
    with pytest.raises(RootUnavailable):
        walk.reconcile(root, known)
    assert walk.reconcile(root, {}) == []
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(RootUnavailable):
        walk.scan(tmp_path / "file")


def test_special_files_and_links_are_never_opened(tmp_path: Path) -> None:
    root = tmp_path / "r"
    repos.fill(root, "a.py")
    os.mkfifo(root / "pipe.py")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "s"))
        (root / "out.py").symlink_to("/etc/passwd")
        (root / "loop").symlink_to(".")
        reasons = {
            n: getattr(walk.load(root, n), "reason", "gone") for n in ("pipe.py", "s", "out.py", "loop")
        }
        assert reasons == {"pipe.py": "special", "s": "special", "out.py": "link", "loop": "link"}
        assert {s.stat.path for s in walk.scan(root).skipped} == {"pipe.py", "s", "out.py", "loop"}
    with pytest.raises(OSError, match="not a regular file"):
        walk.digest(root / "pipe.py")


def test_nothing_is_read_through_a_linked_folder(tmp_path: Path) -> None:
    repos.fill(tmp_path / "elsewhere", "x.py")
    repos.fill(tmp_path / "r", "real/y.py")
    (tmp_path / "r/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "r/inside").symlink_to("real")
    assert walk.load(tmp_path / "r", "link/x.py") is None
    assert walk.load(tmp_path / "r", "inside/y.py") is None
    assert paths(tmp_path / "r") == {"real/y.py"}


def test_loops_of_links_end(tmp_path: Path) -> None:
    root = tmp_path / "r"
    repos.fill(root, "a/b/c.py")
    for name, to in (("a/b/up", ".."), ("a/self", "."), ("z", "/"), ("a/b/x", "y"), ("a/b/y", "x")):
        (root / name).symlink_to(to)
    assert paths(root) == {"a/b/c.py"}


def test_unreadable_file_is_reported() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        repos.fill(root, "a.py", "b.py")
        (root / "a.py").chmod(0)
        found: list[walk.Loaded | None] = []

        def read() -> None:
            if sys.platform == "linux" and os.geteuid() == 0:
                ctypes.CDLL(None).setfsuid(65534)  # of this thread only: root may read everything
            found.extend(walk.load(root, path) for path in ("a.py", "b.py"))

        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        assert [f and f.reason for f in found] == ["unreadable", ""]


def test_file_that_grows_while_it_is_read_stays_below_the_cap(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x\n" * 50)
    assert walk.load(tmp_path, "a.py", Caps(size=99)) == walk.load(tmp_path, "a.py", Caps(size=10))
    loaded = walk.load(tmp_path, "a.py", Caps(size=100))
    assert loaded is not None
    assert loaded.text == b"x\n" * 50
    assert loaded.digest == walk.digest(tmp_path / "a.py")
    assert walk.load(tmp_path, "none.py") is None


def test_ten_thousand_files_take_well_under_a_second(tmp_path: Path) -> None:
    root = repos.start(tmp_path / "r")
    for folder in range(100):
        (root / f"d{folder}").mkdir()
        for file in range(100):
            os.close(os.open(root / f"d{folder}/f{file}.py", os.O_CREAT | os.O_WRONLY))
    repos.rules(root, "*.log", "build/")
    git_time = time.thread_time()
    assert len(paths(root)) == 10_001
    assert time.thread_time() - git_time < 0.6
