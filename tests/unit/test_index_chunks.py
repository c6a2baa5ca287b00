"""Files in stretches for full-text search."""

import random

import pytest

from indexer.chunks import FEWEST, LARGEST, MOST, chunks
from indexer.records import Chunk, ParsedFile, Span, Symbol


def parsed(*starts: tuple[int, int]) -> ParsedFile:
    """Symbols as (first line, parent)."""
    symbols = tuple(
        Symbol(
            kind="function",
            name="f",
            qualified="f",
            span=Span(start_byte=0, end_byte=0, start_line=line, end_line=line + 1),
            name_start=0,
            name_end=0,
            parent=parent,
        )
        for line, parent in starts
    )
    return ParsedFile(language="python", symbols=symbols)


def bounds(found: tuple[Chunk, ...]) -> list[tuple[int, int]]:
    return [(chunk.start_line, chunk.end_line) for chunk in found]


def test_small_file_is_one_chunk() -> None:
    assert chunks("a\nb\n", None) == (Chunk(start_line=0, end_line=2, text="a\nb\n"),)
    assert chunks("a\nb", None) == (Chunk(start_line=0, end_line=2, text="a\nb\n"),)


@pytest.mark.parametrize("text", ["", "\n", "\n\n  \n\t\r\n"])
def test_nothing_to_search_for(text: str) -> None:
    assert chunks(text, None) == ()


def test_without_symbols_splits_after_the_last_blank_line_that_fits() -> None:
    lines = ["x"] * 100
    lines[10] = lines[30] = lines[50] = ""
    assert bounds(chunks("\n".join(lines), None)) == [(0, 51), (51, 100)]


def test_without_any_split_every_60_lines() -> None:
    assert bounds(chunks("x\n" * 150, None)) == [(0, MOST), (MOST, 2 * MOST), (2 * MOST, 150)]


def test_splits_where_outer_symbols_start_before_inner_ones() -> None:
    found = chunks("x\n" * 120, parsed((0, -1), (25, -1), (40, -1), (55, 2), (70, 2)))
    assert bounds(found) == [(0, 40), (40, 70), (70, 120)]


def test_a_split_too_near_is_not_taken() -> None:
    assert bounds(chunks("x\n" * 70, parsed((5, -1), (15, -1)))) == [(0, MOST), (MOST, 70)]


def test_long_lines_are_skipped_and_wide_ones_make_short_chunks() -> None:
    text = "a\n" + "z" * LARGEST + "\nb\n" + ("y" * 999 + "\n") * 9
    found = chunks(text, None)
    assert bounds(found) == [(0, 1), (2, 7), (7, 11), (11, 12)]
    assert not any("z" in chunk.text for chunk in found)


def test_size_counts_bytes() -> None:
    assert max(len(chunk.text.encode()) for chunk in chunks(("ä" * 500 + "\n") * 40, None)) <= LARGEST
    assert chunks("ä" * LARGEST, None) == ()


def test_carriage_returns_and_other_separators_stay() -> None:
    text = "a\r\nb\x0cc\u2028d\r\n"
    assert "".join(chunk.text for chunk in chunks(text, None)) == text


@pytest.mark.parametrize("seed", range(20))
def test_every_line_once_within_bounds(seed: int) -> None:
    rng = random.Random(seed)
    lines = [
        rng.choice(["", "  ", "x", "é" * 30, "y" * rng.randrange(200)]) for _ in range(rng.randrange(600))
    ]
    lines += ["w" * (LARGEST + 5), "v" * (LARGEST - 1), "end"]
    rng.shuffle(lines)
    symbols = parsed(*((rng.randrange(len(lines)), rng.choice((-1, 0))) for _ in range(rng.randrange(40))))
    found = chunks("\n".join(lines) + "\n", rng.choice((symbols, None)))
    covered = set()
    for chunk in found:
        inside = range(chunk.start_line, chunk.end_line)
        assert chunk.text == "".join(f"{lines[i]}\n" for i in inside)
        assert 1 <= len(inside) <= MOST
        assert len(chunk.text.encode()) <= LARGEST
        assert covered.isdisjoint(inside)
        covered.update(inside)
    wanted = {i for i, line in enumerate(lines) if line.strip() and len(line) < LARGEST}
    assert wanted <= covered
    skipped = lines.index("w" * (LARGEST + 5))
    for chunk in found:
        if chunk.end_line - chunk.start_line < FEWEST and chunk.end_line not in (skipped, len(lines)):
            assert len(chunk.text.encode()) + len(lines[chunk.end_line].encode()) + 1 > LARGEST
