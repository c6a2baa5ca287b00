"""What is heard leads to the state that a fresh look finds, whatever happens. Real files, real deadlines."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from support import ignore_repos as repos
from support.watched import both, checkout, watching

from indexer.records import FileChange
from indexer.watch import BATCH, Kind

# watchdog's recursive reader, which Linux users never get, warns of a renamed folder that it knows already.
pytestmark = pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checkout(tmp_path / "r")


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
