"""Roots that go and come, limits of the machine, and the end of watching: nothing is missed or left."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import ignore_repos as repos
from support.watched import DEADLINE_S, KINDS, Mirror, both, checkout, watching

from indexer.content import Caps
from indexer.pending import Pending
from indexer.records import FileChange
from indexer.sieve import Sieve
from indexer.watch import Kind, Watcher

# watchdog's recursive reader, which Linux users never get, warns of a renamed folder that it knows already.
pytestmark = pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checkout(tmp_path / "r")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


@both
def test_root_removed_and_made_again_twenty_times(tmp_path: Path, kind: Kind) -> None:
    root = tmp_path / "r"
    repos.fill(root, "a.py", "b/c.py")
    with watching(root, kind) as (mirror, watcher):
        began, threads, handles = time.process_time(), threading.active_count(), descriptors()
        for n in range(20):
            shutil.rmtree(root)
            if n % 4 == 0:
                end = time.monotonic() + DEADLINE_S
                while not watcher.degraded:
                    assert time.monotonic() < end
            repos.fill(root, "a.py", f"b/{n}.py", text=f"{n}\n")
            mirror.settle()
            repos.fill(root, f"b/later{n}.py")
            mirror.settle()
        assert watcher.degraded == ""
        assert threading.active_count() == threads
        mirror.until(lambda: descriptors() <= handles)  # a look at a folder may be under way
        assert time.process_time() - began < 15


@both
def test_another_root_moved_to_its_place(tmp_path: Path, kind: Kind) -> None:
    repos.fill(tmp_path / "r", "a.py")
    repos.fill(tmp_path / "s", "b.py", "c/d.py")
    with watching(tmp_path / "r", kind) as (mirror, _):
        (tmp_path / "r").rename(tmp_path / "old")
        (tmp_path / "s").rename(tmp_path / "r")
        mirror.settle()
        repos.fill(tmp_path / "r", "c/e.py")
        mirror.settle()
        assert sorted(mirror.known) == ["b.py", "c/d.py", "c/e.py"]


@both
def test_root_that_becomes_a_checkout(tmp_path: Path, kind: Kind) -> None:
    root = tmp_path / "r"
    repos.fill(root, "a.py", "gen/g.py")
    with watching(root, kind) as (mirror, _):
        repos.start(root)
        repos.rules(root, "gen/")
        mirror.settle()
        assert sorted(mirror.known) == [".gitignore", "a.py"]
        shutil.rmtree(root / ".git")
        mirror.settle()
        (root / ".gitignore").unlink()
        mirror.settle()
        assert sorted(mirror.known) == ["a.py", "gen/g.py"]


def test_no_thread_and_no_handle_is_left(root: Path) -> None:
    before, handles = threading.active_count(), descriptors()
    for kind in (*KINDS, "scan") * 3:
        with watching(root, kind):
            pass
    assert threading.active_count() == before
    assert descriptors() <= handles
    never_started = Watcher(root, lambda changes: None)
    never_started.stop()


def test_stopping_from_within_the_callback(root: Path) -> None:
    done = threading.Event()
    watcher = Watcher(root, lambda changes: (watcher.stop(), done.set())[1])
    watcher.start()
    assert done.wait(DEADLINE_S)


def test_a_failing_callback_does_not_end_watching(root: Path) -> None:
    mirror = Mirror(root)
    failed = threading.Event()

    def hear(changes: Sequence[FileChange]) -> None:
        if not failed.is_set():
            failed.set()
            raise ValueError("not today")
        mirror.hear(changes)

    watcher = Watcher(root, hear)
    watcher.start()
    try:
        mirror.settle()
    finally:
        watcher.stop()


def test_scanning_finds_changes_and_says_why(root: Path) -> None:
    with watching(root, "scan", poll_s=0.05) as (mirror, watcher):
        assert "every 0.05 s" in watcher.degraded
        repos.fill(root, "d1/new.py")
        mirror.settle()
        assert "d1/new.py" in mirror.known


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_limit_of_watches_is_said_and_scanning_goes_on(root: Path) -> None:
    with watching(root, "auto", caps=Caps(folders=4), poll_s=0.05) as (mirror, watcher):
        assert watcher.degraded.startswith("there are more than 4 folders")
        repos.fill(root, "d1/new.py")
        mirror.settle()
    with watching(root, "auto", caps=Caps(folders=15), poll_s=0.05) as (mirror, watcher):
        assert watcher.degraded == ""
        repos.fill(root, *(f"more/{n}/f.py" for n in range(10)))
        mirror.settle()
        mirror.until(lambda: watcher.degraded.startswith("there are more than 15 folders"))
        repos.fill(root, "more/5/g.py")
        mirror.settle()


CHILD = """
import resource, sys, threading
from pathlib import Path
from indexer.watch import Watcher
heard = threading.Event()
limit = len(list(Path("/proc/self/fd").iterdir()))
resource.setrlimit(resource.RLIMIT_NOFILE, (limit + int(sys.argv[2]), limit + int(sys.argv[2])))
watcher = Watcher(sys.argv[1], lambda changes: heard.set(), kind="folders")
watcher.start()
assert heard.wait(20)
print(watcher.degraded)
watcher.stop()
"""


def test_limit_of_instances_is_said(root: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)
    shutil.rmtree(root / ".git")  # asking git takes handles as well
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(root), "1"], capture_output=True, text=True, timeout=60, check=True,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert "limit of inotify instances or open files" in done.stdout


def test_lost_notices_lead_to_a_look_at_everything(root: Path) -> None:
    with watching(root, KINDS[0]) as (mirror, watcher):
        pending: Pending = watcher._pending
        for n in range(20_000):
            pending.path(f"nowhere/{n}")
        heard = len(mirror.heard)
        mirror.until(lambda: () in mirror.heard[heard - 1 :])


def test_pending_hands_out_when_it_is_quiet_or_time_is_up() -> None:
    pending = Pending(limit=3, quiet_s=0.02, most_s=0.1)
    assert not pending.take(0.0)
    pending.path("a")
    pending.path("a")
    assert pending.take(1.0).paths == {"a"}
    pending.path("a")
    pending.folder("f")
    first = pending.take(1.0)
    assert (first.folders, first.paths) == ({"f"}, set())
    assert pending.take(1.0).paths == {"a"}
    for name in "abcd":
        pending.path(name)
    flooded = pending.take(1.0)
    assert flooded.flooded
    assert len(flooded.paths) == 3
    stop = threading.Event()

    def chatter() -> None:
        while not stop.wait(0.005):
            pending.path("a")

    thread = threading.Thread(target=chatter)
    thread.start()
    began = time.monotonic()
    assert pending.take(5.0).paths == {"a"}
    assert time.monotonic() - began < 2.0
    stop.set()
    thread.join()
    pending.close()
    assert pending.closed


def test_sieve_tells_what_is_gone_from_what_is_not(root: Path) -> None:
    sieve = Sieve(str(root))
    assert sieve.refresh()
    assert not sieve.refresh()
    (root / "d1/e/f1.py").unlink()
    shutil.rmtree(root / "d2")
    repos.fill(root, "d3/new.py", "x.log")
    changes = sieve.changes(["d1/e/f1.py", "d2", "d3/new.py", "d4/e/f4.py", "x.log", ".never~", "build"])
    assert {(c.path, c.gone) for c in changes} == {
        ("d1/e/f1.py", True), ("d3/new.py", False), ("d4/e/f4.py", False),
        *((f"d2/e/f{n}.py", True) for n in (2, 7, 12, 17)),
    }  # fmt: skip
    assert sieve.changes(["d1/e/f1.py", "d2"]) == []
    (root / "x.log").unlink()
    assert [c.gone for c in sieve.changes(["x.log"])] == []
    repos.fill(root, "odd/a.py")
    repos.rules(root, "a.py", name="odd/.gitignore")
    assert [c.path for c in sieve.changes(["odd/a.py"])] == []
    shutil.rmtree(root / "odd")
    repos.fill(root, "odd/a.py")
    assert [c.path for c in sieve.changes(["odd", "odd/a.py"])] == ["odd/a.py"]
    assert sorted(sieve.open_folders([""]))[:3] == ["", "d0", "d0/e"]
    assert "build" not in set(sieve.open_folders([""]))
