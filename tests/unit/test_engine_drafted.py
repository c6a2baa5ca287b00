"""Drafts in the ticks of a real context: the same answer in fewer steps, whatever was drafted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.ticking import FREE, Scripted, Ticking, ids, ticking

from daemon.nouns import Limits, Sampling

__all__ = ["ticking"]

ENDLESS = Limits(lines="free", tokens=4000)


def test_a_drafted_answer_is_the_undrafted_one(ticking: Callable[..., Ticking]) -> None:
    plain = ticking().ask(ids(60))
    script = Scripted()
    made = ticking(drafter=script)
    script.answers["1"] = np.frombuffer(plain.tokens, np.int32).tolist()
    answer = made.ask(ids(60))
    assert (answer.tokens, answer.text) == (plain.tokens, plain.text)
    counters = answer.counters
    assert counters.by_source == {"script": (counters.drafted, counters.accepted)}
    assert counters.drafted == counters.accepted == 7
    assert counters.steps == 4 + 2
    assert script.learnt == [(4, 4), (3, 3)]
    assert not script.running
    assert made.loop.report(0).drafts == {"script": (7, 7)}


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("wrong_at", [1, 2, 3, 4, 6, 7, 8])
def test_a_wrong_draft_costs_nothing_but_rows(
    ticking: Callable[..., Ticking], wrong_at: int, temperature: float
) -> None:
    sampling = Sampling(temperature=temperature, seed=4)
    plain = ticking().ask(ids(60), sampling=sampling)
    script = Scripted(wrong_at)
    made = ticking(drafter=script)
    script.answers["1"] = np.frombuffer(plain.tokens, np.int32).tolist()
    answer = made.ask(ids(60), sampling=sampling)
    assert (answer.tokens, answer.text, answer.stop) == (plain.tokens, plain.text, plain.stop)
    assert answer.counters.accepted < answer.counters.drafted
    again = made.ask(ids(60))
    assert again.tokens == ticking().ask(ids(60)).tokens


def test_at_a_fixed_width_every_step_has_the_same_shape(ticking: Callable[..., Ticking]) -> None:
    script = Scripted(wrong_at=3)
    made, bare = ticking(drafter=script), ticking()
    undrafted = bare.ask(ids(60), width=5)
    script.answers["1"] = np.frombuffer(undrafted.tokens, np.int32).tolist()
    drafted = made.ask(ids(60), width=5)
    assert drafted.tokens == undrafted.tokens
    assert drafted.counters.steps < undrafted.counters.steps
    for loop in (made, bare):
        assert {(len(p.tokens), p.outputs) for (p,) in loop.batches[4:]} == {(5, 5)}


def test_drafts_stop_at_the_limit_and_at_the_window(ticking: Callable[..., Ticking]) -> None:
    for tokens in range(1, 8):
        limits = Limits(lines="free", tokens=tokens)
        plain = ticking().ask(ids(60), limits=limits)
        script = Scripted()
        made = ticking(drafter=script)
        script.answers["1"] = [*np.frombuffer(plain.tokens, np.int32).tolist(), 1, 2, 3, 4, 5]
        answer = made.ask(ids(60), limits=limits)
        assert (answer.tokens, answer.stop) == (plain.tokens, plain.stop)
        assert answer.counters.drafted <= max(0, tokens - 1)
    plain = ticking(cells=256).ask(ids(240), limits=ENDLESS)
    script = Scripted()
    made = ticking(cells=256, drafter=script)
    script.answers["1"] = [*np.frombuffer(plain.tokens, np.int32).tolist(), 1, 2, 3, 4, 5]
    answer = made.ask(ids(240), limits=ENDLESS)
    assert (answer.tokens, answer.stop) == (plain.tokens, plain.stop)


def test_a_stop_inside_an_accepted_draft_cuts_there(ticking: Callable[..., Ticking]) -> None:
    whole = ticking().ask(ids(60), limits=FREE)
    for at in range(len(whole.text) - 1):
        stop = whole.text[at : at + 2]
        limits = Limits(lines="free", tokens=10, stop=(stop,))
        plain = ticking().ask(ids(60), limits=limits)
        script = Scripted()
        made = ticking(drafter=script)
        script.answers["1"] = np.frombuffer(whole.tokens, np.int32).tolist()
        answer = made.ask(ids(60), limits=limits)
        assert (answer.text, answer.stop, answer.stop_word) == (plain.text, "word", stop)
        assert answer.tokens == plain.tokens
        assert answer.counters.accepted < len(answer.tokens) // 4
        assert made.text.get("1", "") == answer.text
