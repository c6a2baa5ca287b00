"""The file list equals git's own; nothing of the repository's config runs; files are read safely."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from support import ignore_repos as repos

from indexer import git, ignore, mounts, walk
from indexer.content import Caps, denied
from indexer.errors import RootUnavailable
from indexer.records import FileRow
from indexer.specs import SpecRules


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of git with a global ignore file, and nothing of the machine's own settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    repos.rules(tmp_path / "home", "from-user*", "both", name="git/ignore")


def paths(root: Path, caps: Caps | None = None) -> set[str]:
    return {f.path for f in walk.list_files(root, caps or Caps())}


def expected(root: Path) -> set[str]:
    """git's word, minus the deny list and names that are no text."""
    return {p for p in repos.said_by_git(root) if not denied(p) and "\udcff" not in p}


@pytest.mark.parametrize("name", repos.HARD)
def test_list_equals_git(name: str, tmp_path: Path) -> None:
    root = repos.HARD[name](tmp_path / "r")
    assert isinstance(ignore.rules_for(root), ignore.GitRules)
    assert paths(root) == expected(root) != set()


@pytest.mark.parametrize("name", sorted(repos.HARD.keys() - {"tracked"}))
def test_pathspec_says_the_same_as_git(name: str, tmp_path: Path) -> None:
    root = repos.HARD[name](tmp_path / "r")
    rules = SpecRules(str(root), 64, ignore.rules_for)
    assert {f.path for f in walk.scan(root, rules=rules).files} == expected(root)


@pytest.mark.parametrize("name", repos.HARD)
def test_asking_for_single_paths_agrees_with_the_list(name: str, tmp_path: Path) -> None:
    root = repos.HARD[name](tmp_path / "r")
    everything = [
        str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir() and ".git" not in p.parts[:-1]
    ]
    everything = [p for p in everything if (root / p).resolve() == root.resolve() / p]
    for rules in (ignore.rules_for(root), SpecRules(str(root), 64, ignore.rules_for)):
        said = set(rules.listing())
        assert rules.select(everything).intersection(everything) == said.intersection(everything)
        folders = {p.rpartition("/")[0] for p in said} - {""}
        new_below = rules.ignored_folders(sorted(folders))
        assert name == "tracked" or not new_below
    assert ignore.kept(root, everything) == set(ignore.rules_for(root).listing()).intersection(everything)


def test_folder_stands_for_what_counts_below(tmp_path: Path) -> None:
    root = repos.modules(tmp_path / "r")
    for rules in (ignore.rules_for(root), SpecRules(str(root), 64, ignore.rules_for)):
        said = set(rules.listing())
        for folder in ("libs", "libs/inner", "libs/inner/deps/leaf", "embedded", "clones"):
            assert rules.select([folder]) == {p for p in said if p.startswith(f"{folder}/")}
        assert rules.ignored_folders(["clones", "libs", "libs/inner/deps", "embedded"]) == {
            "clones",
            "embedded",
        }


def test_root_outside_every_checkout_gets_each_checkouts_own_word(tmp_path: Path) -> None:
    root = tmp_path / "projects"
    repos.nested(root / "one")
    repos.tracked(root / "two")
    repos.rules(root, "*.skip")
    repos.fill(
        root, "a.py", "a.skip", "node_modules/m.js", "x/__pycache__/y.pyc", "env/pyvenv.cfg", "env/lib/z.py"
    )
    found = paths(root)
    assert {p for p in found if "/" not in p} == {".gitignore", "a.py"}
    for inner in ("one", "two"):
        assert {p[4:] for p in found if p.startswith(f"{inner}/")} == expected(root / inner)
    assert not {p for p in found if p.startswith(("node_modules", "x/", "env/"))}
    assert "two/gen/kept.py" in ignore.kept(root, ["two/gen/kept.py", "two/gen/new.py", "node_modules/m.js"])


