"""What is heard leads to the state that a fresh look finds, whatever happens. Real files, real deadlines."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support import ignore_repos as repos

from indexer import walk
from indexer.content import Caps
from indexer.errors import RootUnavailable
from indexer.pending import Pending
from indexer.records import FileChange
from indexer.sieve import Sieve
from indexer.watch import BATCH, Kind, Watcher

DEADLINE_S = 20.0
KINDS: tuple[Kind, ...] = ("folders", "recursive") if sys.platform == "linux" else ("recursive",)

# watchdog's recursive reader, which Linux users never get, warns of a renamed folder that it knows already.
pytestmark = pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")
both = pytest.mark.parametrize("kind", KINDS)


def state_of(root: Path, path: str) -> tuple[bytes, str] | None:
    loaded = walk.load(root, path)
    return None if loaded is None else (loaded.digest, loaded.reason)


def fresh(root: Path) -> dict[str, tuple[bytes, str]]:
    """What a look at everything finds."""
    listing = walk.scan(root)
    paths = [f.path for f in listing.files] + [s.stat.path for s in listing.skipped]
    return {p: s for p in paths if (s := state_of(root, p)) is not None}


class Mirror:
    """What somebody knows who only looks where the watcher says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.known: dict[str, tuple[bytes, str]] = {}
        self.heard: list[Sequence[FileChange]] = []
        self.stamps: list[float] = []
        self.changed = threading.Condition()

    def hear(self, changes: Sequence[FileChange]) -> None:
        with self.changed:
            self.heard.append(changes)
            self.stamps.append(time.monotonic())
            if not changes:
                with suppress(RootUnavailable):
                    self.known = fresh(self.root)
            for change in changes:
                now = None if change.gone else state_of(self.root, change.path)
                if now is None:
                    self.known.pop(change.path, None)
                else:
                    self.known[change.path] = now
            self.changed.notify_all()

    def until(self, done: Callable[[], bool]) -> None:
        """Wait for `done`, judged whenever something was heard."""
        end = time.monotonic() + DEADLINE_S
        with self.changed:
            while not done():
                assert time.monotonic() < end, f"heard only {self.heard[-5:]}"
                self.changed.wait(0.1)

    def settle(self) -> None:
        """Wait until what is known is what is there."""
        self.until(lambda: self.known == fresh(self.root))


