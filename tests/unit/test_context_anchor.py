"""Anchors stay while a person types, and move when the document around them changed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.context.anchor import Anchor, Anchors, Window, near

W = Window(prefix=2000, suffix=300, middle=600, jump=2000, lines=3)
DOC = "".join(f"def function_{i}(argument):\n    return argument + {i}\n\n" for i in range(60))


def window(text: str, cursor: int, lines: int = 256) -> tuple[str, str]:
    """What llama.vim would send: whole lines around the cursor."""
    prefix = "\n".join(text[:cursor].split("\n")[-lines:])
    return prefix, "\n".join(text[cursor:].split("\n")[:64])


def test_typing_keeps_the_anchor() -> None:
    anchors = Anchors()
    cursor = DOC.index("function_30(")
    first = anchors.place(*window(DOC, cursor), W)[0]
    text = DOC
    for c in "xyz = 1\n    more()":
        text, cursor = text[:cursor] + c + text[cursor:], cursor + 1
        anchor, middle, _ = anchors.place(*window(text, cursor), W)
        assert anchor is first
        assert text[:cursor].endswith(anchor.prefix + middle)
    for _ in range(10):
        text, cursor = text[: cursor - 1] + text[cursor:], cursor - 1
        assert anchors.place(*window(text, cursor), W)[0] is first


def test_the_client_window_may_slide() -> None:
    anchors = Anchors()
    cursor = len(DOC)
    first = anchors.place(*window(DOC, cursor, lines=40), W)[0]
    text = DOC
    for i in range(30):
        text += f"line {i}\n"
        anchor, middle, _ = anchors.place(*window(text, len(text), lines=40), W)
        assert anchor is first
        assert text.endswith(anchor.prefix + middle)


def test_an_automatic_closer_does_not_move_the_anchor() -> None:
    anchors = Anchors()
    cursor = DOC.index("argument + 30")
    prefix, suffix = window(DOC, cursor)
    first = anchors.place(prefix, suffix, W)[0]
    assert anchors.place(prefix + "f(", ")" + suffix, W)[0] is first
    assert anchors.place(prefix + "f(a", ")" + suffix, W)[0] is first
    assert anchors.place(prefix + "f(a", "x" + suffix, W)[0] is not first


def test_a_changed_suffix_moves_the_anchor_and_keeps_the_window_start() -> None:
    anchors = Anchors()
    cursor = DOC.index("function_30(")
    first = anchors.place(*window(DOC, cursor), W)[0]
    later = DOC.index("function_34(")
    second, _, reason = anchors.place(*window(DOC, later), W)
    assert second != first
    assert second.prefix.startswith(first.prefix)
    assert "known" in reason


def test_many_documents_keep_their_anchors() -> None:
    anchors = Anchors()
    documents = [DOC.replace("function", f"method_{n}") for n in range(120)]
    found = [anchors.place(*window(text, 900), W)[0] for text in documents]
    again = [anchors.place(*window(text, 900), W)[0] for text in documents]
    assert all(a is b for a, b in zip(found, again, strict=True))


def test_cursor_split() -> None:
    anchor, middle, _ = Anchors().place("a\nb = ", "\nc", Window(2000, 300, 600, 2000, -1))
    assert (anchor.prefix, middle) == ("a\nb = ", "")


@pytest.mark.parametrize(("lines", "middle"), [(0, "d"), (1, "c\nd"), (9, "a\nb\nc\nd")])
def test_anchor_distance(lines: int, middle: str) -> None:
    assert Anchors().place("a\nb\nc\nd", "", Window(2000, 300, 600, 2000, lines))[1] == middle


def test_a_jump_is_bounded_on_a_slow_machine() -> None:
    slow = Window(prefix=4000, suffix=200, middle=600, jump=500, lines=3)
    anchor, _, reason = Anchors().place(*window(DOC, len(DOC) // 2), slow)
    assert len(anchor.prefix) + len(anchor.suffix) <= 700
    assert "new window" in reason


def test_idle_time_widens_a_small_window() -> None:
    slow = Window(prefix=4000, suffix=200, middle=600, jump=500, lines=3)
    anchors = Anchors()
    prefix, suffix = window(DOC, len(DOC) // 2)
    anchor, _, _ = anchors.place(prefix, suffix, slow)
    wide = anchors.widen(anchor, prefix, suffix, Window(4000, 200, 600, 4000, 3))
    assert wide is not None
    assert len(wide.prefix) > 2 * len(anchor.prefix)
    anchors.adopt(wide)
    assert anchors.place(prefix + "x", suffix, slow)[0] is wide


def test_whole_lines_and_huge_lines() -> None:
    assert near("ab\ncd\nef", 5) == "ab\n"
    assert near("x" * 100, 10) == "x" * 10
    line = "y" * 500_000
    anchor, middle, _ = Anchors().place(line, line, W)
    assert line.endswith(anchor.prefix + middle)
    assert len(middle) <= 600
    assert len(anchor.suffix) <= 300


def test_short_prefix_is_not_taken_for_another_place() -> None:
    anchor = Anchor("}\n", "")
    assert anchor.middle("a {\n}\nb", "") is None
    assert anchor.middle("}\nb", "") == "b"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_the_prompt_is_always_the_document(seed: int) -> None:
    """Whatever is edited: prefix + middle end at the cursor with the document's own text."""
    random_ = random.Random(seed)
    anchors, text, cursor = Anchors(), DOC[:2000], 1000
    for _ in range(40):
        kind = random_.random()
        if kind < 0.15:
            cursor = random_.randrange(len(text) + 1)
        elif kind < 0.3 and cursor > 3:
            size = random_.randrange(1, 4)
            text, cursor = text[: cursor - size] + text[cursor:], cursor - size
        else:
            typed = random_.choice(["a", "\n", "    ", "argument", ")", "return "])
            text, cursor = text[:cursor] + typed + text[cursor:], cursor + len(typed)
        prefix, suffix = window(text, cursor, lines=20)
        anchor, middle, _ = anchors.place(prefix, suffix, W)
        joined = anchor.prefix + middle
        assert joined.endswith(prefix) or prefix.endswith(joined)
        closers = len(suffix) - len(suffix.lstrip(")]}"))
        assert any(suffix[i:].startswith(anchor.suffix) for i in range(closers + 1))


