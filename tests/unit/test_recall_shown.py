"""Answers are found again by the text around them, in bounded memory."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from daemon.nouns import CompletionRequest, Extra, Limits
from daemon.recall.shown import AFTER, BEFORE, Answer, Shown, key, kind

ABOVE = "".join(f"line_{n} = {n}\n" for n in range(200))
BELOW = "".join(f"more_{n} = {n}\n" for n in range(100))
TEXT = "sum(item.price for item in items)"


def ask(prefix: str, suffix: str = "\n" + BELOW, **more: Any) -> CompletionRequest:
    fields: dict[str, Any] = {"path": "/p/a.py", **more}
    return CompletionRequest(id="1", client="c", door="test", prefix=prefix, suffix=suffix, **fields)


def answer(asked: CompletionRequest, text: str = TEXT) -> Answer:
    return Answer(
        id=asked.id,
        kind=kind(asked),
        before=asked.prefix[-BEFORE:],
        after=asked.suffix[:AFTER],
        text=text,
        stop="line",
        stop_word="",
        context=(0, 0),
        lines="line",
        tokens=64,
        middle=0,
        written=b"",
        ms=1.0,
    )


def holding(*asked: CompletionRequest) -> Shown:
    shown = Shown(1 << 20)
    for one in asked:
        shown.keep(key(one), answer(one))
    return shown


def typed(shown: Shown, asked: CompletionRequest) -> list[str]:
    return [found for _, found in shown.find(asked)]


PREFIX = ABOVE + "total = "


def test_typing_along_and_back_again() -> None:
    shown = holding(ask(PREFIX))
    for size in (0, 1, 7, len(TEXT), 12, 2, 0):
        assert typed(shown, ask(PREFIX + TEXT[:size])) == [TEXT[:size]]
    assert not typed(shown, ask(PREFIX + "s" + "om"))
    assert not typed(shown, ask(PREFIX[:-1]))
    assert not typed(shown, ask(PREFIX + TEXT + ")"))


@pytest.mark.parametrize("changed", ["import os\n" + ABOVE, "x" + ABOVE, ABOVE[20:]])
def test_an_edit_far_above_moves_an_answer(changed: str) -> None:
    assert typed(holding(ask(PREFIX)), ask(changed + "total = su")) == ["su"]


def test_an_edit_far_below_changes_nothing() -> None:
    assert typed(holding(ask(PREFIX)), ask(PREFIX, "\n" + BELOW + "end()\n")) == [""]


def test_an_edit_close_by_hides_an_answer_until_it_is_undone() -> None:
    shown = holding(ask(PREFIX))
    above = ABOVE.replace("line_190 ", "line_x ")
    assert not typed(shown, ask(above + "total = su"))
    assert not typed(shown, ask(PREFIX + "su", "\n" + BELOW.replace("more_3 ", "less ")))
    assert typed(shown, ask(PREFIX + "su")) == ["su"]


def test_a_short_text_is_the_whole_text() -> None:
    shown = holding(ask("total = ", "\n"))
    assert typed(shown, ask("total = s", "\n")) == ["s"]
    assert not typed(shown, ask("a\ntotal = s", "\n"))
    assert not typed(shown, ask("total = s", "\nprint(total)\n"))


def test_closers_of_an_editor_are_no_edit() -> None:
    shown = holding(ask(PREFIX))
    assert typed(shown, ask(PREFIX + "sum(", ")\n" + BELOW)) == ["sum("]
    assert not typed(shown, ask(PREFIX, ")\n" + BELOW))
    assert not typed(shown, ask(PREFIX + "sum(", "x\n" + BELOW))


def test_a_text_that_repeats_itself_is_found_at_its_place() -> None:
    asked = ask("ab" * 2000)
    shown = Shown(1 << 20)
    shown.keep(key(asked), answer(asked, "ababab!"))
    assert typed(shown, asked) == [""]
    assert typed(shown, ask("ab" * 2001)) in ([""], ["ab"])  # the same text stands at both places


@pytest.mark.parametrize(
    "more",
    [
        {"path": "/p/b.py"},
        {"path": None},
        {"limits": Limits(lines="block")},
        {"limits": Limits(stop=(")",))},
        {"language": "rust"},
        {"extras": (Extra(text="class A: ..."),)},
        {"context": "none"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_another_question_has_another_answer(more: dict[str, Any]) -> None:
    assert not typed(holding(ask(PREFIX)), ask(PREFIX, **more))


def test_who_asks_and_how_long_it_may_take_is_not_the_question() -> None:
    shown = holding(ask(PREFIX))
    other = msgspec.structs.replace(ask(PREFIX), id="2", client="d", door="other", newline="\r\n")
    other = msgspec.structs.replace(other, replaces=False, limits=Limits(milliseconds=5, deadline=9))
    assert typed(shown, other) == [""]


def test_without_a_path_a_client_finds_its_own() -> None:
    shown = holding(ask(PREFIX, path=None))
    assert typed(shown, ask(PREFIX, path=None)) == [""]
    assert not typed(shown, msgspec.structs.replace(ask(PREFIX, path=None), client="d"))


def test_the_newest_comes_first_and_the_same_question_is_kept_once() -> None:
    shown = holding(ask(PREFIX), ask(PREFIX + "su"), ask(PREFIX))
    assert len(shown) == 2
    shown.keep("path /p/a.py", answer(ask(PREFIX + "sum"), "(items)"))
    assert typed(shown, ask(PREFIX + "sum(")) == ["(", "sum("]


def test_memory_is_bounded_and_what_was_used_stays_longer() -> None:
    shown = Shown(20 * answer(ask(PREFIX)).size)
    first = answer(ask(PREFIX))
    shown.keep("path /p/a.py", first)
    for number in range(1000):
        asked = ask(f"{PREFIX}{number}", path=f"/p/{number % 7}.py")
        shown.keep(key(asked), answer(asked))
        assert shown.bytes <= shown.most
        if number == 10:
            shown.use(first)
        assert (first in shown._oldest) == (number < 30)
    assert 15 < len(shown) <= 20
    for number in range(7):
        shown.forget(f"path /p/{number}.py")
    assert (len(shown), shown.bytes) == (0, 0)


def test_one_document_does_not_take_all() -> None:
    shown = Shown(1 << 30)
    for number in range(300):
        asked = ask(f"{PREFIX}{number}")
        shown.keep(key(asked), answer(asked))
    assert len(shown) == 128
