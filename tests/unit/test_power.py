"""On battery less is spent; what nobody uses leaves memory and comes back when it is asked for."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from support.house import standing
from support.typed import Typing

from daemon import power
from daemon.engine.client import EngineClient, EngineModel
from daemon.engine.frames import Submit
from daemon.nouns import Allowance, CompletionRequest, Limits
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.power import Policy, Power, Unused, fitted
from daemon.settings import Context, Recall, Settings
from daemon.settings import Engine as EngineSettings
from daemon.settings import Power as PowerSettings
from indexer.battery import discharging
from indexer.tokens import to_bytes

ASKED = CompletionRequest(id="1", client="c", door="d", prefix="x = ")
SPARE = Power(battery=True, prefetch=False, warm=False, share=0.5)


def on_battery(**chosen: object) -> Policy:
    return Policy(PowerSettings(**chosen), battery_now=lambda: True)  # type: ignore[arg-type]


def test_on_the_mains_nothing_is_spared() -> None:
    now = Policy(PowerSettings(), battery_now=lambda: False).now
    assert now == Power()
    assert (now.battery, now.prefetch, now.warm, now.share) == (False, True, True, 1.0)
    assert fitted(ASKED, now, Context()) is ASKED


def test_on_battery_a_part_of_the_window_remains_and_nothing_is_done_ahead() -> None:
    now = on_battery(window_percent=25).now
    assert (now.battery, now.prefetch, now.warm, now.share) == (True, False, False, 0.25)
    assert "25% of the window" in now.why
    allowed = fitted(ASKED, now, Context(prefix_tokens=800, suffix_tokens=100, extra_tokens=0)).allowance
    assert allowed == Allowance(prefix=200, suffix=25, middle=None, extras=0)


def test_a_project_that_allows_less_still_does() -> None:
    asked = CompletionRequest(
        id="1", client="c", door="d", prefix="", allowance=Allowance(prefix=10, middle=7)
    )
    allowed = fitted(asked, SPARE, Context()).allowance
    assert (allowed.prefix, allowed.middle) == (10, 7)


def test_whoever_wants_the_same_on_battery_gets_it() -> None:
    now = on_battery(battery="same").now
    assert (now.battery, now.prefetch, now.warm, now.share) == (True, True, True, 1.0)
    assert "same" in now.why


def test_the_battery_is_looked_at_now_and_then() -> None:
    now, looks = [0.0], []
    policy = Policy(PowerSettings(), lambda: now[0], lambda: bool(looks.append(now[0])) or now[0] > 15)
    for now[0] in range(30):
        _ = policy.now
    assert looks == [0, 10, 20]
    assert policy.now.battery


BAT = {"type": "Battery", "status": "Discharging"}
MOUSE = {"type": "Battery", "status": "Discharging", "scope": "Device"}


@pytest.mark.parametrize(
    ("supplies", "found"),
    [
        ({}, False),
        ({"BAT0": BAT}, True),
        ({"BAT1": {**BAT, "scope": "System"}}, True),
        ({"BAT0": {**BAT, "status": "Charging"}}, False),
        ({"BAT0": {**BAT, "status": "Not charging"}}, False),
        ({"BAT0": {**BAT, "status": "Full"}, "BAT1": BAT}, True),
        ({"BAT0": BAT, "ACAD": {"type": "Mains", "online": "0"}}, True),
        ({"BAT0": BAT, "ACAD": {"type": "Mains", "online": "1"}}, False),
        ({"BAT0": BAT, "ucsi-source-psy-1": {"type": "USB", "online": "1"}}, False),
        ({"hidpp_battery_0": MOUSE}, False),
        ({"hidpp_battery_0": MOUSE, "BAT0": BAT}, True),
        ({"odd": {}}, False),
    ],
)
def test_the_folder_of_power_supplies_tells(
    tmp_path: Path, supplies: dict[str, dict[str, str]], found: bool
) -> None:
    for name, files in supplies.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text + "\n")
    assert discharging(tmp_path) is found
    assert not discharging(tmp_path / "none")


async def test_on_battery_no_document_is_evaluated_ahead(tmp_path: Path) -> None:
    typing = Typing(tmp_path)
    typing.pipeline.power = on_battery()
    typing.pipeline.mirror.open("me", "/project/doc0.py", "total = 1\n" * 40)
    assert typing.pipeline.resting
    await typing.pipeline.complete(typing.ask("tot"))
    assert typing.pipeline.resting
    typing.pipeline.power = Policy(PowerSettings(), battery_now=lambda: False)
    typing.pipeline.mirror.open("me", "/project/doc0.py", "total = 1\n" * 40)
    assert not typing.pipeline.resting
    await typing.pipeline.close()


async def test_on_battery_prompts_are_smaller(tmp_path: Path) -> None:
    typing = Typing(tmp_path)
    long = "value = other(1)\n" * 2000
    sizes = []
    for policy in (Policy(PowerSettings(), battery_now=lambda: False), on_battery(window_percent=30)):
        typing.pipeline.power = policy
        done = await typing.pipeline.complete(typing.ask("", prefix=long, suffix=long, path="/p/a.py"))
        sizes.append(done.counters.prompt)
    assert sizes[1] < sizes[0] * 0.5
    await typing.pipeline.close()


def test_what_was_used_stays_and_what_was_not_goes() -> None:
    now = [0.0]
    unused = Unused(10, lambda: now[0])
    assert unused.left_s == 600
    now[0] = 590
    unused.used()
    now[0] = 1189
    assert unused.left_s == 1
    assert power.facts(Power(), unused)["unload_in_s"] == 1
    now[0] = 1190
    assert unused.left_s <= 0
    assert unused.why == "idle: nothing was asked for 10 min"
    assert Unused(0, lambda: now[0]).left_s == math.inf
    assert power.facts(Power(), Unused(0, lambda: now[0]))["unload_in_s"] is None


async def test_requests_and_opened_documents_are_use(tmp_path: Path) -> None:
    now = [0.0]
    typing = Typing(tmp_path)
    typing.pipeline.unused = Unused(10, lambda: now[0])
    now[0] = 100.0
    await typing.pipeline.complete(typing.ask("tot"))
    assert typing.pipeline.unused.idle_s == 0
    now[0] = 200.0
    await typing.engine.unload("idle")
    typing.pipeline.mirror.visit("me", "/project/doc0.py", 1)
    typing.pipeline.mirror.open("me", "/project/doc1.py", "a = 1\n")
    assert typing.pipeline.unused.idle_s == 0
    assert typing.engine.state.phase == "ready"
    await typing.pipeline.close()


async def test_an_unloaded_model_is_healthy() -> None:
    async with standing() as house:
        await house.engine.unload("idle: nothing was asked for 60 min")
        assert house.engine.state.phase == "unloaded"
        assert (await house.ask("GET", "/health")).status == 200
        answer = await house.ask("POST", "/v1/complete", {"prefix": "x = ", "suffix": ""})
        assert (answer.status, house.engine.state.phase) == (200, "ready")


@contextlib.asynccontextmanager
async def child(model: Path) -> AsyncIterator[EngineClient]:
    client = EngineClient(Settings(engine=EngineSettings(disk_mb=0)), EngineModel("tiny", model, "power"))
    await client.start()
    await asyncio.wait_for(client.ready.wait(), 60)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def engine(tiny_model: Path) -> AsyncIterator[EngineClient]:
    async with child(tiny_model) as client:
        yield client


async def test_the_process_ends_and_the_next_request_starts_another(engine: EngineClient) -> None:
    pipeline = Pipeline(engine, Settings(recall=Recall(on=False)), Metrics())
    first = await pipeline.complete(ASKED)
    pid, profile = engine.state.pid, engine.profile
    await engine.unload("idle: nothing was asked for 60 min")
    state = engine.state
    assert (state.phase, state.detail, state.pid) == ("unloaded", "idle: nothing was asked for 60 min", None)
    assert state.restarts == 0
    assert await engine.report() is None
    assert engine.profile == profile
    both = await asyncio.gather(*(pipeline.complete(ASKED) for _ in range(2)))
    assert first.text == both[-1].text
    assert engine.state.phase == "ready"
    assert engine.state.pid not in (None, pid)
    await pipeline.close()


async def test_whoever_asks_while_it_is_loaded_again_waits_for_it_too(engine: EngineClient) -> None:
    pipeline = Pipeline(engine, Settings(recall=Recall(on=False)), Metrics())
    first = await pipeline.complete(ASKED)
    await engine.unload("idle")
    pipeline.noticed("c", "/project/a.py")
    assert engine.state.phase == "loading"
    typed = msgspec.structs.replace(ASKED, id="2", prefix="y = ")
    older, newer = await asyncio.gather(pipeline.complete(typed), pipeline.complete(ASKED))
    assert (older.stop, newer.text) == ("superseded", first.text)
    await pipeline.close()


async def test_what_runs_is_not_unloaded_and_waking_twice_is_once(engine: EngineClient) -> None:
    job = Submit(id="a", tokens=to_bytes([5] * 50), limits=Limits(lines="free", tokens=400))
    async with contextlib.aclosing(engine.stream(job)) as events:
        await anext(events)
        await engine.unload("idle")
        assert engine.state.phase == "ready"
    await engine.unload("idle")
    engine.wake()
    engine.wake()
    await engine.unload("idle")  # it loads: there is nothing to unload
    await asyncio.wait_for(engine.ready.wait(), 60)
    assert (engine.state.phase, engine.state.restarts) == ("ready", 0)
