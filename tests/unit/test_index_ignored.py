"""The file list equals git's own, and nothing of the repository's config runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import ignore_repos as repos
from support.listed import expected, paths

from indexer import git, ignore, walk
from indexer.errors import RootUnavailable
from indexer.specs import SpecRules


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of git with a global ignore file, and nothing of the machine's own settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    repos.rules(tmp_path / "home", "from-user*", "both", name="git/ignore")


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


def test_failing_git_is_no_empty_list(tmp_path: Path) -> None:
    root = repos.nested(tmp_path / "r")
    rules = ignore.rules_for(root)
    (root / ".git/index").write_bytes(b"DIRC damaged")
    with pytest.raises(RootUnavailable):
        rules.listing()
    assert "important.log" in paths(root)  # asked anew, the ignore files speak
