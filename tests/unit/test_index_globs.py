"""Patterns that leave out: what git's would, and never slowly."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from indexer.globs import MOST, Globs
from indexer.ignore import rules_for

PATTERNS = (
    "secret/", "*.gen.py", "/build", "a/**/z", "docs/**", "x/*.txt", "[^a]b", "**/deep/q?", "**", "*/",
    "a*b/c",
)  # fmt: skip
PATHS = (
    "secret", "secret/s", "q/secret/b", "a.gen.py", "d/a.gen.py", "build/x", "q/build", "a/z", "a/b/c/z/r",
    "b", "docs/a/b", "x/a.txt", "y/x/a.txt", "cb", "ab", "one/deep/qq", "deep/q1", "aab/c", "azb/d",
    ".hidden",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_leaves_out_what_gits_does(tmp_path: Path, pattern: str) -> None:
    for path in PATHS:
        if path not in ("secret", "a/z"):  # elsewhere they are folders
            place = tmp_path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("x")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    everything = set(rules_for(tmp_path).listing())
    mine = set(rules_for(tmp_path, ignore=(("", (pattern,)),)).listing())
    (tmp_path / ".git" / "info" / "exclude").write_text(pattern.replace("[^", "[!") + "\n")
    assert mine == set(rules_for(tmp_path).listing())
    assert mine <= everything


def test_patterns_of_a_folder_above_are_of_that_folder(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("x")
    assert rules_for(tmp_path, ignore=(("sub/", ("sub/f.py",)),)).listing() == []
    assert rules_for(tmp_path, ignore=(("sub/", ("/f.py",)),)).listing() == ["f.py"]


@pytest.mark.parametrize(
    "pattern", ["", "/", "!a", "a//b", "../x", "a/./b", "a\\*", "a\nb", "x" * 201, "a/" * 17]
)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        Globs([pattern])


def test_no_pattern_makes_matching_slow() -> None:
    evil = [f"{'*a' * 90}{n}" for n in range(MOST // 2)] + [f"{'**/a*/' * 7}z{n}" for n in range(MOST // 2)]
    globs = Globs(evil)
    began = time.process_time()
    assert not globs.match("/".join(["a" * 255] * 15))
    assert time.process_time() - began < 1.0
    with pytest.raises(ValueError, match="at most"):
        Globs(["a"] * (MOST + 1))
