"""One client that asks far too often is told so before anything is planned; who types is never refused."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from support.house import standing

from daemon.doors.house import Traffic
from daemon.doors.rates import KEPT, Rates, TooFast
from daemon.settings import Server


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def refused(rates: Rates, client: str, *, free: bool = False) -> int:
    """0, or the seconds that the client is told."""
    try:
        rates.take(client, free=free)
    except TooFast as error:
        return error.retry_after
    return 0


def test_a_flood_is_refused_for_as_long_as_it_lasts_and_let_in_after_the_silence_it_was_told() -> None:
    clock = Clock()
    rates = Rates(100, clock)
    told = []
    for _ in range(60 * 200):
        clock.now += 1 / 200
        told.append(refused(rates, "flood"))
    let_in = told.count(0)
    assert 40 <= let_in <= 85
    assert 0 not in told[100:], "nothing of it is served once it was told"
    assert not refused(rates, "typist")
    clock.now += told[-1]
    assert not refused(rates, "flood")


@pytest.mark.parametrize(
    ("per_s", "twins", "seconds"), [(25, 3, 600), (30, 3, 10), (59, 1, 600), (33, 3, 600)]
)
def test_who_types_is_never_refused_even_when_nothing_is_answered(
    per_s: int, twins: int, seconds: int
) -> None:
    clock = Clock()
    rates = Rates(Server().client_per_s, clock)
    for _ in range(per_s * seconds):
        assert [refused(rates, "editor") for _ in range(twins)] == [0] * twins
        assert [refused(rates, "editor", free=True) for _ in range(8)] == [0] * 8
        clock.now += 1 / per_s


def test_who_waits_for_its_answers_may_be_as_quick_as_they_are() -> None:
    clock = Clock()
    rates = Rates(10, clock)
    for _ in range(5000):
        assert not refused(rates, "script")
        rates.give_back("script")
        clock.now += 0.001


def test_a_refusal_costs_microseconds_and_many_names_cost_no_memory() -> None:
    rates = Rates(2)
    for number in range(5 * KEPT):
        rates.take(f"client {number}")
    assert len(rates._levels) == KEPT
    for _ in range(3):
        refused(rates, "one")
    began = time.perf_counter()
    for _ in range(1000):
        assert refused(rates, "one")
    assert time.perf_counter() - began < 0.1, "0.1 ms each"


def test_who_waits_for_many_leaves_room_for_others() -> None:
    traffic = Traffic.of(Server(max_concurrent=6))
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(traffic.asking("one"))
        with pytest.raises(TooFast), traffic.asking("one"):
            pass
        stack.enter_context(traffic.asking("one", alternative=True))
        stack.enter_context(traffic.asking("other"))
    assert traffic.facts()["clients"] == 0


def test_no_limit() -> None:
    rates = Rates(0)
    assert not any(refused(rates, "any") for _ in range(10_000))


async def test_a_flood_at_real_doors_reaches_no_plan_and_another_client_is_served() -> None:
    async with standing(server=Server(port=0, client_per_s=10, max_concurrent=500)) as house:
        house.engine.hold()

        async def flood(number: int) -> tuple[int, str, str]:
            body = {"input_prefix": f"x{number} = ", "input_suffix": "\n", "client": "flood"}
            reply = await house.ask("POST", "/infill", body)
            return reply.status, reply.headers.get("retry-after", ""), reply.json.get("stop_type", "")

        tasks = [asyncio.create_task(flood(number)) for number in range(200)]
        await house.engine.until(lambda: house.metrics.total("refused", "rate") >= 170, 20)
        assert len(house.pipeline.requests) <= 30
        house.engine.go_on()
        found = [await task for task in tasks]
        waits = {int(after) for status, after, _ in found if status == 429}
        assert waits
        assert min(waits) >= 1
        assert max(waits) <= 2
        assert {status for status, _, _ in found} == {200, 429}
        told = [refused(house.traffic.rates, "flood") for _ in range(100)]
        assert told[-1] == 2
        again = await house.ask("POST", "/infill", {"input_prefix": "y = ", "client": "flood", "n_cmpl": 3})
        assert again.status == 429
        assert again.json["error"]["type"] == "overloaded"
        reply = await house.ask("POST", "/v1/complete", {"prefix": "y = ", "client": "typist"})
        assert (reply.status, reply.json["text"]) == (200, "answer()")
        assert house.traffic.waiting == 0
