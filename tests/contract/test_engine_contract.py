"""What every engine owes the daemon: the same tests over the scripted engine and the real child."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.scripted import ScriptedEngine

from daemon.engine.client import EngineClient, EngineModel
from daemon.engine.frames import Submit
from daemon.engine.protocol import Engine
from daemon.nouns import Generation, Limits, Sampling
from daemon.settings import Engine as EngineSettings
from daemon.settings import Settings
from indexer import tokens

LONG = "alpha beta gamma delta epsilon zeta eta theta\n" * 40
FREE = Limits(lines="free", tokens=24)


@pytest.fixture(params=["scripted", "child"])
async def engine(request: pytest.FixtureRequest, tiny_model: Path) -> AsyncIterator[Engine]:
    if request.param == "scripted":
        yield ScriptedEngine(lambda job: LONG)
        return
    settings = Settings(engine=EngineSettings(disk_mb=0))  # nothing of another test's engine comes back
    client = EngineClient(settings, EngineModel("tiny", tiny_model, "contract"))
    await client.start()
    await asyncio.wait_for(client.ready.wait(), 30)
    yield client
    await client.close()


def ids(n: int, seed: int = 1) -> bytes:
    return tokens.to_bytes([(i * 37 + seed * 11) % 250 for i in range(n)])


async def collect(engine: Engine, job: Submit) -> tuple[list[str], Generation]:
    pieces: list[str] = []
    async with contextlib.aclosing(engine.stream(job)) as events:
        async for event in events:
            if isinstance(event, Generation):
                return pieces, event
            pieces.append(event)
    raise AssertionError("the stream ended without a generation")


async def test_streamed_text_is_the_generation(engine: Engine) -> None:
    pieces, generation = await collect(engine, Submit(id="a", tokens=ids(100), limits=FREE))
    assert "".join(pieces) == generation.text
    assert generation.stop in ("limit", "eos")
    assert generation.counters.generated == len(generation.tokens) // 4 or generation.tokens == b""


async def test_text_that_nobody_follows_comes_in_few_pieces_until_somebody_does(engine: Engine) -> None:
    limits = Limits(lines="free", tokens=300)
    alone, whole = await collect(engine, Submit(id="a", tokens=ids(100), limits=limits, follow=False))
    assert "".join(alone) == whole.text
    followed: list[str] = []
    job = Submit(id="b", tokens=ids(100, seed=2), limits=limits, follow=False)
    async with contextlib.aclosing(engine.stream(job)) as events:
        async for event in events:
            if isinstance(event, Generation):
                break
            followed.append(event)
            engine.follow("b")
    assert "".join(followed) == event.text
    assert 1 < len(alone) < len(followed) / 2


async def test_counters_add_up_and_the_prompt_is_reused(engine: Engine) -> None:
    job = Submit(id="a", tokens=ids(200), limits=FREE)
    _, first = await collect(engine, job)
    _, second = await collect(engine, Submit(id="b", tokens=ids(200), limits=FREE))
    for generation in (first, second):
        assert generation.counters.prompt == generation.counters.reused + generation.counters.evaluated == 200
    assert first.counters.reused == 0
    assert second.counters.reused >= 199
    assert second.text == first.text


async def test_stop_string_cuts(engine: Engine) -> None:
    _, whole = await collect(engine, Submit(id="a", tokens=ids(50), limits=FREE))
    word = whole.text[2:4]
    limits = Limits(lines="free", tokens=24, stop=(word,))
    pieces, cut = await collect(engine, Submit(id="b", tokens=ids(50), limits=limits))
    assert cut.stop == "word"
    assert cut.stop_word == word
    assert cut.text == whole.text[: whole.text.index(word)] == "".join(pieces)


async def test_token_limit(engine: Engine) -> None:
    _, generation = await collect(
        engine, Submit(id="a", tokens=ids(50), limits=Limits(lines="free", tokens=3))
    )
    assert generation.stop in ("limit", "eos")
    assert generation.counters.generated <= 4


async def test_warm_generates_nothing(engine: Engine) -> None:
    pieces, generation = await collect(engine, Submit(id="a", tokens=ids(150), warm=True, lane="warm"))
    assert (pieces, generation.text, generation.stop) == ([], "", "warm")
    _, next_one = await collect(engine, Submit(id="b", tokens=ids(150), limits=FREE))
    assert next_one.counters.reused >= 149


async def test_temperature_is_repeatable_by_seed(engine: Engine) -> None:
    sampling = Sampling(temperature=0.8, seed=5)
    texts = [
        (await collect(engine, Submit(id=f"s{i}", tokens=ids(60), limits=FREE, sampling=sampling)))[1].text
        for i in range(2)
    ]
    assert texts[0] == texts[1]


async def test_superseded_ends_with_its_reason(engine: Engine) -> None:
    endless = Limits(lines="free", tokens=100_000)
    job = Submit(id="a", tokens=ids(3000, seed=9), limits=endless)
    task = asyncio.create_task(collect(engine, job))
    await asyncio.sleep(0)
    engine.supersede("a")
    _, generation = await asyncio.wait_for(task, 20)
    assert generation.stop in ("superseded", "window", "limit", "eos")


async def test_closing_the_stream_cancels_and_others_go_on(engine: Engine) -> None:
    endless = Limits(lines="free", tokens=100_000)
    stream = engine.stream(Submit(id="a", tokens=ids(2500, seed=3), limits=endless))
    reader = asyncio.create_task(anext(stream))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    reader.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reader
    await stream.aclose()
    _, generation = await asyncio.wait_for(collect(engine, Submit(id="b", tokens=ids(40), limits=FREE)), 20)
    assert generation.text
    report = await engine.report()
    assert report is not None
    assert report.after_slice == 0


async def test_what_was_unloaded_answers_all_the_same(engine: Engine) -> None:
    _, first = await collect(engine, Submit(id="a", tokens=ids(50), limits=FREE))
    await engine.unload("idle")
    assert (engine.state.phase, engine.state.detail) == ("unloaded", "idle")
    _, again = await collect(engine, Submit(id="b", tokens=ids(50), limits=FREE))
    assert again.text == first.text
    assert engine.state.phase == "ready"


async def test_report_counts_work(engine: Engine) -> None:
    _, generation = await collect(engine, Submit(id="a", tokens=ids(120), limits=FREE))
    report = await engine.report()
    assert report is not None
    assert report.evaluated >= generation.counters.evaluated
    assert report.idle
