"""The file of a text without a path: found, or in doubt; never another one."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.indexing import index_once

import indexer
from daemon import roots
from daemon.documents.mirror import Mirror
from daemon.documents.recovery import Recoverer, recover
from daemon.readers import Readers
from daemon.settings import Index

SOURCE = Path(indexer.__file__).parent


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """This project's indexer, indexed, with a near copy of one file in it."""
    base = tmp_path_factory.mktemp("recovery")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORETYPE_HOME", str(base / "home"))
        found = base / "project"
        shutil.copytree(SOURCE, found, ignore=shutil.ignore_patterns("__pycache__", "languages"))
        twin = (found / "walk.py").read_text(encoding="utf-8").replace("folders", "directories", 1)
        (found / "walk_copy.py").write_text(twin, encoding="utf-8")
        (found / ".env").write_text("\n".join(f"SECRET_NUMBER_{i} = value {i}" for i in range(40)))
        real = roots.normal(found)
        roots.add(real)
        index_once(real, roots.folder(real))
        yield real


@pytest.fixture
def home(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Mirror, Readers]]:
    monkeypatch.setenv("FORETYPE_HOME", str(root.parent / "home"))
    readers = Readers(Index())
    mirror = Mirror(readers)
    yield mirror, readers
    mirror.shut()
    readers.close()


def windows(files: list[Path], seed: int, count: int) -> Iterator[tuple[Path, str, str]]:
    """Texts before and after a cursor, with a few edits in them."""
    rng = random.Random(seed)
    for _ in range(count):
        file = rng.choice(files)
        lines = file.read_text(encoding="utf-8").split("\n")
        at = rng.randrange(len(lines))
        window, row = lines[max(0, at - 80) : at + 40], min(at, 80)
        for _ in range(rng.randrange(4)):
            edited = rng.randrange(len(window))
            window[edited] += f" changed_{rng.randrange(99)}"
        column = rng.randrange(len(window[row]) + 1)
        before = "\n".join([*window[:row], window[row][:column]])
        yield file, before, "\n".join([window[row][column:], *window[row + 1 :]])


def test_no_wrong_path_and_most_right(root: Path, home: tuple[Mirror, Readers]) -> None:
    files = [f for f in sorted(root.glob("*.py")) if f.stat().st_size > 1_500]
    right = none = 0
    for file, before, after in windows(files, 1, 60):
        found = recover(before, after, *home)
        assert found.path in ("", str(file)), found
        assert found.why
        right += bool(found.path)
        none += not found.path
    assert right > 3 * none


def test_what_is_not_indexed_has_no_path(home: tuple[Mirror, Readers]) -> None:
    for _, before, after in windows([Path(__file__), Path(random.__file__)], 2, 12):
        assert recover(before, after, *home).path == ""


def test_a_file_and_its_copy_are_in_doubt(root: Path, home: tuple[Mirror, Readers]) -> None:
    lines = (root / "walk.py").read_text(encoding="utf-8").split("\n")
    found = recover("\n".join(lines[60:140]), "\n".join(lines[140:190]), *home)
    assert (found.path, found.root) == ("", "")
    assert "2 files" in found.why


def test_too_little_text_and_secrets(root: Path, home: tuple[Mirror, Readers]) -> None:
    assert recover("x = 1\n", "y = 2\n", *home).why == "too few lines to tell a file by"
    assert recover("", "", *home).path == ""
    secret = (root / ".env").read_text()
    assert recover(secret, "", *home).path == ""


def test_an_open_document_is_found_as_it_is_now(root: Path, home: tuple[Mirror, Readers]) -> None:
    mirror, readers = home
    text = "\n".join(f"def brand_new_{i}(value): return value + {i}" for i in range(60))
    mirror.open("c", "untitled.py", text)
    found = recover(text[:1500] + "\nzz", text[1500:], mirror, readers)
    assert (found.path, found.root) == ("untitled.py", "")


def test_a_client_is_answered_from_what_is_known(root: Path, home: tuple[Mirror, Readers]) -> None:
    recoverer = Recoverer(*home)
    lines = (root / "watch.py").read_text(encoding="utf-8").split("\n")
    before, after = "\n".join(lines[40:100]) + "\n", "\n" + "\n".join(lines[100:130])
    assert recoverer.find("c", before, after).why == "being looked for"
    recoverer.settle(30)
    for typed in ("s", "se", "sel", "self.x = 3\n", "self.x = 3\n    "):
        assert recoverer.find("c", before + typed, after).path == str(root / "watch.py")
    other = (root / "store.py").read_text(encoding="utf-8")
    assert recoverer.find("c", other[:3000] + "\n", other[3000:6000]).path == ""
    recoverer.settle(30)
    assert recoverer.find("c", other[:3000] + "\n", other[3000:6000]).path == str(root / "store.py")
    recoverer.shut()


def test_an_empty_text_neither_gets_a_file_nor_loses_it(root: Path, home: tuple[Mirror, Readers]) -> None:
    recoverer = Recoverer(*home)
    lines = (root / "watch.py").read_text(encoding="utf-8").split("\n")
    before, after = "\n".join(lines[40:100]) + "\n", "\n" + "\n".join(lines[100:130])
    recoverer.find("c", before, after)
    recoverer.settle(30)
    assert recoverer.find("c", "", "", warm=True).path == str(root / "watch.py")
    assert recoverer.find("c", "", "").path == ""
    assert recoverer.find("c", before + "s", after).path == str(root / "watch.py")
    recoverer.shut()
