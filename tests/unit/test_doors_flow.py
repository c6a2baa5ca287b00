"""Overload at real doors: marks, refusals that say when to come back, deadlines, and slow readers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time

import pytest
from support.house import Reply, Standing, head_and_body, standing
from support.waiting import until

from daemon.doors.house import LONGEST_RETRY, Patience, Traffic
from daemon.errors import Overloaded, SettingsError
from daemon.loading import convert
from daemon.settings import Server, Settings

SMALL = Server(port=0, max_concurrent=20, high_mark=50, low_mark=10)
"""Intake stops at 10 and goes on at 2."""


def ask(client: object, **more: object) -> dict[str, object]:
    return {"prefix": f"value_{client} = ", "client": str(client), **more}


async def crowd(house: Standing, clients: int, **more: object) -> list[asyncio.Task[Reply]]:
    """So many clients wait for an engine that stands still."""
    house.engine.hold()
    tasks = [
        asyncio.create_task(house.ask("POST", "/v1/complete", ask(n, time_ms=60_000, **more)))
        for n in range(clients)
    ]
    await house.engine.until(lambda: len(house.engine.jobs) == clients)
    return tasks


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/complete", ask("new")),
        ("/v1/complete", ask("new", stream=True)),
        ("/infill", {"input_prefix": "x", "n_cmpl": 3}),
    ],
)
async def test_a_full_queue_says_when_to_come_back(path: str, body: dict[str, object]) -> None:
    async with standing(server=SMALL) as house:
        tasks = await crowd(house, 10)
        reply = await house.ask("POST", path, body)
        assert (reply.status, reply.headers["retry-after"]) == (429, "1")
        assert set(reply.json["error"]) == {"code", "message", "type"}
        assert (reply.json["error"]["code"], reply.json["error"]["type"]) == (429, "overloaded")
        status = (await house.ask("GET", "/v1/status")).json
        assert status["flow"] == {
            "inside": 10, "waiting": 10, "clients": 10, "high": 10, "low": 2, "stopped": True, "stops": 1,
        }  # fmt: skip
        assert status["metrics"]["counters"]["refused"]["full"] == 1
        house.engine.go_on()
        assert {(await task).status for task in tasks} == {200}
        assert (await house.ask("POST", path, body)).status == 200
        assert not house.traffic.stopped


async def test_who_waits_already_may_ask_anew_and_tell_of_changes() -> None:
    async with standing(server=SMALL) as house:
        tasks = await crowd(house, 10)
        assert (await house.ask("POST", "/v1/complete", ask("new"))).status == 429
        newer = asyncio.create_task(house.ask("POST", "/v1/complete", {**ask(3), "prefix": "other = "}))
        assert (await tasks[3]).json["stop"] == "superseded"
        changed = {"event": "open", "path": "/project/a.py", "text": "x = 1\n", "client": "new"}
        assert (await house.ask("POST", "/v1/documents", changed)).status == 200
        house.engine.go_on()
        assert (await newer).json["text"] == "answer()"
        assert [(await task).status for task in tasks] == [200] * 10


def test_intake_goes_on_only_at_the_low_mark() -> None:
    traffic, stack = Traffic(high=4, low=1), contextlib.ExitStack()
    waiting = [stack.enter_context(contextlib.ExitStack()) for _ in range(4)]
    for number, one in enumerate(waiting):
        one.enter_context(traffic.asking(str(number)))
    for left in range(4):
        if left < 3:
            with pytest.raises(Overloaded) as refused, traffic.asking("new"):
                pass
            assert 1 <= refused.value.retry_after <= LONGEST_RETRY
            waiting[left].close()
    assert (traffic.waiting, traffic.stopped, traffic.stops) == (1, False, 1)
    with traffic.asking("new"):
        assert traffic.waiting == 2
    stack.close()


def waiting_for(stack: contextlib.ExitStack, traffic: Traffic, *clients: object) -> None:
    for client in clients:
        stack.enter_context(traffic.asking(str(client)))


async def test_who_types_for_ever_keeps_newcomers_out_only_for_the_time_they_were_told() -> None:
    traffic = Traffic.of(Server())
    with contextlib.ExitStack() as typing:
        with contextlib.ExitStack() as others:
            waiting_for(typing, traffic, *range(traffic.low + 1))
            waiting_for(others, traffic, *range(100, 100 + traffic.high - traffic.low - 1))
            with pytest.raises(Overloaded) as refused, traffic.asking("new"):
                pass
        told = traffic._since + refused.value.retry_after
        assert traffic.stopped, "more than the low mark wait"
        with pytest.raises(Overloaded), traffic.asking("newer"):
            pass
        await until(lambda: not traffic.facts()["stopped"], 10)
        assert told <= time.monotonic()
        with traffic.asking("new"):
            assert (traffic.stopped, len(traffic._asking)) == (False, traffic.low + 2)


def test_a_full_house_stays_closed_however_long_it_takes() -> None:
    traffic = Traffic(high=2, low=1)
    with contextlib.ExitStack() as stack:
        waiting_for(stack, traffic, "a", "b")
        with pytest.raises(Overloaded), traffic.asking("new"):
            pass
        traffic._until = 0.0
        with pytest.raises(Overloaded), traffic.asking("new"):
            pass
        assert (traffic.facts()["stopped"], traffic.stops) == (True, 1)


def test_alternatives_are_no_clients() -> None:
    traffic = Traffic(high=3, low=1)
    with contextlib.ExitStack() as stack:
        for client in ("a", "b"):
            waiting_for(stack, traffic, client)
            for _ in range(7):
                stack.enter_context(traffic.asking(client, alternative=True))
        stack.enter_context(traffic.asking("gone", alternative=True))
        waiting_for(stack, traffic, "new")
        facts = traffic.facts()
        assert (facts["waiting"], facts["clients"], facts["stopped"]) == (18, 3, False)
        with pytest.raises(Overloaded), traffic.asking("a", alternative=True):
            pass
    assert traffic.facts() == {**facts, "waiting": 0, "clients": 0, "stops": 1}


def test_while_intake_is_stopped_a_client_waits_for_two_at_most() -> None:
    traffic = Traffic(high=2, low=1)
    with contextlib.ExitStack() as stack:
        waiting_for(stack, traffic, "a", "b")
        with pytest.raises(Overloaded), traffic.asking("new"):
            pass
        waiting_for(stack, traffic, "a")
        with pytest.raises(Overloaded), traffic.asking("a"):
            pass
        assert traffic.waiting == 3


def test_the_pace_says_when_to_come_back() -> None:
    traffic, stack = Traffic(high=40, low=0), contextlib.ExitStack()
    waiting = [stack.enter_context(contextlib.ExitStack()) for _ in range(40)]
    for number, one in enumerate(waiting):
        one.enter_context(traffic.asking(str(number)))
    with pytest.raises(Overloaded), traffic.asking("new"):
        pass
    began = time.monotonic()
    while time.monotonic() < began + 0.2:
        pass
    waiting[0].close()
    with pytest.raises(Overloaded) as refused, traffic.asking("new"):
        pass
    assert 7 <= refused.value.retry_after <= LONGEST_RETRY, "39 more, each after 0.2 s or more"
    stack.close()


def test_marks_must_not_cross() -> None:
    with pytest.raises(SettingsError, match=r"server\.low_mark"):
        convert({"server": {"high_mark": 30, "low_mark": 30}}, Settings, "here")
    assert (Traffic.of(Server()).high, Traffic.of(Server()).low) == (55, 16)
    assert (Traffic.of(Server(max_concurrent=1)).high, Traffic.of(Server(max_concurrent=1)).low) == (1, 1)


async def test_under_overload_each_is_answered_or_refused_within_its_deadline() -> None:
    async with standing(server=SMALL) as house:
        house.engine.hold()
        slowest = 0.0

        async def one(number: int) -> tuple[int, str]:
            nonlocal slowest
            began = time.perf_counter()
            reply = await house.ask("POST", "/v1/complete", ask(number, deadline_ms=300))
            slowest = max(slowest, time.perf_counter() - began)
            return reply.status, reply.json.get("stop", "")

        tasks = [asyncio.create_task(one(number)) for number in range(200)]
        found = [await task for task in tasks]
        assert set(found) == {(200, "time"), (429, "")}
        assert len(house.engine.jobs) <= 10 * (1 + int(slowest / 0.3))
        assert slowest < 2.0, "a stuck engine and 200 clients; 0.3 s were asked for"
        await house.engine.until(lambda: len(house.engine.ends) == len(house.engine.jobs))
        assert (house.traffic.waiting, house.traffic.stopped) == (0, False)


async def test_a_reader_that_does_not_read_delays_nobody_who_shares_its_run() -> None:
    script = "w" * 500_000 + " "
    async with standing(lambda job: script * 16, patience=Patience(read=2.0)) as house:
        house.engine.hold()
        body = {"prefix": "x = ", "path": "/project/a.py", "stream": True, "lines": "free"}
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        with slow:
            loop = asyncio.get_running_loop()
            await loop.sock_connect(slow, ("127.0.0.1", house.served.port))
            await loop.sock_sendall(slow, head_and_body("POST", "/v1/complete", {**body, "client": "slow"}))
            await house.engine.until(lambda: len(house.engine.jobs) == 1)
            quick = asyncio.create_task(house.ask("POST", "/v1/complete", {**body, "client": "quick"}))
            await until(lambda: house.metrics.total("coalesced", "same") == 1, 5)
            house.engine.go_on()
            last = (await quick).events[-1]
            assert (last["done"], last["stop"]) == (True, "eos")
            assert len(last["text"]) > 7_000_000
            await until(lambda: house.traffic.inside == 0, 10)
        assert (await house.ask("GET", "/v1/status")).json["metrics"]["counters"]["dropped"] == {
            "slow reader": 1
        }
        entries = (await house.ask("GET", "/v1/ledger")).json["entries"]
        told = {entry["client"]: (entry["stop"], entry["note"]) for entry in entries}
        assert told["slow"] == ("cancelled", "The client did not read for 2 s")
        assert len(house.engine.jobs) == 1
