"""Where a generation ends, whatever the portions its bytes come in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.engine.stops import Stops, indent_of, opens_block
from daemon.nouns import Limits


def run(
    limits: Limits, raw: str, line: str = "", suffix: str = "", above: tuple[str, ...] = (), size: int = 1
):
    stops = Stops(limits, line, suffix, above)
    data, shown = raw.encode(), ""
    for at in range(0, len(data), size):
        shown += stops.feed(data[at : at + size])
        if stops.reason:
            break
    shown += stops.finish()
    assert shown == stops.text
    return stops.text, stops.reason


CASES = [
    # name, limits, line, suffix, raw, text, reason
    ("one line", Limits(lines="line"), "x = ", "", "1\ny = 2\n", "1", "line"),
    (
        "blank lines before the first do not count",
        Limits(lines="line"),
        "",
        "",
        "\n\n  a\nb",
        "\n\n  a",
        "line",
    ),
    ("auto is one line", Limits(), "x = ", "", "1\ny = 2\n", "1", "line"),
    ("auto follows an opener", Limits(), "def f(", "", "a):\n    return a\nx", "a):\n    return a", "dedent"),
    (
        "auto keeps blank lines inside",
        Limits(),
        "if a",
        "",
        ":\n    b\n\n    c\nd",
        ":\n    b\n\n    c",
        "dedent",
    ),
    ("a closer belongs to its block", Limits(), "fn f() ", "", "{\n    a\n}\nb\n", "{\n    a\n}", "dedent"),
    ("block from a blank line", Limits(lines="block"), "    ", "", "a\n    b\nc", "a\n    b", "dedent"),
    ("n_indent", Limits(lines="free", indent=4), "    ", "", "a\n    b\n  c", "a\n    b", "dedent"),
    (
        "overlap ends the text",
        Limits(),
        "",
        "\n    return total\n",
        "\n    return total\nx",
        "\n    return total",
        "overlap",
    ),
    ("free knows no lines", Limits(lines="free"), "", "\na\n", "a\na\nb", "a\na\nb", None),
    ("stop string", Limits(lines="free", stop=("END", "N")), "", "", "abENDc", "abE", "word"),
    (
        "the stop string that is complete first wins",
        Limits(lines="free", stop=("zz", "b")),
        "",
        "",
        "abzz",
        "a",
        "word",
    ),
    ("stop at the start", Limits(lines="free", stop=("a",)), "", "", "abc", "", "word"),
    ("only blank lines", Limits(), "", "", "\n\n\n\n\n\n", "", "repeat"),
    ("characters beyond ASCII", Limits(lines="line"), "", "", "é你👨‍👩‍👧\nx", "é你👨‍👩‍👧", "line"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_ends(case: tuple, size: int) -> None:
    _, limits, line, suffix, raw, text, reason = case
    got = run(limits, raw, line=line, suffix=suffix, size=size)
    assert got == (text, reason)


def test_repetition_of_lines_above() -> None:
    above = ("a = 1", "b = 2", "c = 3", "d = 4")
    text, reason = run(Limits(lines="block"), "a = 1\nb = 2\nc = 3\nd = 4\n", above=above)
    assert reason == "repeat"
    assert text == "a = 1\nb = 2\nc = 3"


def test_repeated_line_ends() -> None:
    _, reason = run(Limits(lines="block"), "x\nx\nx\nx\nx\n")
    assert reason == "repeat"


@given(st.text(alphabet="ab\n \t}{:é", max_size=40), st.integers(1, 9))
def test_portions_do_not_matter(raw: str, size: int) -> None:
    limits = Limits(stop=("ba", "a\n"))
    assert run(limits, raw, line="  x", size=size) == run(limits, raw, line="  x", size=1)


@given(st.binary(max_size=40))
def test_any_bytes_become_text(data: bytes) -> None:
    stops = Stops(Limits(lines="free"), "", "", ())
    shown = "".join(stops.feed(bytes([b])) for b in data) + stops.finish()
    assert shown == data.decode("utf-8", "replace")


def test_released_text_is_never_taken_back() -> None:
    stops = Stops(Limits(lines="free", stop=("</end>",)), "", "", ())
    shown = [stops.feed(c.encode()) for c in "ab</en"]
    assert "".join(shown) == "ab"
    assert stops.feed(b"d>") == ""
    assert stops.reason == "word"
    assert stops.finish() == ""


def test_first_token_of_a_line_is_released_at_once() -> None:
    stops = Stops(Limits(lines="line"), "x = ", "\n", ())
    assert stops.feed(b"total") == "total"


@pytest.mark.parametrize(("line", "columns"), [("", 0), ("  x", 2), ("\tx", 4), (" \tx", 4), ("    ", 4)])
def test_indent(line: str, columns: int) -> None:
    assert indent_of(line) == columns


@pytest.mark.parametrize(
    ("line", "opens"),
    [
        ("if x:", True),
        ("fn a() {", True),
        ("call(", True),
        ("x = 1", False),
        ("while true do", True),
        ("", False),
    ],
)
def test_opens_block(line: str, opens: bool) -> None:
    assert opens_block(line) is opens
