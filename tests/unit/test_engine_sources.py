"""Drafts without a model: the longest match in logical order, and how long a draft is worth being."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from daemon.engine.costs import RowCosts, undisturbed
from daemon.engine.sources import LONGEST, NGRAMS, Owed, Text, from_index, parts
from daemon.engine.worth import NO_DRAFT, Acceptance, Costs
from daemon.machine import FimIds
from indexer.ngrams import NgramReader, NgramWriter
from indexer.tokens import to_bytes

FIM = FimIds(pre=90, suf=91, mid=92)
CONTROL = np.arange(100) >= 90
PIECES = [bytes([65 + n % 26]) * (1 + n // 26) if n < 90 else b"" for n in range(100)]


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def found(text: Text, room: int = 8, must: bytes = b"") -> tuple[list[int], str, int] | None:
    match = text.search(room, must, Owed(PIECES, must))
    return (match.tokens.tolist(), match.source, match.length) if match else None


def test_a_prompt_is_taken_apart_in_either_order() -> None:
    context, suffix, logical = parts(ids(1, 99, 2, 90, 3, 4, 91, 5, 92, 6, 7), FIM)
    assert (context.tolist(), suffix.tolist(), logical.tolist()) == ([1, 99, 2], [5], [3, 4, 6, 7])
    context, suffix, logical = parts(ids(1, 91, 5, 90, 3, 4, 92, 6), FIM)
    assert (context.tolist(), suffix.tolist(), logical.tolist()) == ([1], [5], [3, 4, 6])


@pytest.mark.parametrize("fim", [FIM, FimIds()])
def test_a_prompt_without_markers_is_logical_text(fim: FimIds) -> None:
    context, suffix, logical = parts(ids(1, 2, 90, 3), fim)
    assert (len(context), len(suffix), logical.tolist()) == (0, 0, [1, 2, 90, 3])


def test_the_middle_continues_the_prefix_not_the_suffix() -> None:
    _, suffix, logical = parts(ids(90, 1, 2, 3, 4, 5, 1, 2, 91, 8, 9, 92, 3), FIM)
    match = found(Text([("suffix", suffix), ("own", logical)], CONTROL), 2)
    assert match == ([4, 5], "own", 3)


def test_the_longest_match_wins_wherever_it_stands() -> None:
    text = Text([("context", ids(1, 2, 3, 4, 50, 51)), ("own", ids(9, 3, 4, 60, 1, 2, 3, 4))], CONTROL)
    assert found(text) == ([50, 51], "context", 4)


def test_equal_matches_the_most_frequent_then_the_latest() -> None:
    assert found(Text([("own", ids(1, 2, 7, 1, 2, 8, 1, 2))], CONTROL), 1) == ([8], "own", 2)
    often = Text([("own", ids(1, 2, 7, 0, 1, 2, 7, 5, 1, 2, 8, 1, 2))], CONTROL)
    assert found(often, 2) == ([7, 5], "own", 2)
    nearer = Text([("context", ids(1, 2, 7)), ("own", ids(1, 2, 8, 0, 1, 2))], CONTROL)
    assert found(nearer, 1) == ([8], "own", 2)


def test_nothing_matches_across_a_border_or_a_control_token() -> None:
    assert found(Text([("context", ids(5, 1)), ("suffix", ids(2, 7)), ("own", ids(1, 2))], CONTROL)) is None
    assert found(Text([("context", ids(1, 2, 99, 7)), ("own", ids(1, 2))], CONTROL)) is None
    cut = Text([("context", ids(1, 2, 7, 99, 8)), ("own", ids(1, 2))], CONTROL)
    assert found(cut) == ([7], "context", 2)
    for short in (ids(), ids(1)):
        assert found(Text([("context", ids(1, 1, 1)), ("own", short)], CONTROL)) is None


def test_text_that_repeats_itself_goes_on() -> None:
    text = Text([("own", ids(1, 2, 3, 1, 2, 3, 1, 2))], CONTROL)
    assert found(text) == ([3, 1, 2, 3, 1, 2, 3, 1], "own", 5)


def test_what_is_generated_is_searched_and_searched_for() -> None:
    text = Text([("context", ids(4, 5, 6, 7)), ("own", ids(1, 2))], CONTROL)
    assert found(text) is None
    text.extend([4, 5])
    assert found(text) == ([6, 7], "context", 2)
    text.extend(list(range(20, 60)) * 20)
    assert text.generated == 802
    assert found(text, 3) == ([20, 21, 22], "own", LONGEST)
    assert text.before.tolist() == [1, 2]


def test_other_text_alone_can_be_searched() -> None:
    own = ids(1, 2, 8, 1, 2)
    assert found(Text([("own", own)], CONTROL, within=False)) is None
    assert found(Text([("context", ids(0, 1, 2, 7)), ("own", own)], CONTROL, within=False)) == (
        [7],
        "context",
        2,
    )


def test_a_half_typed_word_chooses_the_place() -> None:
    """PIECES[n] is a letter: 7 is H, 8 is I."""
    text = Text([("own", ids(1, 2, 8, 9, 3, 1, 2, 7, 5, 1, 2))], CONTROL)
    assert found(text, 2, b"I") == ([8, 9], "own", 2)
    assert found(text, 2, b"Z") is None
    assert found(text, 2, b"IJ") == ([8, 9], "own", 2)


def test_what_is_owed_shrinks_as_it_is_written() -> None:
    rule = Owed(PIECES, b"HI")
    assert rule.after([]) == b"HI"
    assert rule.after([7]) == b"I"
    assert rule.after([7, 8]) == b""
    assert rule.after([]) == b""


def slow(texts: list[list[int]], own: list[int]) -> tuple[int, set[int]]:
    """(longest match, next tokens of its places) by looking at everything."""
    best: int = 0
    follow: set[int] = set()
    for text in texts:
        for at in range(2, len(text)):
            length = 0
            while length < min(LONGEST, at, len(own)) and text[at - 1 - length] == own[-1 - length]:
                length += 1
            if length >= 2 and length >= best:
                follow = {text[at]} | (follow if length == best else set())
                best = length
    return best, follow


def test_searching_equals_looking_at_everything() -> None:
    rng = random.Random(5)
    for _ in range(400):
        texts = [[rng.randrange(4) for _ in range(rng.randrange(30))] for _ in range(3)]
        text = Text([(str(n), ids(*t)) for n, t in enumerate(texts)], CONTROL)
        length, follow = slow(texts, texts[-1])
        match = found(text, 3)
        assert (match[2] if match else 0) == length
        assert match is None or match[0][0] in follow


def test_the_index_answers_like_a_text(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path)
    writer.add_file("a", to_bytes([1, 2, 3, 4, 5, 6]))
    writer.commit()
    reader = NgramReader(tmp_path)
    text = Text([("own", ids(9, 2, 3))], CONTROL)
    match = from_index(reader, text, 2, b"", Owed(PIECES, b""))
    assert match is not None
    assert (match.tokens.tolist(), match.source, match.length) == ([4, 5], NGRAMS, 2)
    assert from_index(reader, text, 2, b"Z", Owed(PIECES, b"Z")) is None


def test_the_best_length_follows_acceptance_and_costs() -> None:
    costs = Costs(RowCosts(((1, 10.0), (2, 12.0), (4, 15.0), (5, 19.0), (8, 30.0)), 16))
    assert costs.of(1) == 1.0
    assert costs.of(3) == pytest.approx(1.35)
    assert costs.of(12) > costs.of(8)
    assert costs.best([0.05] * 8) == NO_DRAFT
    lengths = [costs.best([rate / 20] * 15).length for rate in range(21)]
    assert lengths == sorted(lengths)
    assert costs.best([0.9] * 2).length == 2
    gains = [costs.best([0.9] * k).gain for k in range(1, 8)]
    assert all(a <= b for a, b in pairwise(gains))
    assert costs.best([0.8] * 8, step=2.0) == NO_DRAFT
    assert costs.best([0.9, 0.9, 0.0, 0.9]).length == 2
    assert costs.best([0.3, 0.95, 0.95, 0.95]).length == 3


def test_rows_of_others_are_shared_costs() -> None:
    flat = Costs(RowCosts(((1, 10.0), (16, 10.0)), 16))
    assert flat.best([0.5] * 4).length == flat.best([0.5] * 4, others=7).length == 4
    steep = Costs(RowCosts(((1, 10.0), (16, 160.0)), 16))
    assert steep.best([0.9] * 8, others=7) == NO_DRAFT


def test_acceptance_forgets_what_was_assumed() -> None:
    known = Acceptance(0.9)
    for _ in range(500):
        known.see(False)
    assert known.rate < 0.05
    for _ in range(500):
        known.see(True)
    assert known.rate > 0.9


def test_what_was_disturbed_never_costs_more_than_more_rows() -> None:
    assert undisturbed([(1, 9.0), (2, 3.0), (4, 5.0), (8, 4.0)]) == ((1, 3.0), (2, 3.0), (4, 4.0), (8, 4.0))
