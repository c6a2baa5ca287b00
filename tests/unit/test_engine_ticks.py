"""Many requests in the same ticks: rows are shared, prefixes forked, answers those of a request alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
from support.ticking import Scripted, Ticking, check, ids, ticking

from daemon.engine.binding import Ids, Part
from daemon.engine.lanes import AGED_S
from daemon.nouns import Limits, Sampling

__all__ = ["ticking"]

ENDLESS = Limits(lines="free", tokens=4000)


def talkative(alone: Ticking, n: int, tokens: int, count: int = 1) -> list[Ids]:
    """Prompts whose answers are as long as they may be."""
    limits = Limits(lines="free", tokens=tokens)
    found = (ids(n, seed) for seed in range(200))
    return list(islice((p for p in found if alone.ask(p, limits=limits).stop == "limit"), count))


def test_requests_share_ticks_and_are_answered_as_if_alone(ticking: Callable[..., Ticking]) -> None:
    together, alone = ticking(cells=2048), ticking()
    limits = Limits(lines="free", tokens=40)
    prompts = talkative(alone, 40, 40, 8)
    jobs = [together.submit(p, client=str(n), limits=limits) for n, p in enumerate(prompts)]
    for job, prompt, answer in zip(jobs, prompts, together.finish(*jobs), strict=True):
        assert answer.tokens == alone.ask(prompt, limits=limits).tokens
        assert answer.text == together.text.get(job, "")
    assert max(len(parts) for parts in together.batches) == 8
    assert len(together.batches) < 8 * 43 / 4


def test_an_answer_is_told_once_per_decode_and_at_its_end(ticking: Callable[..., Ticking]) -> None:
    made = ticking()
    prompt = talkative(made, 40, 40)[0]
    counts = []
    for _ in range(2):
        before, decodes = made.messages, len(made.batches)
        job = made.submit(prompt, limits=Limits(lines="free", tokens=40))
        assert made.finish(job)[0].text == made.text[job]
        counts.append((made.messages - before, len(made.batches) - decodes))
    assert counts == [(1, 0), (1, 0)]  # it was answered before: all is known at once
    job = made.submit(prompt, limits=Limits(lines="free", tokens=60))
    before, decodes = made.messages, len(made.batches)
    made.finish(job)
    assert 1 <= made.messages - before <= len(made.batches) - decodes + 1


def test_the_same_question_asked_eight_times_is_evaluated_once(ticking: Callable[..., Ticking]) -> None:
    made = ticking(cells=1024)
    jobs = [made.submit(ids(300)) for _ in range(8)]
    answers = made.finish(*jobs)
    assert sum(answer.counters.evaluated for answer in answers) == 300
    assert len({answer.tokens for answer in answers}) == 1
    assert made.loop.report(0).cells_used <= 300 + 8 * 10


def test_alternatives_fork_and_differ(ticking: Callable[..., Ticking]) -> None:
    made = ticking()
    first = made.submit(ids(200))
    others = [
        made.submit(ids(200), lane="alternative", sampling=Sampling(temperature=1.5, seed=seed))
        for seed in range(1, 8)
    ]
    answers = made.finish(first, *others)
    assert sum(answer.counters.evaluated for answer in answers) <= 200 + 7
    assert len({answer.tokens for answer in answers}) > 4
    alone = ticking().ask(ids(200), sampling=Sampling(temperature=1.5, seed=3))
    assert answers[3].tokens == alone.tokens


def test_a_shared_beginning_is_waited_for(ticking: Callable[..., Ticking]) -> None:
    made = ticking()
    jobs = [made.submit(np.append(ids(200), ids(20, 90 + n))) for n in range(3)]
    answers = made.finish(*jobs)
    assert sorted(answer.counters.evaluated for answer in answers) == [20, 20, 220]


def test_who_waits_makes_the_other_urgent(ticking: Callable[..., Ticking]) -> None:
    """A keystroke that needs the rows of a warm-up lends it its lane."""
    made = ticking()
    warm = made.submit(ids(400), lane="warm", warm=True)
    made.tick()
    other = made.submit(ids(300, 5), limits=ENDLESS)
    key = made.submit(np.append(ids(400), ids(3, 8)))
    made.finish(key, within=80)
    assert made.done[warm].stop == "warm"
    assert made.done[key].counters.evaluated == 3
    made.loop.lanes.cancel(other, "cancelled")
    made.finish(other)


def test_an_unfinished_leader_leaves_its_followers_the_rest(ticking: Callable[..., Ticking]) -> None:
    made = ticking()
    leader, follower = made.submit(ids(300)), made.submit(ids(300))
    made.tick(3)
    made.loop.lanes.cancel(leader, "cancelled")
    answer = made.finish(follower)[0]
    assert made.done[leader].stop == "cancelled"
    assert answer.counters.reused == 48
    assert answer.counters.evaluated == 252


def test_a_keystroke_beside_a_long_answer_is_answered_soon(ticking: Callable[..., Ticking]) -> None:
    made = ticking()
    long = made.submit(ids(100), lane="long", limits=ENDLESS)
    made.tick(40)
    before = len(made.batches)
    key = made.submit(ids(30, 3))
    made.finish(key)
    assert len(made.batches) - before <= 2 + 10
    beside = [parts for parts in made.batches[before:] if len(parts) > 1]
    assert beside, "the long answer went on meanwhile"
    made.loop.lanes.cancel(long, "cancelled")
    assert made.finish(long)[0].stop == "cancelled"


def test_no_room_takes_the_cells_of_what_is_least_urgent(ticking: Callable[..., Ticking]) -> None:
    """Its answer is the same in the end: it begins again from the text that is there."""
    made, alone = ticking(cells=512), ticking(cells=512)
    limits = Limits(lines="free", tokens=60)
    prompt = talkative(alone, 300, 60)[0]
    long = made.submit(prompt, lane="long", limits=limits)
    made.tick(30)
    assert made.text[long]
    key = made.submit(ids(400, 2))
    assert made.finish(key)[0].tokens == alone.ask(ids(400, 2)).tokens
    assert long not in made.done
    answer = made.finish(long)[0]
    assert answer.tokens == alone.ask(prompt, limits=limits).tokens
    assert answer.text == made.text[long]
    assert answer.counters.prompt == answer.counters.reused + answer.counters.evaluated


def test_the_drafter_is_told_who_is_set_aside(ticking: Callable[..., Ticking]) -> None:
    script = Scripted()
    made = ticking(cells=512, drafter=script)
    long = made.submit(ids(300), lane="long")
    made.tick(5)
    made.finish(made.submit(ids(400, 2)))
    assert script.paused == [long]
    made.finish(long)


def moves(made: Ticking) -> list[int]:
    """The number of decodes at each time that all cells were given out anew, from now on."""
    exhume, found = made.context.exhume, list[int]()

    def exhumed() -> None:
        found.append(len(made.batches))
        exhume()

    made.context.exhume = exhumed  # type: ignore[method-assign]
    return found


def test_a_text_stays_evaluated_beside_a_long_answer(ticking: Callable[..., Ticking]) -> None:
    """Sixteen keystrokes, while the answer goes on, others come and go, and the cells run out."""
    made = ticking(cells=4096)
    text = ids(700, 2)
    long = made.submit(ids(512), lane="long", must=b"zq" * 1000, limits=ENDLESS)
    made.tick(40)
    made.ask(text[:500])
    moved = moves(made)
    for n in range(16):
        answer = made.ask(text[: 503 + 3 * n], limits=Limits(lines="free", tokens=12))
        assert answer.counters.evaluated <= 4
        made.ask(ids(200, 50 + n))
        made.tick(90)
    assert moved
    assert long not in made.done
    made.loop.lanes.cancel(long, "cancelled")
    assert len(made.finish(long)[0].tokens) > 4 * 1500


def test_a_large_text_stays_when_cells_are_given_out_anew(ticking: Callable[..., Ticking]) -> None:
    made = ticking(cells=1024)
    moved = moves(made)
    for n in range(60):
        answer = made.ask(np.append(ids(600, 2), ids(3 + n, 9)))
        assert answer.counters.evaluated <= (603 if n == 0 else 4)
        made.ask(ids(5, 100 + n))
        made.loop.tree.settle()
    assert len(moved) > 1


def test_texts_asked_for_by_turns_stay_when_cells_are_given_out_anew(ticking: Callable[..., Ticking]) -> None:
    made = ticking(cells=2048)
    moved = moves(made)
    for n in range(40):
        for client in range(4):
            answer = made.ask(np.append(ids(180, client), ids(3 + n, 9)))
            assert answer.counters.evaluated <= (183 if n == 0 else 4)
        made.loop.tree.settle()
    assert moved


def test_what_is_set_aside_waits_for_the_cells_of_its_answer_too(ticking: Callable[..., Ticking]) -> None:
    made, alone = ticking(cells=512), ticking(cells=512)
    limits = Limits(lines="free", tokens=200)
    prompt = talkative(alone, 40, 200)[0]
    long = made.submit(prompt, lane="long", limits=limits)
    made.tick(150)
    assert long not in made.done
    key = made.submit(ids(300, 2))
    made.tick()
    while key not in made.done:
        assert made.loop.lanes.load == (1, 1)
        made.tick()
    assert made.finish(long)[0].tokens == alone.ask(prompt, limits=limits).tokens


def test_an_abort_that_comes_too_late_stops_no_other_decode(ticking: Callable[..., Ticking]) -> None:
    made = ticking()
    decode, urgent = made.context.decode, list[str]()

    def overtaken(*parts: Part) -> bool:
        done = decode(*parts)
        if not urgent:
            urgent.append(made.submit(ids(30, 2)))
        return done

    made.context.decode = overtaken  # type: ignore[method-assign]
    made.finish(made.submit(ids(200), lane="long"))
    made.finish(*urgent)
    assert made.loop.report(0).aborted == 0


def test_keystrokes_without_end_do_not_shut_a_long_answer_out(
    ticking: Callable[..., Ticking], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ticking(cells=512)
    first = made.submit(ids(400, 1))
    made.tick()
    long = made.submit(ids(300, 2), lane="long")
    now = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: now() + AGED_S)
    second = made.submit(ids(400, 3))
    made.finish(first)
    made.tick()
    assert made.loop.lanes.load == (1, 1)
    made.finish(long)
    assert second not in made.done
    made.finish(second)


def test_runs_that_outgrow_the_cells_finish_one_after_the_other(ticking: Callable[..., Ticking]) -> None:
    made = ticking(cells=512)
    jobs = [made.submit(ids(100, n), limits=Limits(lines="free", tokens=300)) for n in range(4)]
    for answer in made.finish(*jobs):
        assert answer.stop in ("limit", "eos")


def test_a_busy_sequence_is_never_cut_by_another_request(ticking: Callable[..., Ticking]) -> None:
    made = ticking()
    one = made.submit(ids(120), limits=ENDLESS)
    made.tick(20)
    other = made.ask(np.append(ids(110), ids(5, 77)))
    assert (other.counters.reused, other.counters.evaluated) == (110, 5)
    made.tick(3)
    check(made.loop.tree, made.context)
    made.loop.lanes.cancel(one, "cancelled")
    made.finish(one)


def test_a_measured_run_has_every_decode_to_itself(ticking: Callable[..., Ticking]) -> None:
    made = ticking()
    other = made.submit(ids(100, 4), limits=ENDLESS)
    made.tick(9)
    measured = made.submit(ids(64), cache=False)
    before = len(made.batches)
    made.finish(measured)
    own = [parts for parts in made.batches[before:] if len(parts) == 1]
    assert len(own) == len(made.batches) - before
    made.loop.lanes.cancel(other, "cancelled")
    made.finish(other)


def test_a_failed_decode_ends_only_the_run_that_fails(ticking: Callable[..., Ticking]) -> None:
    made = ticking()
    good = made.submit(ids(40))
    bad = made.submit(np.append(ids(39, 2), np.array([10**6], np.int32)))
    answers = made.finish(good, bad)
    assert answers[0].stop in ("limit", "eos")
    assert answers[1].stop == "engine"
    assert answers[1].note
