"""Where a part of an answer may end: behind words and lines as editors take them."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.nouns import CompletionRequest, Generation
from daemon.polish import boundaries
from daemon.polish.emit import Emitter


def parts(text: str, ends: tuple[int, ...]) -> list[str]:
    return [text[start:end] for start, end in zip((0, *ends), ends, strict=False)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("total", ["total"]),
        ("a + b", ["a", " +", " b"]),
        ("self.items[0]", ["self", ".", "items", "[", "0", "]"]),
        ("for x in range(10):", ["for", " x", " in", " range", "(", "10", "):"]),
        ("x => y;\n    return", ["x", " =>", " y", ";", "\n    return"]),
        ("done  ", ["done  "]),
        ("   ", ["   "]),
        ("snake_case2 == 你好", ["snake_case2", " ==", " 你好"]),
        ("cafe\u0301s = 1", ["cafe\u0301s", " =", " 1"]),
        ("👩\u200d🚀 ok", ["👩\u200d🚀", " ok"]),
        ("हिन्दी = १", ["हिन्दी", " =", " १"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert parts(text, boundaries.words(text)) == words


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("one", ["one"]),
        ("one\ntwo", ["one\n", "two"]),
        ("one\r\ntwo\r\n", ["one\r\n", "two\r\n"]),
        ("one\rtwo", ["one\r", "two"]),
        ("\n    body()\n\n    more()", ["\n    body()\n", "\n    more()"]),
        ("\n", ["\n"]),
        ("end\n\n", ["end\n\n"]),
    ],
)
def test_lines(text: str, lines: list[str]) -> None:
    assert parts(text, boundaries.lines(text)) == lines


@given(st.text(max_size=60))
def test_parts_are_the_whole_and_none_is_empty(text: str) -> None:
    for ends in (boundaries.words(text), boundaries.lines(text)):
        found = parts(text, ends)
        assert "".join(found) == text
        assert all(found)


@given(st.text(alphabet="ab1_ .(\n\u0301\u0302e", max_size=40))
def test_no_mark_is_parted_from_its_letter(text: str) -> None:
    for end in boundaries.words(text)[:-1]:
        assert not unicodedata.category(text[end]).startswith("M") or text[end - 1].isspace()


def test_an_answer_says_them_of_its_own_line_ends() -> None:
    request = CompletionRequest(id="1", client="c", door="d", prefix="", newline="\r\n")
    done = Emitter(request).finish(Generation(text="a = 1\nb = 2", stop="eos"))
    assert done.text == "a = 1\r\nb = 2"
    assert parts(done.text, done.lines) == ["a = 1\r\n", "b = 2"]
    assert parts(done.text, done.words)[2:4] == [" 1", "\r\nb"]


@pytest.mark.parametrize("blank", [" ", "\n"])
def test_white_space_without_end_takes_no_time(blank: str) -> None:
    text = "total" + blank * 6000
    began = time.perf_counter()
    assert (boundaries.words(text), boundaries.lines(text)) == ((6005,), (6005,))
    assert time.perf_counter() - began < 0.2
