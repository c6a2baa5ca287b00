"""The fingerprint of the rules that make rows changes with all that makes them."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

from indexer import extraction


def test_the_word_for_the_rules_covers_all_that_makes_rows(tmp_path: Path) -> None:
    package = Path(extraction.__file__).parent
    wanted, seen = ["make"], set[str]()
    while wanted:
        name = wanted.pop()
        seen.add(name)
        for node in ast.walk(ast.parse((package / f"{name}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "indexer":
                names = [alias.name for alias in node.names] if node.module == "indexer" else []
                named = {*names, (node.module or "").removeprefix("indexer").strip(".")}
                wanted += [n for n in named if (package / f"{n}.py").is_file() and n not in seen]
    not_of_content = {"errors", "frames", "git", "globs", "ignore", "specs", "vocabulary"}
    assert seen - not_of_content == set(extraction.MODULES)
    copy = tmp_path / "indexer"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert extraction.fingerprint_of(copy) == extraction.fingerprint()
    for changed in ("languages/python/symbols.scm", "languages/go/facts.toml", "outline.py"):
        before = extraction.fingerprint_of(copy)
        with (copy / changed).open("a", encoding="utf-8") as file:
            file.write("\n")
        assert extraction.fingerprint_of(copy) != before
