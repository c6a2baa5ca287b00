"""Copies of what clients hold: moved on by edits that fit, dropped at the first that does not."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from daemon.documents.held import Copy, Edit, Held
from daemon.errors import NotKept, Resync


def proof(text: str) -> dict[str, Any]:
    return {"length": len(text), "crc32": zlib.crc32(text.encode())}


@pytest.fixture
def held() -> Held:
    found = Held()
    found.take("c", "a.py", Copy(1, "x = 1\r\n", "python"))
    return found


def test_edits_are_applied_one_after_the_other(held: Held) -> None:
    text = "😀y = 12\r\n"
    edits = (Edit(0, 1, "y"), Edit(5, 5, "2"), Edit(0, 0, "😀"))
    assert held.edited("c", "a.py", 1, edits, **proof(text)) == (text, "python")
    held.take("c", "a.py", Copy(2, text))
    assert held.copy("c", "a.py", 2)[0] == text
    with pytest.raises(Resync):
        held.copy("c", "a.py", 1)


@pytest.mark.parametrize(
    ("base", "edits", "result"),
    [
        (2, (Edit(0, 0, "a"),), "ax = 1\r\n"),
        (1, (Edit(0, 8, "a"),), "a"),
        (1, (Edit(3, 2, "a"),), "a"),
        (1, (Edit(-1, 0, "a"),), "a"),
        (1, (Edit(0, 0, "a"),), "bx = 1\r\n"),
        (1, (Edit(0, 0, "a"),), "ax = 1\n"),
    ],
)
def test_what_does_not_fit_makes_the_copy_worthless(
    held: Held, base: int, edits: tuple[Edit, ...], result: str
) -> None:
    with pytest.raises(Resync):
        held.edited("c", "a.py", base, edits, **proof(result))
    with pytest.raises(Resync, match="no version"):
        held.copy("c", "a.py", 1)
    held.take("c", "a.py", Copy(3, "whole"))
    assert held.copy("c", "a.py", 3) == ("whole", None)


def test_many_edits_of_a_long_text_are_refused() -> None:
    held = Held()
    held.take("c", "a", Copy(1, "x" * 1_000_000))
    with pytest.raises(Resync, match="cost more"):
        held.edited("c", "a", 1, (Edit(0, 0, ""),) * 17, **proof("x" * 1_000_000))


def test_what_may_not_be_kept_is_told_apart_from_what_is_unknown(held: Held) -> None:
    held.take("c", ".env", Copy(1, None))
    for base in (1, 2):
        with pytest.raises(NotKept):
            held.edited("c", ".env", base, (Edit(0, 0, "a"),), **proof("a"))
    with pytest.raises(Resync) as unknown:
        held.copy("other", "a.py", 1)
    assert not isinstance(unknown.value, NotKept)


def test_older_versions_are_ignored_unless_opened_anew(held: Held) -> None:
    held.take("c", "a.py", Copy(0, "stale"))
    assert held.copy("c", "a.py", 1)[0] == "x = 1\r\n"
    held.take("c", "a.py", Copy(0, "anew"), opened=True)
    assert held.copy("c", "a.py", 0)[0] == "anew"


def test_the_least_recently_used_go_first() -> None:
    held = Held(documents=3, characters=10)
    for name in "abc":
        held.take("c", name, Copy(1, name))
    held.copy("c", "a", 1)
    held.take("c", "d", Copy(1, "d"))
    with pytest.raises(Resync):
        held.copy("c", "b", 1)
    held.take("c", "e", Copy(1, "e" * 20))
    assert held.copy("c", "e", 1)[0] == "e" * 20
    with pytest.raises(Resync):
        held.copy("c", "a", 1)
    held.drop("c", "e")
    held.take("c", "f", Copy(1, "f" * 10))
    assert held.copy("c", "f", 1)
