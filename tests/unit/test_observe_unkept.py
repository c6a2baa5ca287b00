"""Following answers keeps nothing of files on the deny list, and nothing of files that are left out."""

from __future__ import annotations

import gc
import types
from typing import Any

import pytest
from support.taking import Person

MARK = "hunter2"
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{MARK}\n"
BESIDE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


def holds(start: object, mark: str) -> bool:
    """Whether a text with `mark` can be reached."""
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, BESIDE):
            continue
        seen.add(id(one))
        if isinstance(one, str) and mark in one:
            return True
        waiting += gc.get_referents(one)
    return False


def works(person: Person, text: str, **more: Any) -> None:
    """Is shown an answer, takes it, and types on."""
    person.shown("    ", text, **more)
    person.wait(1)
    person.ask("    " + text, **more)


async def test_the_texts_of_other_files_are_known_for_a_while() -> None:
    person = Person(path="/p/a.py")
    works(person, MARK)
    assert holds(person.acceptance, MARK)
    assert len(person.rows) == 1


@pytest.mark.parametrize("more", [{"path": "/p/.env"}, {"path": "/p/notes", "prefix": KEY}])
async def test_nothing_is_kept_of_what_is_denied(more: dict[str, str]) -> None:
    person = Person()
    works(person, MARK, **more)
    assert not holds(person.acceptance, MARK)
    assert not person.rows


async def test_what_was_known_of_a_file_goes_when_it_is_left_out() -> None:
    person, out = Person(path="/p/a.py"), set[str]()
    person.acceptance._left_out = out.__contains__
    works(person, MARK)
    person.shown("    " + MARK, " = 1")
    out.add("/p/a.py")
    asked = person.ask("    x")
    person.answer(asked, MARK)
    assert not holds(person.acceptance, MARK)
    assert [outcome for outcome, _ in person.outcomes] == ["whole", "left"]
