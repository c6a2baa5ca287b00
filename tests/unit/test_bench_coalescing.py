"""The schedule of `bench coalesce` has the shape it claims, and an answer that does not fit is found."""

from __future__ import annotations

import dataclasses
import random
from itertools import pairwise

import msgspec
import pytest

from daemon.bench import coalescing, stats
from daemon.bench.coalescing import GAPS_MS, Heard


def heard(prefix: str, name: str, run: str, raw: str, stop: str = "line", after: float = 9.0) -> Heard:
    return Heard(prefix, name, run, raw, raw, stop, after)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_gaps_have_the_measured_shape(seed: int) -> None:
    found = coalescing.gaps(seed, 4000)
    assert len(found) == 4000
    for share, gap in zip((0.1, 0.5, 0.9), GAPS_MS, strict=True):
        assert stats.percentile(found, share) * 1000 == pytest.approx(gap, rel=0.12)
    assert found == coalescing.gaps(seed, 4000)


def test_the_longest_gaps_part_the_bursts() -> None:
    found = coalescing.gaps(3, 4000)
    parting = sorted(found)[-len(coalescing._starts(random.Random(9), 4000)) :]
    lengths, length = [], 0
    for gap in found:
        if gap >= parting[0] and length:
            lengths.append(length)
            length = 0
        length += 1
    assert stats.percentile(lengths, 0.5) == pytest.approx(3, abs=1)
    assert stats.percentile(lengths, 0.9) == pytest.approx(18, rel=0.3)


def test_every_edit_types_one_character_at_a_fixed_place() -> None:
    schedule = coalescing.beats(None, 1, 60)
    assert [beat.at for beat in schedule] == sorted(beat.at for beat in schedule)
    typed = [schedule[0].prefix[-1:]]
    for before, beat in pairwise(schedule):
        assert beat.prefix[:-1] == before.prefix
        typed.append(beat.prefix[-1:])
    suffixes = {msgspec.json.decode(beat.body)["suffix"] for beat in schedule}
    assert len(suffixes) == 1
    assert "".join(typed) not in suffixes.pop()
    assert 0 < coalescing.moments(schedule) < 0.5


def test_an_answer_that_is_not_the_rest_of_its_run_is_found() -> None:
    run = heard("x = s", "1", "", "um(a)")
    good = heard("x = su", "2", "1", "m(a)")
    assert coalescing.misfits([run, good]) == 0
    assert coalescing.misfits([run, heard("x = su", "2", "1", "um(a)")]) == 1
    assert coalescing.misfits([run, heard("y = su", "2", "1", "m(a)")]) == 1
    assert coalescing.misfits([run, heard("x = sx", "2", "1", "", "superseded")]) == 0


def test_a_known_answer_that_goes_on_none_is_found() -> None:
    run = heard("x = s", "1", "", "um(a)")

    def known(prefix: str, raw: str) -> Heard:
        return dataclasses.replace(heard(prefix, "2", "", raw), known=True)

    assert coalescing.misfits([run, known("x = su", "m(a)")]) == 0
    assert coalescing.misfits([run, known("x = su", "m(")]) == 0
    assert coalescing.misfits([run, known("x = su", "n(a)")]) == 1
    assert coalescing.misfits([run, known("x = sy", "m(a)")]) == 1
    assert coalescing.misfits([known("x = su", "m(a)")]) == 1


def test_only_what_both_sides_answered_is_compared() -> None:
    alone = [heard("", "1", "", "", after=10), heard("", "2", "", "", "superseded"), heard("", "3", "", "")]
    shared = [heard("", "1", "", "", after=25), heard("", "2", "", ""), heard("", "3", "", "", "engine")]
    assert coalescing.later(alone, shared) == {"later_ms_p50": 15, "later_ms_p90": 15}
