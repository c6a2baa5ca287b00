"""Positions against an oracle made with str.encode, and the awkward documents of the field faults."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.documents.positions import (
    BOM,
    Encoding,
    LineIndex,
    decode,
    denormalise,
    dominant_newline,
    joined,
    normalise,
    pair,
    points,
    sound,
    split,
    split_at,
)

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
ALPHABET = [
    "a",
    "b",
    " ",
    "\t",
    "é",
    "ß",
    "你",
    "好",
    "😀",
    "👩‍👧",
    "\u2028",
    "\x0b",
    "\x00",
    "\ufeff",
    "\n",
    "\r\n",
    "\r",
]


def units(text: str, encoding: str) -> int:
    codec, width = CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // width


def oracle_lines(text: str) -> list[tuple[int, int]]:
    """(start, end without line end) of each line, found one character at a time."""
    lines, start, at = [], 0, 0
    while at < len(text):
        size = 2 if text[at : at + 2] == "\r\n" else 1 if text[at] in "\r\n" else 0
        if size:
            lines.append((start, at))
            start = at + size
        at += size or 1
    return [*lines, (start, len(text))]


def oracle_offset(text: str, line: int, character: int, encoding: str) -> tuple[int, bool]:
    lines = oracle_lines(text)
    if not 0 <= line < len(lines):
        return (0, True) if line < 0 else (len(text), True)
    start, end = lines[line]
    best = max(
        (at for at in range(start, end + 1) if units(text[start:at], encoding) <= character), default=start
    )
    return best, units(text[start:best], encoding) != character


def lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def random_document(source: random.Random) -> str:
    size = source.choice((0, 1, 5, 30, 300))
    return "".join(source.choice(ALPHABET) for _ in range(size))


def test_every_position_agrees_with_the_oracle() -> None:
    source = random.Random(7)
    for _ in range(150):
        text = random_document(source)
        index = LineIndex(text)
        assert index.starts == [start for start, _ in oracle_lines(text)]
        for _ in range(6):
            line, character = source.randint(-1, len(index.starts)), source.randint(-1, 20)
            for encoding in ENCODINGS:
                assert index.offset(line, character, encoding) == oracle_offset(
                    text, line, character, encoding
                )


def test_offsets_and_positions_are_inverse() -> None:
    source = random.Random(8)
    for _ in range(100):
        text = random_document(source)
        index = LineIndex(text)
        for encoding in ENCODINGS:
            offset = source.randint(0, len(text))
            line, character = index.position(offset, encoding)
            inside = offset - 1 if text[offset - 1 : offset + 1] == "\r\n" and offset else offset
            assert index.offset(line, character, encoding) == (inside, False)


def test_random_edits_keep_both_sides_of_every_cursor() -> None:
    source = random.Random(9)
    text = random_document(source)
    for _ in range(300):
        at = source.randint(0, len(text))
        text = (
            text[:at] + source.choice(ALPHABET) * source.randint(0, 3) + text[at + source.randint(0, 4) :]
        )[-400:]
        cursor = source.randint(0, len(text))
        line, character = LineIndex(text).position(cursor, "utf-16")
        parts = split(text, line, character)
        assert parts == split_at(text, cursor)
        assert parts.prefix + parts.suffix == lf(text.removeprefix(BOM))


@given(st.text(max_size=60), st.integers(-3, 70), st.integers(-3, 70), st.sampled_from(ENCODINGS))
@settings(max_examples=60, deadline=None)
def test_any_text_and_any_position_give_a_split(
    text: str, line: int, character: int, encoding: Encoding
) -> None:
    parts = split(text, line, character, encoding)
    whole = parts.prefix + parts.suffix
    assert "\r" not in whole
    whole.encode("utf-8")
    assert whole == normalise(text)[0]
    assert parts.newline == normalise(text)[1]


@given(st.text(alphabet="ab\r\n\ufeff\ud83d😀", max_size=30), st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_a_pair_cut_anywhere_is_the_same_document(text: str, cut: int) -> None:
    assert pair(text[:cut], text[cut:]) == split_at(text, min(cut, len(text)))


@given(st.text(alphabet="ab你😀", max_size=20).map(lambda t: t.replace("你", "\n")))
@settings(max_examples=50, deadline=None)
def test_line_ends_come_back(text: str) -> None:
    for newline in ("\n", "\r\n", "\r"):
        assert normalise(denormalise(text, newline))[0] == text


def test_twins_with_other_line_ends_split_alike() -> None:
    text = "def f():\n    s = '你好😀'\n    return s\n"
    for newline in ("\r\n", "\r"):
        twin = split(text.replace("\n", newline), 1, 9)
        plain = split(text, 1, 9)
        assert (twin.prefix, twin.suffix) == (plain.prefix, plain.suffix)
        assert twin.newline == newline


def test_inside_a_character_is_before_it() -> None:
    assert split("a😀b", 0, 2).prefix == "a"
    assert split("a😀b", 0, 2).clamped
    assert split("你b", 0, 2, "utf-8").prefix == ""
    assert split("你b", 0, 3, "utf-8").prefix == "你"


@pytest.mark.parametrize(
    ("line", "character", "prefix"), [(0, 99, "ab"), (9, 0, "ab\ncd"), (-1, 0, ""), (1, -1, "ab\n")]
)
def test_positions_outside_are_clamped(line: int, character: int, prefix: str) -> None:
    parts = split("ab\ncd", line, character)
    assert parts.prefix == prefix
    assert parts.clamped


def test_between_cr_and_lf_is_before_the_cr() -> None:
    for parts in (split_at("a\r\nb", 2), pair("a\r", "\nb")):
        assert (parts.prefix, parts.suffix, parts.newline) == ("a", "\nb", "\r\n")


@pytest.mark.parametrize("character", [0, 1])
def test_a_mark_is_stripped_and_remembered(character: int) -> None:
    parts = split(BOM + "import os\n", 0, character)
    assert (parts.prefix, parts.suffix, parts.bom) == ("", "import os\n", True)


def test_lone_surrogates_become_replacement_characters() -> None:
    parts = split("a\ud83db\udc00", 0, 2)
    assert (parts.prefix, parts.suffix) == ("a\ufffd", "b\ufffd")


@pytest.mark.parametrize(
    ("text", "newline"),
    [
        ("", "\n"),
        ("a", "\n"),
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\rb\r", "\r"),
        ("a\nb\r\n", "\n"),
        ("a\r\nb\r", "\r\n"),
    ],
)
def test_the_dominant_line_end(text: str, newline: str) -> None:
    assert dominant_newline(text) == newline


def test_empty_suffix_only_and_nul() -> None:
    assert split("", 0, 0).prefix == split("", 0, 0).suffix == ""
    assert split("print(1)", 0, 0).suffix == "print(1)"
    assert split("a\x00b", 0, 2).prefix == "a\x00"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\r\n", "plain\r\n"),
        (b"\xef\xbb\xbfmarked", "marked"),
        ("\ufeffé😀".encode("utf-16-le"), "é😀"),
        ("\ufeffé😀".encode("utf-16-be"), "é😀"),
        ("\ufeffé😀".encode("utf-32-le"), "é😀"),
        (b"caf\xe9 \xff", "caf\ufffd \ufffd"),
        (b"\xff\xfea\x00b", "a\ufffd"),
        (b"\x00\x80", "\x00\ufffd"),
        (b"", ""),
    ],
)
def test_decoding_never_fails(raw: bytes, text: str) -> None:
    assert decode(raw) == text


def test_a_huge_line_is_split_quickly() -> None:
    for text in ("x" * 500_000, "é😀x" * 170_000, "line\r\n" * 80_000):
        started = time.perf_counter()
        split(text, 0, 200_000)
        assert time.perf_counter() - started < 0.5
    index = LineIndex("é😀x" * 170_000)
    index.offset(0, 0)
    started = time.perf_counter()
    for at in range(0, 500_000, 5_000):
        assert index.offset(*index.position(at)) == (at, False)
    assert time.perf_counter() - started < 0.5


def test_halves_of_a_character_are_joined_and_lone_ones_replaced() -> None:
    assert joined("a\ud83d\ude00b\ude00") == "a😀b\ude00"
    assert sound("a\ud83d") == "a\ufffd"
    text = "a😀"
    assert sound(text) is text


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_code_points_within_units(encoding: Encoding) -> None:
    text = "aé你😀\r\nz"
    for at in range(len(text) + 1):
        assert points(text, units(text[:at], encoding), encoding) == at
    assert points("😀", 1, encoding) == (encoding == "utf-32")
    assert points(text, 99, encoding) == len(text)
