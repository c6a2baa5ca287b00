"""The emitter: any chunking gives the same Completion, nothing shown is taken back, little is held."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.nouns import (
    Completion,
    CompletionRequest,
    Counters,
    Generation,
    Limits,
    Lines,
    Segment,
    StopReason,
)
from daemon.polish.emit import Emitter

PARTS = [
    *(
        "foo",
        "bar",
        "a",
        "=",
        " ",
        "  ",
        "    ",
        "\t",
        "\n",
        "\n\n",
        "(",
        ")",
        "()",
        "[",
        "]",
        "{",
        "}",
        ";",
        ",",
    ),
    *("'", '"', "`", "```", "\\", "end", "else:", "\r", "\r\n", "<", "<|fim_", "prefix|>", "<|fim_prefix|>"),
    *("x = compute(a)", "    x = compute(a)\n", "    return total_amount\n", "}\n", "    }\n", "</div>\n"),
    *("import os_path\n", "é", "😀", "\u00a0", "\x0c", "\x00"),
]
STOPS: tuple[StopReason, ...] = (
    *("eos", "limit", "time", "line", "dedent", "overlap", "closed", "repeat", "cancelled"),
)
LINES: tuple[Lines, ...] = ("auto", "line", "block", "free")

code = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)
documents = code.map(lambda text: text.replace("\r", ""))


def request(
    prefix: str = "", suffix: str = "", newline: str = "\n", lines: Lines = "auto"
) -> CompletionRequest:
    return CompletionRequest(
        id="7",
        client="test",
        door="test",
        prefix=prefix,
        suffix=suffix,
        newline=newline,
        limits=Limits(lines=lines),
    )


def polished(prefix: str, suffix: str, raw: str, stop: StopReason = "eos") -> Completion:
    return Emitter(request(prefix, suffix)).finish(Generation(text=raw, stop=stop))


@st.composite
def asked(draw: st.DrawFn) -> tuple[CompletionRequest, Generation, bool]:
    """A document and a text that often runs into it or repeats it."""
    prefix, suffix, raw = draw(documents), draw(documents), draw(code)
    if draw(st.booleans()):
        raw += suffix[: draw(st.integers(0, len(suffix)))] + draw(code)
    if draw(st.booleans()):
        raw += prefix[draw(st.integers(0, len(prefix))) :]
    if draw(st.booleans()):
        raw += raw
    asked_for = request(
        prefix, suffix, draw(st.sampled_from(("\n", "\r\n", "\r"))), draw(st.sampled_from(LINES))
    )
    return asked_for, Generation(text=raw, stop=draw(st.sampled_from(STOPS))), draw(st.booleans())


@given(asked(), st.lists(st.integers(1, 9), min_size=1, max_size=8))
@settings(max_examples=250, deadline=None)
def test_any_chunking_gives_the_whole_text(
    case: tuple[CompletionRequest, Generation, bool], sizes: list[int]
) -> None:
    asked_for, generation, replaces = case
    whole = Emitter(asked_for, replaces).finish(generation)
    for widths in (sizes, [1]):
        emitter, shown, at, turn = Emitter(asked_for, replaces), "", 0, 0
        while at < len(generation.text):
            size = widths[turn % len(widths)]
            shown += emitter.feed(generation.text[at : at + size])
            assert whole.text.startswith(shown)
            at, turn = at + size, turn + 1
        assert emitter.finish(generation) == whole
        assert shown + emitter.tail == whole.text


@given(asked())
@settings(max_examples=100, deadline=None)
def test_every_completion_can_be_shown(case: tuple[CompletionRequest, Generation, bool]) -> None:
    asked_for, generation, replaces = case
    done = Emitter(asked_for, replaces).finish(generation)
    start = len(asked_for.prefix)
    replaced = asked_for.suffix[: done.replace.end - start]
    assert done.replace.start == start
    assert "\n" not in replaced
    assert replaces or not replaced
    assert "\r" not in done.raw
    if asked_for.limits.lines != "free":
        assert not done.text or done.text.strip()


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_characters_are_polished(prefix: str, suffix: str, raw: str) -> None:
    plain = request(prefix.replace("\r", ""), suffix.replace("\r", ""))
    emitter = Emitter(plain)
    shown = "".join(map(emitter.feed, raw))
    done = emitter.finish(Generation(text=raw, stop="limit"))
    assert shown + emitter.tail == done.text


def test_ordinary_code_streams_word_by_word() -> None:
    emitter = Emitter(request("def f():\n    "))
    assert [emitter.feed(piece) for piece in ("return", " (total", " +", " other", ")")] == [
        "",  # a limit might still cut the word in the middle
        "return (",
        "total +",
        "",
        " other)",
    ]
    done = emitter.finish(Generation(text="return (total + other)", stop="line"))
    assert done.text == "return (total + other)"


def test_later_lines_stream_when_complete() -> None:
    emitter = Emitter(request("if a:", "\nprint(b)\n"))
    shown = [emitter.feed(piece) for piece in ("\n    b", " = 1", "\n    c = ", "2\n", "    d = 3\n")]
    assert shown == ["", "\n    b =", " 1", "\n    c = 2", "\n    d = 3"]


def test_a_repetition_is_held_until_it_differs() -> None:
    emitter = Emitter(request("self.alpha = alpha\n"))
    assert emitter.feed("self.") == ""
    assert emitter.feed("al") == ""
    assert emitter.feed("so =") == "self.also ="


def test_what_may_already_follow_the_cursor_is_held() -> None:
    emitter = Emitter(request("foo(", ")"))
    assert [emitter.feed(piece) for piece in ("a, ", "b", ")")] == ["a,", "", " b"]
    assert emitter.finish(Generation(text="a, b)", stop="eos")).text == "a, b"
    assert emitter.tail == ""


def test_free_text_is_released_at_once() -> None:
    emitter = Emitter(request("x = ", ")", lines="free"))
    assert [emitter.feed(piece) for piece in (" a", ")\n", " b <", "|fim", " c")] == [
        " a",
        ")\n",
        " b ",
        "",
        "<|fim c",
    ]


def test_without_replacing_the_text_ends_before_the_closer() -> None:
    generation = Generation(text="a, b): pass", stop="eos")
    assert Emitter(request("foo(", ")"), replaces=False).finish(generation).text == "a, b"


def test_the_completion_carries_what_the_engine_counted() -> None:
    generation = Generation(
        text="1", stop="word", stop_word=";", counters=Counters(prompt=9, reused=8, evaluated=1), note="n"
    )
    segments = (Segment(kind="prefix", source="a.py", tokens=9),)
    done = Emitter(request("x = ", "\n", "\r\n")).finish(generation, segments, "anchored")
    assert (done.id, done.stop, done.stop_word, done.note) == ("7", "word", ";", "n")
    assert (done.counters, done.segments, done.reason) == (generation.counters, segments, "anchored")


def test_an_engine_that_takes_text_back_does_not_change_what_was_shown() -> None:
    emitter = Emitter(request("x = "))
    shown = emitter.feed("one + two")
    done = emitter.finish(Generation(text="", stop="engine"))
    assert shown == "one +"
    assert done.text == shown + emitter.tail


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_the_files_line_ends_come_out(newline: str) -> None:
    done = Emitter(request("f(", "", newline)).finish(Generation(text="\n  a,\n  b)", stop="eos"))
    assert done.text == f"{newline}  a,{newline}  b)"
    assert done.raw == "\n  a,\n  b)"


def test_long_documents_cost_nothing() -> None:
    body = "".join(f"    value_{number} = compute({number})\n" for number in range(15_000))
    for prefix, suffix in ((body + "    x = ", ")\n" + body), ("y" * 500_000, "z" * 500_000)):
        asked_for = request(prefix, suffix)
        best = 1.0
        for _ in range(5):
            started = time.perf_counter()
            emitter = Emitter(asked_for)
            for piece in ["foo", "(", "alpha", ",", " beta", ")", " +", " gamma", "[", "0", "]", " * 2"]:
                emitter.feed(piece)
            emitter.finish(Generation(text="foo(alpha, beta) + gamma[0] * 2", stop="line"))
            best = min(best, time.perf_counter() - started)
        assert best < 0.01, f"{best * 1000:.2f} ms"
