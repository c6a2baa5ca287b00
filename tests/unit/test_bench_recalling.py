"""What the replay with recall counts, by its definitions."""

from __future__ import annotations

import pytest

from daemon.bench import ours, recalling, traces
from daemon.bench.recalling import Heard, Step


def heard(level: str, text: str, fresh: str, *, evaluated: int = 0, before: float = 0.1) -> Heard:
    mine = ours.Answer(text, 1, 3, evaluated=evaluated, stop="line", engine_ms=0.5, recall=level)
    run = ours.Answer(fresh, 5, 9, evaluated=9, stop="line") if level else None
    return Heard(Step(b"", b"", before, 0.1), mine, run)


def test_figures_follow_the_definitions() -> None:
    figures = recalling.figures_of(
        [
            heard("", "x", "x", evaluated=5, before=9.0),
            heard("typed", "x", "x"),
            heard("typed", "x", "y"),
            heard("exact", "", ""),
            heard("prefetched", "x", "x", before=1.0),
            heard("", "x", "y", evaluated=4),
            heard("", "x", "x", evaluated=5),
            heard("", "x", "x", evaluated=40, before=-3.0),
        ]
    )
    assert figures["model_free_share"] == 0.5
    assert (figures["agree_share"], figures["compared"]) == (0.75, 4)
    assert (figures["agree_typed"], figures["agree_exact"], figures["agree_prefetched"]) == (0.5, 1, 1)
    assert (figures["hits_typed"], figures["hits_exact"], figures["hits_prefetched"]) == (2, 1, 1)
    assert (figures["bursts"], figures["prefetch_ready_share"]) == (5, 0.8)
    assert (figures["model_free_p99_ms"], figures["known_blank_share"]) == (0.5, 0.25)
    assert figures["fresh_evaluated_mean"] == 9


def test_edits_of_one_second_are_spread_over_it() -> None:
    assert recalling.spread([0.0, 1.0, 1.0, 1.0, 1.0, 4.0]) == [0.0, 1.0, 1.25, 1.5, 1.75, 4.0]
    assert recalling.spread([0.0, 0.25, 1.0, 1.0]) == [0.0, 0.25, 1.0, 1.0]


def test_every_edit_knows_the_pauses_around_it() -> None:
    edits = tuple(traces.Edit(float(n // 2 * 9), ((n, 0, "x"),)) for n in range(4))
    found = recalling.steps(traces.Trace("t", "", "xxxx", edits), 0, 10)
    assert [step.before for step in found] == pytest.approx([4.0, 0.5, 8.5, 0.5])
    assert [step.after for step in found] == pytest.approx([0.5, 4.0, 0.5, 4.0])
