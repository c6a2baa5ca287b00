"""Whose leaving ends what, whose limits hold, and any order of it all, with a real engine as well."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.scripted import PROFILE
from support.typed import Typing, begun, gone, joining, typing

from daemon import replay
from daemon.engine.client import EngineClient, EngineModel
from daemon.nouns import Completion, CompletionRequest, Generation, Limits, Sampling, StopReason
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Context, Recall, Settings

__all__ = ["typing"]

STEPS = 1500


async def test_whoever_leaves_the_others_are_answered(typing: Typing) -> None:
    requests = [typing.ask("total = s", "a"), typing.ask("total = su", "b"), typing.ask("total = sum", "c")]
    tasks = [await begun(typing, requests[0])]
    tasks += [await joining(typing, request, "awaited") for request in requests[1:]]
    await gone(tasks[0])
    await gone(tasks[1])
    assert not typing.engine.ends
    typing.engine.go_on()
    done = await tasks[2]
    assert (done.raw, done.coalesced) == (typing.rest(requests[2]), requests[0].id)
    assert done.counters.evaluated == typing.engine.work.total(), "the work is counted by who is left"
    assert [row[3].stop for row in typing.rows] == ["cancelled", "cancelled", "eos"]
    assert [row[3].counters.prompt > 0 for row in typing.rows] == [False, False, True]


async def test_the_last_to_leave_ends_the_run(typing: Typing) -> None:
    tasks = [await begun(typing, typing.ask("total = s", "a"))]
    tasks.append(await joining(typing, typing.ask("total = su", "b"), "awaited"))
    await gone(tasks[0])
    await gone(tasks[1])
    await typing.engine.until(lambda: bool(typing.engine.ends))
    assert set(typing.engine.ends.values()) == {"cancelled"}
    assert typing.engine.work.total() == 0


async def test_a_client_that_goes_elsewhere_takes_nobody_along(typing: Typing) -> None:
    older = await begun(typing, typing.ask("total = s", "a"))
    other = await joining(typing, second := typing.ask("total = su", "b"), "awaited")
    elsewhere = asyncio.create_task(typing.pipeline.complete(third := typing.ask("rep", "a", 2)))
    assert (await older).stop == "superseded"
    typing.engine.go_on()
    assert [(await task).raw for task in (other, elsewhere)] == [typing.rest(second), typing.rest(third)]


async def test_alternatives_end_nothing_and_end_with_their_question(typing: Typing) -> None:
    first = await begun(typing, typing.ask("total = s"))
    others = [
        await begun(
            typing, typing.ask("total = s", alternative=True, sampling=Sampling(temperature=0.4, seed=n))
        )
        for n in (1, 2)
    ]
    newer = await joining(typing, second := typing.ask("total = su"), "awaited")
    assert [(await task).stop for task in others] == ["superseded"] * 2
    typing.engine.go_on()
    assert (await newer).raw == typing.rest(second)
    assert (await first).stop == "eos"


async def test_nobody_waits_longer_than_its_deadline(typing: Typing) -> None:
    limits = Limits(lines="line", deadline=500)
    await begun(typing, typing.ask("total = s", "a", limits=limits))
    other = await joining(typing, typing.ask("total = su", "b", limits=limits), "awaited")
    async with asyncio.timeout(2):
        assert (await other).stop == "time"
    await typing.engine.until(lambda: bool(typing.engine.ends))


@pytest.mark.parametrize(
    "typed", [("total = s", "total = s"), ("total = s", "total = sum(item.price")], ids=("same", "said")
)
@pytest.mark.parametrize("stop", ["time", "limit"])
async def test_what_anothers_limits_ended_before_it_said_anything_is_asked_for_anew(
    typing: Typing, stop: StopReason, typed: tuple[str, str]
) -> None:
    first, second = typing.ask(typed[0]), typing.ask(typed[1], "other")
    older = await begun(typing, first)
    newer = await joining(typing, second, "same" if first.prefix == second.prefix else "awaited")
    (run,) = typing.pipeline._runs._runs
    run.take(second.prefix[len(first.prefix) :])
    for _ in range(3):
        await asyncio.sleep(0)  # whoever waits sees it
    assert run.task is not None
    run.task.cancel()
    run.take(Generation(text=run.text, stop=stop))
    typing.engine.go_on()
    assert ((await older).stop, (await newer).raw) == (stop, typing.rest(second))
    assert (typing.joined("parted"), (await newer).coalesced) == (1, "")


@pytest.mark.parametrize("limit", ["milliseconds", "deadline"])
async def test_half_spent_time_is_not_shared(typing: Typing, limit: str) -> None:
    limits = Limits(lines="line", **{limit: 40_000})
    await begun(typing, typing.ask("total = s", limits=limits))
    (run,) = typing.pipeline._runs._runs
    now = asyncio.get_running_loop().time()
    if limit == "deadline":
        run.turn.begun = now - 21.0
    else:
        await joining(typing, typing.ask("total = su", limits=limits), "awaited")
        run.spoke = now - 21.0
    jobs = len(typing.engine.jobs)
    newer = asyncio.create_task(typing.pipeline.complete(asked := typing.ask("total = sum", limits=limits)))
    await typing.engine.until(lambda: len(typing.engine.jobs) > jobs)
    typing.engine.go_on()
    assert ((await newer).raw, (await newer).coalesced) == (typing.rest(asked), "")


@pytest.mark.parametrize("more", [0, 1])
async def test_who_may_be_told_more_shares_no_shorter_run(typing: Typing, more: int) -> None:
    await begun(typing, typing.ask("total = s"))
    runs, asked = typing.pipeline._runs, typing.ask("total = su")
    (run,) = runs._runs
    limits = msgspec.structs.replace(asked.limits, tokens=asked.limits.tokens + more)
    planned = dataclasses.replace(run.planned, request=msgspec.structs.replace(asked, limits=limits))
    with runs.turn(asked) as turn, runs.seat(turn, planned, msgspec.structs.replace(run.job, id="2")) as seat:
        assert (seat.run is run) == (not more)


async def test_an_engine_that_fails_is_told_to_all(typing: Typing) -> None:
    older = await begun(typing, typing.ask("total = s", "a"))
    twin = await joining(typing, typing.ask("total = s", "b"), "same")
    typing.engine.script = lambda job: str(1 // len(job.id[:0]))
    typing.engine.go_on()
    for task in (older, twin):
        with pytest.raises(ZeroDivisionError):
            await task


@pytest.mark.parametrize("seed", [1, 2])
async def test_in_any_order_of_typing_and_leaving_each_gets_the_rest_of_its_text(
    tmp_path: Path, seed: int
) -> None:
    typing, chance = Typing(tmp_path), random.Random(seed)
    typed = {(client, line): 0 for client in "abcd" for line in range(3)}
    asked: list[tuple[CompletionRequest, asyncio.Task[Completion]]] = []
    left: set[str] = set()
    for _ in range(STEPS):
        client, step = chance.choice("abcd"), chance.random()
        line = chance.randrange(3) if chance.random() < 0.1 else "abcd".index(client) % 3
        text = typing.lines[line]
        if step < 0.3:
            at = typed[client, line] = (typed[client, line] + 1) % len(text)
            wrong = "~" if chance.random() < 0.2 else ""
            request = typing.ask(text[:at] + wrong, client, line)
            asked.append((request, asyncio.create_task(typing.pipeline.complete(request))))
        elif step < 0.35 and asked:
            request, task = chance.choice(asked[-8:])
            if task.cancel():
                left.add(request.id)
        elif step < 0.4:
            (typing.engine.hold if step < 0.36 else typing.engine.go_on)()
        else:
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
    typing.engine.go_on()
    done = await asyncio.gather(*(task for _, task in asked), return_exceptions=True)
    stayed = [(r, one) for (r, _), one in zip(asked, done, strict=True) if r.id not in left]
    answered = [(r, one) for r, one in stayed if isinstance(one, Completion) and one.stop != "superseded"]
    assert len(stayed) == sum(isinstance(one, Completion) for _, one in stayed)
    assert all(one.raw == typing.rest(request) for request, one in answered)
    newest = {request.client: request.id for request, _ in asked}
    assert all(
        one.stop != "superseded"
        for r, one in stayed
        if isinstance(one, Completion) and r.id == newest[r.client]
    )
    shared = [one for _, one in answered if one.coalesced]
    assert min(len(shared), len(answered) - len(shared), typing.joined("parted")) > 10
    counted = sum(row[2].counters.evaluated for row in typing.rows)
    whole = sum(typing.engine.work[job] for job in typing.engine.told if typing.engine.ends[job] != "warm")
    assert whole <= counted <= typing.engine.work.total(), "every run that came to its end is counted once"
    await typing.pipeline.close()


@contextlib.asynccontextmanager
async def real(model: Path) -> AsyncIterator[tuple[EngineClient, Pipeline, CompletionRequest]]:
    """A real engine child, a pipeline over it, and a request for a long answer."""
    engine = EngineClient(Settings(), EngineModel("tiny", model, "0" * 64))
    await engine.start()
    await asyncio.wait_for(engine.ready.wait(), 60)
    pipeline = Pipeline(engine, Settings(context=Context(idle=False), recall=Recall(on=False)), Metrics())
    limits = Limits(lines="free", tokens=12)
    yield (
        engine,
        pipeline,
        CompletionRequest(
            id="0", client="a", door="test", prefix="def total(", path="/w/a.py", limits=limits
        ),
    )
    await pipeline.close()
    await engine.close()


async def test_a_real_engine_under_random_leaving_answers_whoever_stays(tiny_model: Path) -> None:
    chance, asked = random.Random(5), list[tuple[CompletionRequest, asyncio.Task[Completion]]]()
    async with real(tiny_model) as (engine, pipeline, ask):
        said = (await pipeline.complete(ask)).raw
        left = set()
        for number in range(1, 120):
            typed = said[: chance.randrange(4)] + chance.choice(("", "", "", "~"))
            request = msgspec.structs.replace(
                ask, id=str(number), client=chance.choice("abc"), prefix=ask.prefix + typed
            )
            asked.append((request, asyncio.create_task(pipeline.complete(request))))
            if chance.random() < 0.3:
                request, task = chance.choice(asked[-4:])
                if task.cancel():
                    left.add(request.id)
            if chance.random() < 0.5:
                await asyncio.wait({asked[-1][1]}, timeout=chance.choice((0, 0, 0.01, 0.1)))
        found = await asyncio.gather(*(task for _, task in asked), return_exceptions=True)
        done = {one.id: one for one in found if isinstance(one, Completion)}
        assert {request.id for request, _ in asked} - left <= done.keys()
        prefixes = {request.id: request.prefix for request, _ in asked}
        shared = [one for one in done.values() if one.coalesced and one.stop != "superseded"]
        whole = [
            (prefixes[one.id] + one.raw, prefixes[one.coalesced] + done[one.coalesced].raw)
            for one in shared
            if one.coalesced in done and done[one.coalesced].stop != "superseded"
        ]
        assert len(whole) > 5
        assert all(mine == theirs for mine, theirs in whole)
        report = await engine.report()
        assert report is not None
        assert (report.idle, report.after_slice) == (True, 0)


async def test_an_answer_of_anothers_run_can_be_replayed(tiny_model: Path) -> None:
    async with real(tiny_model) as (engine, pipeline, ask):
        rows = list[Any]()
        pipeline.record = lambda *passed: rows.append(passed)
        said = (await pipeline.complete(ask)).raw
        other = msgspec.structs.replace(ask, id="2", client="b", prefix=ask.prefix + said[:3])
        whole, rest = await asyncio.gather(
            pipeline.complete(msgspec.structs.replace(ask, id="1")), pipeline.complete(other)
        )
        assert rest.coalesced == "1"
        assert said[:3] + rest.raw == whole.raw == said
        (row,) = [passed for passed in rows if passed[0].request.id == "2"]
        entry = replay.entry(*row, profile=engine.profile or PROFILE, build="b")
        assert entry.coalesced == "1"
        found = await replay.replay(engine, entry)
        assert found.recorded == rest.raw
        assert found.replayed.startswith(rest.raw)