@contextmanager
def watching(
    root: Path, kind: Kind, caps: Caps | None = None, poll_s: float = 5.0
) -> Iterator[tuple[Mirror, Watcher]]:
    mirror = Mirror(root)
    watcher = Watcher(root, mirror.hear, caps=caps or Caps(), poll_s=poll_s, kind=kind)
    watcher.start()
    try:
        assert watcher.wait_armed(DEADLINE_S)
        mirror.until(lambda: bool(mirror.heard))
        mirror.settle()
        yield mirror, watcher
    finally:
        watcher.stop()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with some files, some of them ignored."""
    where = repos.start(tmp_path / "r")
    repos.rules(where, "*.log", "build/")
    repos.fill(where, *(f"d{n % 5}/e/f{n}.py" for n in range(20)), "x.log", "build/b.py")
    repos.commit(where)
    return where


@both
def test_a_save_is_heard_within_a_tenth_of_a_second(root: Path, kind: Kind) -> None:
    with watching(root, kind) as (mirror, _):
        delays = []
        for n in range(15):
            heard = len(mirror.heard)
            began = time.monotonic()
            repos.fill(root, "d1/e/f1.py", f"d1/new{n}.py", text=f"{n}\n")
            mirror.until(lambda heard=heard: len(mirror.heard) > heard)  # type: ignore[misc]
            delays.append(mirror.stamps[heard] - began)
            mirror.settle()
        assert sorted(delays)[len(delays) // 2] < 0.1
        assert FileChange(path="d1/e/f1.py") in mirror.heard[-1]


@both
def test_saves_by_rename_and_by_delete_and_create(root: Path, kind: Kind) -> None:
    with watching(root, kind) as (mirror, _):
        target = root / "d1/e/f1.py"
        for n in range(5):
            part = target.with_name(".f1.py.swp~")
            part.write_text(f"renamed {n}\n", encoding="utf-8")
            part.replace(target)
            mirror.settle()
            target.unlink()
            target.write_text(f"created {n}\n", encoding="utf-8")
            mirror.settle()
        assert target.read_text(encoding="utf-8") == "created 4\n"
        assert FileChange(path="d1/e/f1.py") in [c for batch in mirror.heard for c in batch]


@both
def test_folders_renamed_moved_in_and_out_and_by_case(root: Path, kind: Kind) -> None:
    with watching(root, kind) as (mirror, _):
        (root / "d1").rename(root / "D1")
        mirror.settle()
        repos.fill(root, "D1/e/later.py")
        mirror.settle()
        (root / "D1").rename(root / "d2/inner")
        mirror.settle()
        repos.fill(root, "d2/inner/e/again.py")
        mirror.settle()
        (root / "d2/inner/e/again.py").rename(root / "d2/inner/e/AGAIN.py")
        mirror.settle()
        (root / "d2/inner").rename(root.parent / "outside")
        mirror.settle()
        repos.fill(root.parent, "outside/e/unseen.py")
        (root.parent / "outside").rename(root / "back")
        mirror.settle()
        assert "back/e/unseen.py" in mirror.known
        shutil.rmtree(root / "back")
        mirror.settle()


@both
def test_new_trees_are_seen_whole(root: Path, kind: Kind) -> None:
    with watching(root, kind) as (mirror, _):
        for n in range(20):
            repos.fill(root, *(f"t{n}/a/b/c/f{m}.py" for m in range(10)))
        mirror.settle()
        shutil.rmtree(root / "t3")
        repos.fill(root, "t3/a/other.py")
        mirror.settle()
        assert len([p for p in mirror.known if p.startswith("t")]) == 191


@both
def test_ignored_paths_are_never_named(root: Path, kind: Kind) -> None:
    with watching(root, kind) as (mirror, _):
        for n in range(20):
            repos.fill(root, "x.log", f"build/deep/b{n}.py", "d1/y.log", text=f"{n}\n")
        repos.fill(root, "d1/last.py")
        mirror.settle()
        named = {c.path for batch in mirror.heard for c in batch}
        assert named == {"d1/last.py"}


@both
def test_edited_rules_change_what_counts(root: Path, kind: Kind) -> None:
    with watching(root, kind) as (mirror, _):
        repos.rules(root, "d1/")
        mirror.settle()
        assert "build/b.py" in mirror.known
        repos.fill(root, "build/now-seen.py")
        mirror.settle()
        repos.rules(root, "build/", name=".git/info/exclude")
        mirror.settle()
        repos.git(root, "add", "-f", "build/b.py")
        mirror.settle()
        assert "build/b.py" in mirror.known
        assert "build/now-seen.py" not in mirror.known
        (root / "build/b.py").write_text("edited\n", encoding="utf-8")
        mirror.settle()


@both
def test_the_users_own_ignore_file_and_settings(
    root: Path, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/xdg"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    (tmp_path / "home/xdg/git").mkdir(parents=True)
    with watching(root, kind) as (mirror, _):
        assert "d1/e/f1.py" in mirror.known
        (tmp_path / "home/xdg/git/ignore").write_text("new*\n", encoding="utf-8")
        repos.fill(root, "newer.py", "other.py")
        mirror.until(lambda: "other.py" in mirror.known and "newer.py" not in mirror.known)
        (tmp_path / "home/mine").write_text("other*\n", encoding="utf-8")
        (tmp_path / "home/.gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n", encoding="utf-8")
        mirror.until(lambda: "newer.py" in mirror.known and "other.py" not in mirror.known)
        (tmp_path / "home/mine").unlink()
        mirror.until(lambda: "other.py" in mirror.known)
        repos.git(root, "config", "core.excludesFile", str(tmp_path / "own"))
        (tmp_path / "own").write_text("*.py\n", encoding="utf-8")
        mirror.until(lambda: "newer.py" not in mirror.known)


@both
def test_branches_switched_back_and_forth(root: Path, kind: Kind) -> None:
    repos.git(root, "checkout", "-q", "-b", "other")
    for n in range(200):
        repos.fill(root, f"many/m{n % 7}/f{n}.py", text=f"other {n}\n")
    (root / "d1/e/f1.py").unlink()
    repos.commit(root)
    repos.git(root, "checkout", "-q", "main")
    with watching(root, kind) as (mirror, _):
        for _ in range(5):
            repos.git(root, "checkout", "-q", "other")
            repos.git(root, "checkout", "-q", "main")
        mirror.settle()
        repos.git(root, "checkout", "-q", "other")
        mirror.settle()
        assert len([p for p in mirror.known if p.startswith("many/")]) == 200


@both
def test_a_burst_of_two_thousand_files(root: Path, kind: Kind) -> None:
    with watching(root, kind) as (mirror, _):
        for n in range(2000):
            (root / f"d{n % 5}/burst{n}.py").write_text(f"{n}\n", encoding="utf-8")
        mirror.settle()
        assert max(len(batch) for batch in mirror.heard) <= BATCH
        heard = len(mirror.heard)
        for n in range(2000):
            (root / f"d{n % 5}/burst{n}.py").unlink()
        mirror.settle()
        assert len(mirror.heard) - heard < 200


@both
def test_idle_root_is_silent_and_unturned(root: Path, kind: Kind) -> None:
    with watching(root, kind) as (mirror, _):
        index = (root / ".git/index").stat().st_mtime_ns
        heard, began = len(mirror.heard), time.process_time()
        with mirror.changed:
            mirror.changed.wait(1.0)
        assert len(mirror.heard) == heard
        assert time.process_time() - began < 0.2
        assert (root / ".git/index").stat().st_mtime_ns == index


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
        assert descriptors() <= handles
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


@both
def test_submodules_are_watched_as_part_of_the_root(tmp_path: Path, kind: Kind) -> None:
    root = repos.modules(tmp_path / "r")
    with watching(root, kind) as (mirror, _):
        repos.fill(root, "libs/inner/deps/leaf/new.py", "libs/inner/no.inner", "libs/inner/with/x.log")
        mirror.settle()
        assert "libs/inner/deps/leaf/new.py" in mirror.known
        assert "libs/inner/no.inner" not in mirror.known


@both
def test_odd_names_links_and_special_files(root: Path, kind: Kind) -> None:
    with watching(root, kind) as (mirror, _):
        repos.fill(
            root, "with space.py", "new\nline.py", "\u4e2d\u6587/\u00e9.py", "-c", ":(top)x", "a*b/[c].py"
        )
        (root / "link.py").symlink_to("d1/e/f1.py")
        (root / "loop").symlink_to(".")
        os.mkfifo(root / "pipe.py")
        mirror.settle()
        assert mirror.known["link.py"][1] == "link"
        assert mirror.known["pipe.py"][1] == "special"
        (root / "link.py").unlink()
        repos.fill(root, "link.py/now/a-folder.py")
        mirror.settle()
        shutil.rmtree(root / "link.py")
        repos.fill(root, "link.py")
        mirror.settle()
        repos.fill(root, ".env", "d1/id_rsa")
        mirror.settle()
        assert mirror.known[".env"] == (b"", "denied")


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
