"""Exactness: the typed edits are edits of the file, and only near ties explain a difference."""

from pathlib import Path

import pytest

from daemon.bench import exactness, ours, traces
from daemon.bench.exactness import Comparison
from daemon.errors import BadRequest

SOURCE = "import csv\n\n\ndef total(rows):\n    result = sum(row.price for row in rows)\n    return result\n"


def test_edits_retype_lines_of_the_file() -> None:
    trace = exactness.typed_again("small.py", SOURCE, seed=5, count=200)
    assert len(trace.edits) == 200
    text = trace.start
    kinds = set()
    for edit in trace.edits:
        _, deleted, inserted = edit.patches[0]
        kinds.add((deleted > 0, len(inserted) > 1, len(inserted) == 1))
        text = traces.apply(text, edit.patches)
    assert text == trace.end
    assert kinds == {(True, False, False), (False, False, True), (False, True, False)}
    typed = [key.typed for key in traces.replay(trace)]
    assert 0.7 < sum(typed) / len(typed) < 1.0  # bursts, with jumps between them


def test_the_seed_decides() -> None:
    made = [exactness.typed_again("small.py", SOURCE, seed, 50).edits for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_a_file_of_short_lines_is_refused() -> None:
    with pytest.raises(BadRequest, match="tiny"):
        exactness.typed_again("tiny.py", "x = 1\n", 1, 10)


def test_the_default_is_a_module_of_the_standard_library(tmp_path: Path) -> None:
    name, text = exactness.python_source(None)
    assert name == "argparse.py"
    assert "class ArgumentParser" in text
    with pytest.raises(BadRequest, match="--python"):
        exactness.python_source(tmp_path / "none.py")


def answer(text: str, margins: tuple[float, ...], tokens: tuple[int, ...]) -> ours.Answer:
    return ours.Answer(
        text, 1, 1, prompt=10, evaluated=2, stop="limit", raw=text, margins=margins, tokens=tokens
    )


def pair(left: str, right: str, margins: float, tokens: tuple[int, ...] = (1, 9)) -> Comparison:
    return Comparison(
        "s", 1, answer(left, (3.0, margins), (1, 2)), answer(right, (3.1, margins + 0.01), tokens)
    )


def test_equal_texts_are_equal() -> None:
    found = [pair("ab", "ab", 1.0, (1, 2))]
    figures = exactness.figures_of(found)
    assert (figures["compared"], figures["unequal"], figures["unexplained"]) == (1, 0, 0)
    assert len(exactness.listed(found, figures)) == 1


def test_a_near_tie_explains_a_difference_and_a_clear_choice_does_not() -> None:
    found = [pair("ab", "ac", 0.05), pair("ab", "ac", 2.0), pair("ab", "ab", 1.0, (1, 2))]
    figures = exactness.figures_of(found)
    assert (figures["unequal"], figures["unexplained"]) == (2, 1)
    assert figures["noise_logits"] == exactness.UNMEASURED_NOISE
    tables = exactness.listed(found, figures)
    assert list(tables[1].columns[-1].cells) == ["tie", "UNEXPLAINED"]
    assert found[0].place == 1
    assert found[0].split == 1


def test_what_cannot_be_located_is_not_explained() -> None:
    unknown = Comparison("s", 1, answer("ab", (0.1, 0.1), ()), answer("ac", (0.1, 0.1), ()))
    assert unknown.split is None
    assert exactness.verdict(unknown, 0.5) == exactness.UNEXPLAINED


def test_noise_is_measured_on_tokens_that_agree_and_never_large() -> None:
    assert exactness.noise_of([0.1] * exactness.ENOUGH) == 0.1
    assert exactness.noise_of([0.1, 9.0] * exactness.ENOUGH) == exactness.UNMEASURED_NOISE
    assert exactness.noise_of([0.001]) == exactness.UNMEASURED_NOISE
    assert exactness.shifts([pair("ab", "ac", 0.05)]) == pytest.approx([0.1])
