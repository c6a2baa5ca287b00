"""The judge of accepted completions: what it calls a fault, and what it lets pass."""

from __future__ import annotations

import pytest

from daemon.bench import cursors
from daemon.bench.cursors import draw
from daemon.bench.faults import Accepted, brackets, faults, unmatched
from indexer.languages import registry

PYTHON, RUST = registry.get("python"), registry.get("rust")


def accepted(document: str, text: str, replaced: int = 0, language: registry.Language = PYTHON) -> Accepted:
    """`document` with the cursor at ‸."""
    start = document.index("‸")
    return Accepted(document.replace("‸", ""), start, start + replaced, text, language)


CASES = [
    # document, what is accepted, its faults
    ("def f(x):\n    ‸\n    return x + 1\n", "y = 2", set()),
    ("def f(x):\n    ‸\n    return x + 1\n", "return x + 1", {"duplicated"}),
    ("def f(x):\n    ‸\n    return x + 1\n", "y = 2\n    return x + 1", {"duplicated"}),
    ("def f(x):\n    ‸\n\n    return x + 1\n", "y = 2\n    return x + 1\n", {"duplicated"}),
    ("a = [\n    ‸\n]\n", "1,\n]", {"unbalanced"}),
    ("total = sum(‸)\n", "prices", set()),
    ("total = sum(‸)\n", "prices)", {"unbalanced"}),
    ("total = sum(‸)\n", "prices[0", {"unbalanced"}),
    ("total = sum(‸)\n", "':)'", set()),
    ("total = ‸\n", "sum(", {"opened"}),
    ("total = ‸\n", "sum(  # of all", {"opened"}),
    ("total = sum(‸\n", "prices)", set()),
    ("total = ‸\n", "  ", set()),
]


@pytest.mark.parametrize(("document", "text", "found"), CASES)
def test_faults(document: str, text: str, found: set[str]) -> None:
    assert faults(accepted(document, text)) == found


SPACES = "".join(f"def f{n}(x):\n    return x\n\n\n" for n in range(5))


@pytest.mark.parametrize(
    ("style", "text", "restyled"),
    [
        (SPACES, "if x:\n        y()", False),
        (SPACES, "if x:\n\ty()", True),
        (SPACES, "if x:\n      y()", True),
        (SPACES.replace("    ", "\t"), "if x:\n        y()", True),
        ("", "if x:\n      y()", False),
    ],
)
def test_another_indentation_than_the_files(style: str, text: str, restyled: bool) -> None:
    given = accepted(f"{style}def last(x):\n    ‸\n", text)
    assert ("restyled" in faults(given)) == restyled


def test_what_is_replaced_counts_as_gone() -> None:
    document = "total = sum(‸)\n"
    assert faults(accepted(document, "a) + b", 1)) == set()
    assert accepted(document, "a) + b", 1).after == "total = sum(a) + b\n"


def test_brackets_are_those_of_the_code() -> None:
    text = "let s = \"(\"; // [\nlet c = '{';\nlet v = (1, [2]);\n"
    assert "".join(bracket for _, bracket in brackets(text, RUST)) == "([])"
    assert unmatched([(0, "("), (1, "["), (2, ")"), (3, "}")]) == {"[": 1, "}": 1}


def test_cursors_of_every_kind_in_files_without_a_fault() -> None:
    source = "import os\n\n\n" + "".join(
        f"def area_{n}(width, height):\n    total = width * height + {n}\n    print(total, 'm')\n"
        f"    for row in range(total):\n        print(row)\n        print({n})\n    return total\n\n\n"
        for n in range(8)
    )
    texts = {"a.py": source.encode(), "small.py": b"x = 1\n", "notes": source.encode()}
    found = draw(texts, 40, seed=1)
    assert found == draw(texts, 40, seed=1) != draw(texts, 40, seed=2)
    assert {cursor.kind for cursor in found} == set(cursors._KINDS)
    for cursor in found:
        assert cursor.path == "a.py"
        whole = cursor.accepted(cursor.truth).after
        assert whole == source or cursor.kind in ("new", "front")
        assert cursor.name == f"a.py:{cursor.line}:{cursor.column} {cursor.kind}"
        assert not faults(cursor.accepted(cursor.truth))