def test_a_small_window_is_still_found_again() -> None:
    """On a slow machine few characters fit; too few of them could stand anywhere."""
    window = Window(prefix=2000, suffix=40, middle=800, jump=60, lines=3)
    head = "".join(f"    value_{n} = compute({n})\n" for n in range(40))
    anchors = Anchors()
    anchor, _, reason = anchors.place(head + "    last = ", "\nend\n", window)
    assert "new window" in reason
    assert 80 <= len(anchor.prefix) <= 160
    again, _, reason = anchors.place(head + "    last = c", "\nend\n", window)
    assert again == anchor
    assert "known anchor" in reason


def test_an_anchor_is_known_behind_its_own_head_only() -> None:
    anchors, cursor = Anchors(), len(DOC) // 2
    slow = replace(W, jump=400, head=(1, 3))
    first = anchors.place(*window(DOC, cursor), slow)[0]
    wide = anchors.widen(first, *window(DOC, cursor), replace(W, prefix=4000))
    assert wide is not None
    anchors.adopt(wide, (1, 3))
    assert anchors.place(*window(DOC, cursor), slow)[0] is wide
    other, _, reason = anchors.place(*window(DOC, cursor), replace(slow, head=(2, 1)))
    assert len(other.prefix) < len(wide.prefix), "all of it would be evaluated for one keystroke"
    assert reason == "new anchor, new window"
    assert anchors.place(*window(DOC, cursor), slow)[0] is wide
