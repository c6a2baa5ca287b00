"""Which source drafts how much, judged by what is really generated."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.driven import CHEAP, DEAR, FIM, KNOWN, LAPTOP, PIECES, costs, drive, ids

from daemon.engine.drafts import Drafts
from daemon.engine.frames import Submit
from daemon.nouns import Sampling
from indexer.ngrams import NgramWriter
from indexer.tokens import to_bytes


def test_known_text_takes_few_steps() -> None:
    drafts = Drafts(PIECES, FIM, CHEAP)
    done = drive(drafts, [90, *KNOWN, 91, 50, 92, 3, 4, 5], KNOWN[6:36])
    assert done.steps <= 5
    assert done.accepted["own"] == done.drafted > 20
    own = next(source for source in drafts.report() if source.name == "own")
    assert own.length > 0
    assert "times as fast" in own.why


@pytest.mark.parametrize(("source", "prompt"), [
    ("suffix", [90, 1, 91, *KNOWN, 92, 3, 4]),
    ("context", [*KNOWN, 90, 1, 91, 50, 92, 3, 4]),
])  # fmt: skip
def test_every_part_of_the_prompt_is_a_source(source: str, prompt: list[int]) -> None:
    drafts = Drafts(PIECES, FIM, CHEAP)
    done = drive(drafts, prompt, KNOWN[5:25])
    assert done.steps <= 4
    assert done.accepted[source] > 0
    alone = Drafts(PIECES, FIM, CHEAP, only=frozenset({"own"}))
    assert drive(alone, prompt, KNOWN[5:25])[:2] == (20, 0)


def test_what_was_answered_before_is_a_source() -> None:
    drafts = Drafts(PIECES, FIM, CHEAP)
    prompt = [90, 60, 61, 91, 50, 92, 62, 63]
    assert drive(drafts, prompt, KNOWN)[:2] == (40, 0)
    again = drive(drafts, [90, 70, 91, 50, 92, 62, 63], KNOWN, "again")
    assert again.steps <= 6
    assert again.accepted["earlier"] > 30


def test_the_index_is_a_source(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path, vocabulary="v")
    writer.add_file("a", to_bytes(KNOWN))
    writer.commit()
    prompt = [90, 60, 91, 50, 92, 2, 3, 4]
    here = str(tmp_path)
    for vocabulary, fewest in (("v", 2), ("w", 20)):
        drafts = Drafts(PIECES, FIM, CHEAP, vocabulary=vocabulary)
        assert drive(drafts, prompt, KNOWN[5:25], ngrams=here)[0] == fewest


def test_nothing_is_drafted_where_rows_are_dear_and_all_of_it_when_the_width_is_fixed() -> None:
    prompt = [90, *KNOWN, 91, 50, 92, 3, 4, 5]
    drafts = Drafts(PIECES, FIM, DEAR)
    assert drive(drafts, prompt, KNOWN[6:36])[:2] == (30, 0)
    own = next(source for source in drafts.report() if source.name == "own")
    assert (own.length, own.steps) == (0, 0)
    assert own.why.startswith("off: verifying costs more")
    assert own.acceptance > 0.5
    assert drive(Drafts(PIECES, FIM, DEAR), prompt, KNOWN[6:36], width=8)[0] <= 5


def test_a_source_that_is_never_right_is_left_and_taken_up_again() -> None:
    """Random text over four ids matches everywhere and predicts nothing; a text that repeats does."""
    drafts = Drafts(PIECES, FIM, costs((1, 10.0), (2, 15.0), (8, 40.0)))
    rng = random.Random(3)
    prompt = [90, *(rng.randrange(4) for _ in range(300)), 91, 50, 92]
    for n in range(8):
        drive(drafts, prompt, [rng.randrange(4) for _ in range(40)], f"r{n}")
    assert drive(drafts, prompt, [rng.randrange(4) for _ in range(40)], "late").drafted <= 6
    for n in range(12):
        repeated = [90, *KNOWN, 91, 50, 92, 3 + n, 4 + n]
        drive(drafts, repeated, KNOWN[n + 5 : n + 12], f"k{n}")
    assert drive(drafts, [90, *KNOWN, 91, 50, 92, 3, 4], KNOWN[5:35], "end")[0] <= 16


def test_half_typed_words_are_completed_from_what_is_known() -> None:
    drafts = Drafts(PIECES, FIM, CHEAP)
    prompt = [90, 1, 2, 7, 8, 9, 10, 3, 1, 2, 20, 21, 22, 91, 50, 92, 1, 2]
    job = Submit(id="r", tokens=to_bytes(prompt), must=b"H")
    drafts.begin(job)
    assert drafts.propose("r", ids(*prompt), [], 3).tokens.tolist()[:3] == [7, 8, 9]


def test_sampled_text_has_an_acceptance_of_its_own() -> None:
    drafts = Drafts(PIECES, FIM, LAPTOP)
    prompt = [90, *KNOWN, 91, 50, 92, 3, 4]
    for n in range(30):
        drive(drafts, prompt, [5, 70 + n % 9, 80], f"s{n}", sampling=Sampling(temperature=1.0))
    assert drive(drafts, prompt, KNOWN[5:25], "greedy")[0] <= 8


def test_a_draft_is_chosen_for_what_comes_before_the_end_of_the_text() -> None:
    """A second row is dear, further ones are not: a draft pays unless its first token ends the text."""
    prompt = [90, *KNOWN, 91, 50, 92, 3, 4]
    for end, drafted in ((99, KNOWN[5:13]), (KNOWN[8], KNOWN[5:9]), (KNOWN[5], [])):
        drafts = Drafts(PIECES, FIM, costs((1, 10.0), (2, 22.0), (16, 23.0)))
        drive(drafts, prompt, KNOWN[5:35], "before")
        drafts.begin(Submit(id="r", tokens=to_bytes(prompt)), lambda end=end: end.__eq__)
        assert drafts.propose("r", ids(*prompt), [], 8).tokens.tolist() == drafted


def test_rows_of_less_urgent_answers_are_no_rows_to_share() -> None:
    """A second row is dear, further ones are not: a draft pays beside an answer that has a row anyway."""
    prompt = [90, *KNOWN, 91, 50, 92, 3, 4]
    for other, drafted in (("long", False), ("keystroke", True)):
        drafts = Drafts(PIECES, FIM, costs((1, 10.0), (2, 22.0), (3, 23.0), (16, 230.0)))
        for run, lane in (("other", other), ("key", "keystroke")):
            drafts.begin(Submit(id=run, tokens=to_bytes(prompt), lane=lane))  # type: ignore[arg-type]
        drafts.propose("other", ids(*prompt), [1], 3)
        assert bool(len(drafts.propose("key", ids(*prompt), [], 3).tokens)) == drafted
