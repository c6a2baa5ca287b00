"""Brackets of a fragment: what is known of whole lines stays true whatever is typed below them."""

from __future__ import annotations

import itertools
import random

import pytest

from daemon.polish.brackets import brackets, goes_on

SIGNS = [
    *("\n", "\n", "`", '"', "'", '"""', "'''", "/*", "*/", "//", "#", "\\", "/", "&", " ", "=", "a", ","),
    *"(){}[]",
]


def texts() -> list[str]:
    random_ = random.Random(11)
    return ["".join(random_.choices(SIGNS, k=random_.randrange(24))) for _ in range(20_000)]


@pytest.mark.parametrize("comment", ["#", "//", ""])
def test_whole_lines_have_their_brackets_whatever_follows(comment: str) -> None:
    judged = 0
    for text, more in itertools.pairwise(texts()):
        lines = text[: text.rfind("\n") + 1]
        if not lines or goes_on(lines, comment):
            continue
        judged += 1
        below = [(len(lines) + at, char) for at, char in brackets(more, 0, comment)]
        assert [*brackets(lines + more, 0, comment)] == [*brackets(lines, 0, comment), *below], (lines, more)
    assert judged > 1_000


@pytest.mark.parametrize(
    ("lines", "comment", "expected"),
    [
        ("f(`\n", "//", True),
        ("f(`a`\n", "//", False),
        ("/// as `f(`, and `\n", "//", False),
        ("/* a\n", "//", True),
        ("/* a */\n", "//", False),
        ('"""\n', "#", True),
        ("it's\n", "#", False),
    ],
)
def test_goes_on(lines: str, comment: str, expected: bool) -> None:
    assert goes_on(lines, comment) is expected
