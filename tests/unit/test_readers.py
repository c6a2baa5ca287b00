"""Which index answers for a file."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon import roots
from daemon.readers import Readers
from daemon.settings import Index


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))


def checkout(base: Path, name: str, file: str) -> Path:
    root = base / name
    (root / file).parent.mkdir(parents=True)
    (root / file).write_text("x = 1\n")
    return roots.normal(root)


def test_the_innermost_root_answers_for_an_absolute_path(tmp_path: Path) -> None:
    outer = checkout(tmp_path, "outer", "a.py")
    inner = checkout(outer, "inner", "lib/b.py")
    roots.add(outer)
    roots.add(inner)
    readers = Readers(Index())
    found = readers.find(str(inner / "lib" / "b.py"))
    assert found is not None
    assert (found.root, found.path) == (inner, "lib/b.py")
    assert readers.find(str(outer / "a.py")).root == outer  # type: ignore[union-attr]
    assert readers.find(str(tmp_path / "elsewhere.py")) is None


def test_a_relative_path_needs_exactly_one_root_that_has_it(tmp_path: Path) -> None:
    first, second = (checkout(tmp_path, name, "src/a.py") for name in ("first", "second"))
    (first / "only.py").write_text("y = 2\n")
    roots.add(first)
    readers = Readers(Index(roots=(str(second),)))
    assert readers.find("src/a.py") is None
    found = readers.find("only.py")
    assert found is not None
    assert (found.root, found.path) == (first, "only.py")
    assert readers.find("../first/only.py") is None
    assert readers.find("") is None


def test_roots_come_and_go_while_running(tmp_path: Path) -> None:
    root = checkout(tmp_path, "project", "a.py")
    readers = Readers(Index())
    assert readers.all() == ()
    roots.add(root)
    assert [found.root for found in readers.all()] == [root]
    roots.remove(root)
    assert readers.all() == ()


def test_an_index_that_is_off_answers_nothing(tmp_path: Path) -> None:
    root = checkout(tmp_path, "project", "a.py")
    roots.add(root)
    assert Readers(Index(on=False)).find(str(root / "a.py")) is None


def test_threads_may_ask_while_roots_come_and_go(tmp_path: Path) -> None:
    steady, *others = (checkout(tmp_path, f"p{number}", "a.py") for number in range(20))
    roots.add(steady)
    readers = Readers(Index())
    ended = threading.Event()

    def ask() -> int:
        missed = 0
        while not ended.is_set():
            missed += readers.find(str(steady / "a.py")) is None
            missed += steady not in [found.root for found in readers.all()]
        return missed

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        try:
            for root in others:
                roots.add(root)
            for root in others:
                roots.remove(root)
        finally:
            ended.set()
        assert [one.result() for one in asking] == [0, 0, 0]
    readers.close()
