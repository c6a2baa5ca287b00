"""What stands beside a cursor is worth its tokens: nothing twice, names at least, no news that are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.repository import Buffers, around, indexed

from daemon.context.tiers import Tiers
from daemon.documents.document import Region
from daemon.surroundings import Piece

STORE = """class Store:
    def find_order(self, number: int) -> int:
        return number
"""
REPORT = """from shop.store import Store


class Report:
    def __init__(self, store: Store) -> None:
        self.store = store

    def lines(self, numbers: list[int]) -> list[str]:
        return [str(self.store.find_order(number)) for number in numbers]

    def title(self) -> str:
        return "Report"
"""
FILES = {"shop/store.py": STORE, "shop/report.py": REPORT}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))


def told(pieces: tuple[Piece, ...], path: str) -> str:
    return "\n".join(p.text for p in pieces if p.tier == "P2" and p.path == path)


def test_the_file_itself_is_no_news(tmp_path: Path) -> None:
    root, readers = indexed(tmp_path / "root", FILES)
    here = around(root, "shop/report.py", REPORT, 'return "Report')
    event = Region("/somewhere", 0, 1, "import json", 1.0, "edited", str(root), "shop/report.py")
    found = Tiers(readers, Buffers()).candidates(here, REPORT, (10, 13), [event])
    own = [p for p in found if p.path == "shop/report.py" and p.tier != "P4"]
    assert own
    assert {p.recency for p in own} == {0.0}


def test_imports_of_a_long_file_stand_there_once_and_whole(tmp_path: Path) -> None:
    filling = "".join(f"def step_{n}(value: int) -> int:\n    return value\n\n\n" for n in range(40))
    text = f"""from shop.store import (
    Store,
    Shelf,
)
import json

{filling}def last(store: Store) -> int:
    return store.find_order(1)
"""
    root, readers = indexed(tmp_path / "root", {**FILES, "shop/long.py": text})
    line = text.count("\n")
    found = Tiers(readers, Buffers()).candidates(
        around(root, "shop/long.py", text, "return store.find_order"), text, (line - 4, line + 1)
    )
    (imports,) = [p for p in found if p.name == "imports"]
    assert imports.text.split("\n") == text.split("\n")[:5]
    assert not any("import" in p.text for p in found if p.kind == "text")


def test_members_that_an_outline_only_counts_are_named(tmp_path: Path) -> None:
    names = [f"STATUS_{n}" for n in range(20)]
    members = "".join(
        f"    {name} = {n}, 'what {name} means, in some words'\n" for n, name in enumerate(names)
    )
    codes = f"from enum import Enum\n\n\nclass codes(Enum):\n{members}" + "\n\n" + "x = 1\n" * 200
    text = "from shop.codes import codes\n\n\ndef work() -> int:\n    return codes.\n"
    root, readers = indexed(tmp_path / "root", {"shop/codes.py": codes, "shop/work.py": text})
    here = around(root, "shop/work.py", text, "return codes.")
    shown = told(Tiers(readers, Buffers()).candidates(here, text, (0, 5)), "shop/codes.py")
    assert all(name in shown for name in names)
    assert shown.count("\n") < 15


def test_what_only_tests_define_is_no_name_of_the_program(tmp_path: Path) -> None:
    helper = "def fill_basket(size: int) -> list[int]:\n    return list(range(size))\n"
    text = "def work(fill_basket) -> int:\n    return fill_basket(1)[0]\n"
    files = {"tests/conftest.py": helper, "shop/work.py": text, "tests/test_work.py": text}
    root, readers = indexed(tmp_path / "root", files)
    shown = {}
    for path in ("shop/work.py", "tests/test_work.py"):
        here = around(root, path, text, "return fill_basket")
        shown[path] = told(Tiers(readers, Buffers()).candidates(here, text, (0, 3)), "tests/conftest.py")
    assert shown["shop/work.py"] == ""
    assert "def fill_basket(size: int)" in shown["tests/test_work.py"]