@pytest.fixture
def payload(tmp_path: Path) -> tuple[Path, Path]:
    """A checkout whose settings name a program wherever git takes one, and what it would write."""
    root, mark = repos.start(tmp_path / "evil"), tmp_path / "RAN"
    script = tmp_path / "payload.sh"
    script.write_text(f"#!/bin/sh\necho $0 $@ >> {mark}\ncat 2>/dev/null\n", encoding="utf-8")
    script.chmod(0o755)
    repos.fill(root, "a.py", "b/c.py")
    repos.fill(root, ".gitattributes", text="* filter=evil diff=evil merge=evil\n")
    repos.commit(root)
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.gitProxy",
        "core.askPass",
        "core.alternateRefsCommand",
        "pager.ls-files",
        "pager.check-ignore",
        "pager.rev-parse",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "merge.evil.driver",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "gpg.program",
        "sequence.editor",
        "interactive.diffFilter",
        "credential.helper",
        "uploadpack.packObjectsHook",
        "remote.origin.uploadpack",
        "submodule.sub.update",
    ):
        repos.git(root, "config", key, str(script))
    for key, value in (
        ("alias.ls-files", f"!{script}"),
        ("filter.evil.required", "true"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::{script}"),
        ("protocol.ext.allow", "always"),
        ("core.untrackedCache", "true"),
        ("extensions.partialClone", "origin"),
        ("core.repositoryFormatVersion", "1"),
        ("core.hooksPath", str(tmp_path / "hooks")),
    ):
        repos.git(root, "config", key, value)
    for folder in (tmp_path / "hooks", root / ".git/hooks"):
        folder.mkdir(exist_ok=True)
        for hook in ("post-index-change", "fsmonitor-watchman", "post-checkout", "query-watchman"):
            shutil.copy(script, folder / hook)
    return root, mark


def test_nothing_of_the_repositorys_config_runs(
    payload: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, mark = payload
    mark.unlink(missing_ok=True)
    git_file = root / ".git/index"
    before = (git_file.read_bytes(), git_file.stat().st_mtime_ns)
    (root / "a.py").write_text("changed\n", encoding="utf-8")
    repos.fill(root, "new.py", "folder/new.py")
    assert paths(root) == {".gitattributes", "a.py", "b/c.py", "new.py", "folder/new.py"}
    rules = ignore.rules_for(root)
    assert rules.select(["new.py", "folder"]) == {"new.py", "folder/new.py"}
    assert rules.ignored_folders(["folder"]) == set()
    assert ignore.kept(root, ["a.py"]) == {"a.py"}
    assert not mark.exists()
    assert (git_file.read_bytes(), git_file.stat().st_mtime_ns) == before
    subprocess.run(["git", "status"], cwd=root, capture_output=True, check=False)  # the plant is real
    assert mark.exists()


def test_environment_of_another_repository_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = repos.nested(tmp_path / "r"), repos.start(tmp_path / "other")
    want = expected(root)
    for name, value in (
        ("GIT_DIR", other / ".git"),
        ("GIT_INDEX_FILE", other / "i"),
        ("GIT_WORK_TREE", other),
    ):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.excludesFile")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", os.devnull)
    assert paths(root) == want


def test_git_planted_in_the_root_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repos.nested(tmp_path / "r")
    (root / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/RAN\n", encoding="utf-8")
    (root / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}{os.pathsep}{os.environ['PATH']}")
    assert git.program(str(root)) is None
    assert "important.log" in paths(root)
    assert not (tmp_path / "RAN").exists()


def test_without_git_the_rules_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repos.nested(tmp_path / "r")
    want = expected(root)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(ignore.rules_for(root), SpecRules)
    assert paths(root) == want


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


def test_failing_git_is_no_empty_list(tmp_path: Path) -> None:
    root = repos.nested(tmp_path / "r")
    rules = ignore.rules_for(root)
    (root / ".git/index").write_bytes(b"DIRC damaged")
    with pytest.raises(RootUnavailable):
        rules.listing()
    assert "important.log" in paths(root)  # asked anew, the ignore files speak


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


class Row(NamedTuple):
    mountpoint: str
    fstype: str
    opts: str


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        ([("/", "ext4", "rw")], ""),
        ([("/", "ext4", "rw"), ("/mnt/c", "9p", "rw")], "9p"),
        ([("/", "ext4", "rw"), ("/mnt", "nfs4", "rw")], "nfs4"),
        ([("/", "nfs", "rw"), ("/mnt/c", "ext4", "rw")], ""),
        ([("/mnt/c", "ext4", "rw"), ("/mnt/c", "fuse.sshfs", "rw")], "fuse.sshfs"),
        ([("/mnt/cc", "cifs", "rw"), ("/", "overlay", "rw")], ""),
        ([("/", "ntfs", "rw,remote")], "ntfs"),
    ],
)
def test_network_file_systems_are_known(rows: list[tuple[str, str, str]], want: str) -> None:
    table = [Row(*r) for r in rows]
    assert mounts.unreliable("/mnt/c/project", table) == want


def test_this_machines_own_mounts_are_read(tmp_path: Path) -> None:
    assert mounts.unreliable(str(tmp_path)) in {"", *mounts.NETWORK}
