"""Who comes next: lanes by urgency, clients in turn, and what an urgent job interrupts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from support.ticking import Ticking, ids, ticking

from daemon.engine.costs import RowCosts
from daemon.engine.frames import Submit
from daemon.engine.lanes import AGED_S, Lanes
from daemon.nouns import Limits

__all__ = ["ticking"]


def lanes(slots: int = 8) -> tuple[Lanes, list[str]]:
    aborted: list[str] = []
    return Lanes(lambda: aborted.append("abort"), lambda: 0, slots), aborted


def started(made: Lanes) -> str | None:
    """Start the next; its id, None when nothing may start."""
    ticket = made.following()
    if ticket is not None:
        made.start(ticket)
    return ticket.job.id if ticket else None


def test_lanes_are_served_by_urgency_and_each_has_room() -> None:
    made, _ = lanes(slots=2)
    for name in ("paging", "long", "warm", "anchor", "alternative", "keystroke"):
        made.submit(Submit(id=name, tokens=b"", lane=name))  # type: ignore[arg-type]
    made.submit(Submit(id="second", tokens=b"", client="b"))
    made.submit(Submit(id="third", tokens=b"", client="c"))
    assert [started(made) for _ in range(5)] == ["keystroke", "second", "alternative", "anchor", None]


def test_who_waited_long_comes_before_fresh_keystrokes(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = lanes(slots=4)
    made.submit(Submit(id="long", tokens=b"", lane="long"))
    now = time.perf_counter()
    monkeypatch.setattr(time, "perf_counter", lambda: now + AGED_S)
    for number in range(5):
        made.submit(Submit(id=f"fresh {number}", tokens=b""))
    made.submit(Submit(id="anchor", tokens=b"", lane="anchor"))
    ticket = made.following()
    assert ticket is not None
    assert [started(made) for _ in range(6)] == ["long", *(f"fresh {number}" for number in range(4)), None]
    assert ticket.turn == 0
    monkeypatch.setattr(time, "perf_counter", lambda: now + 2 * AGED_S + 1)
    assert ticket.turn == ticket.lane
    made.put_back(ticket)
    assert ticket.turn == ticket.lane


def test_who_runs_for_moments_only_has_waited_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = lanes()
    made.submit(Submit(id="long", tokens=b"", lane="long"))
    ticket = made.following()
    assert ticket is not None
    now, turns = time.perf_counter(), []
    for moment in (0.4, 0.5, 0.9, 1.0, 1.5, 2.4, 2.6):
        monkeypatch.setattr(time, "perf_counter", lambda at=now + moment * AGED_S: at)
        turns.append(ticket.turn)
        (made.put_back if ticket.running else made.start)(ticket)
    assert turns == [4, 4, 4, 4, 0, 0, 4]


@pytest.mark.parametrize(
    ("waited", "evaluated", "every"), [(AGED_S, True, True), (0.0, True, False), (AGED_S, False, False)]
)
def test_an_answer_that_waited_long_gets_a_row_in_every_tick_its_prompt_does_not(
    ticking: Callable[..., Ticking],
    monkeypatch: pytest.MonkeyPatch,
    waited: float,
    evaluated: bool,
    every: bool,
) -> None:
    made, alone, limits = ticking(), ticking(), Limits(lines="free", tokens=40)
    made.loop.batching.costs = RowCosts(((1, 10.0), (2, 30.0)), 64)
    prompts = (ids(20, seed) for seed in range(200))
    talkative = (prompt for prompt in prompts if alone.ask(prompt, limits=limits).stop == "limit")
    prompt = next(talkative)
    made.ask(prompt if evaluated else ids(20, 999), warm=True)
    long = made.submit(prompt, lane="long", limits=limits)
    now = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: now() + waited)
    key = made.submit(next(talkative), limits=limits)
    made.tick(8)
    before = len(made.batches)
    made.tick(6)
    together = [len(parts) for parts in made.batches[before:]]
    assert (together == [2] * 6) == every
    for job in (long, key):
        made.loop.lanes.cancel(job, "cancelled")
    made.finish(long, key)


def test_clients_take_turns_inside_a_lane() -> None:
    made, _ = lanes()
    for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
        made.submit(Submit(id=name, tokens=b"", client=name[0]))
    assert [started(made) for _ in range(6)] == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_an_urgent_job_interrupts_prompt_rows_of_others_only() -> None:
    made, aborted = lanes()
    made.submit(Submit(id="warm", tokens=b"", lane="warm"))
    ticket = made.following()
    assert ticket is not None
    made.start(ticket)
    made.computing((ticket,), False)
    made.submit(Submit(id="one", tokens=b""))
    assert aborted == []
    made.computing((ticket,), True)
    made.submit(Submit(id="other", tokens=b"", lane="long"))
    assert aborted == []
    made.submit(Submit(id="two", tokens=b""))
    assert aborted == ["abort"]
    assert ticket.ended is None


def test_cancel_touches_only_its_job() -> None:
    made, aborted = lanes()
    for name in ("a", "b"):
        made.submit(Submit(id=name, tokens=b""))
    made.cancel("b", "cancelled")
    ended = made.following()
    assert ended is not None
    assert (ended.job.id, ended.ended) == ("b", "cancelled")
    made.start(ended)
    first = made.following()
    assert first is not None
    assert first.ended is None
    assert aborted == []


def test_close_wakes_the_engine_thread() -> None:
    made, _ = lanes()
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append(made.wait()))
    thread.start()
    made.close()
    thread.join(5)
    assert got == [False]
