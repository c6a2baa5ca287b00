"""From a request to its prompt with stable context, through a real index and the whole pipeline."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from support.scripted import ScriptedEngine
from support.shop import REPORT, ask, engine, pipeline, resting, root, shown, text

from daemon.nouns import Extra
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Context, Settings

__all__ = ["engine", "pipeline", "root"]


async def test_who_asks_for_context_now_sees_what_the_code_uses(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    done = await pipeline.complete(ask(root, context="now"))
    assert any("Order" in source for source in shown(done))
    assert any("load_orders" in source for source in shown(done))
    assert "def total_price(self, discount: float = 0.0) -> int" in text(engine.jobs[-1])
    assert sum(segment.tokens for segment in done.segments) == done.counters.prompt
    assert "best =" not in text(engine.jobs[-1]).split("report.py\n")[0]
    plain = await pipeline.complete(ask(root, context="none"))
    assert shown(plain) == []


async def test_who_asks_for_context_now_leaves_the_epoch_of_an_editor_as_it_is(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    await pipeline.complete(ask(root))
    await resting(pipeline)
    before = await pipeline.complete(ask(root, " m"))
    await resting(pipeline)
    idle = [job.id for job in engine.jobs if job.id.startswith("idle")]
    clip = (Extra(text="def cheapest(path: str) -> Order: ...", kind="clipboard"),)
    now = await pipeline.complete(ask(root, " m", context="now", client="other", extras=clip))
    await resting(pipeline)
    assert "cheapest" in text(engine.jobs[-1])
    assert now.head != before.head
    assert [job.id for job in engine.jobs if job.id.startswith("idle")] == idle
    after = await pipeline.complete(ask(root, " ma"))
    assert (after.epoch, after.head) == (before.epoch, before.head)


async def test_context_comes_in_idle_time_and_then_stays(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    assert shown(await pipeline.complete(ask(root))) == []
    await resting(pipeline)
    typed = " max(orders, key=lambda order: order.total_price())"
    heads = set()
    for length in range(1, len(typed) + 1):
        done = await pipeline.complete(ask(root, typed[:length]))
        assert shown(done)
        first = next(n for n, segment in enumerate(done.segments) if segment.kind == "prefix")
        stable = sum(segment.tokens for segment in done.segments[:first])
        heads.add(engine.jobs[-1].tokens[: 4 * stable])
        assert done.counters.reused >= stable
        assert done.counters.evaluated <= 12  # a token is a byte here: the healed word at most
    assert len(heads) == 1


async def test_an_epoch_lasts_while_a_person_types_on_in_one_function(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    await pipeline.complete(ask(root))
    await resting(pipeline)
    typed, heads = "", set()
    for line in (
        " max(orders, key=str)\n",
        "    total = best.total_price(discount=0.5)\n",
        "    customer = best.customer\n",
        "    others = load_orders(summary(path))\n",
    ):
        typed += line
        done = await pipeline.complete(ask(root, typed))
        await resting(pipeline)
        heads.add((done.epoch, done.head))
    assert len(heads) == 1
    assert next(iter(heads))[0] == 1


async def test_another_epoch_is_used_before_a_wider_window_is_evaluated_behind_it(
    engine: ScriptedEngine, root: Path
) -> None:
    pipeline = Pipeline(engine, Settings(context=Context(stable_ms=600_000, jump_ms=1)), Metrics())
    await pipeline.complete(ask(root))
    await resting(pipeline)
    head, wide = (text(job) for job in engine.jobs if job.id.startswith("idle"))
    assert "def load_orders(path: str)" in head
    assert '"""Reports."""' not in head
    assert '"""Reports."""' in wide
    done = await pipeline.complete(ask(root, " m"))
    assert shown(done)
    assert done.counters.evaluated <= 4
    await pipeline.close()


async def test_an_opened_document_is_evaluated_before_the_first_keystroke(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    before, after = REPORT.split("@")
    pipeline.mirror.open("c", str(root / "report.py"), before + after)
    await resting(pipeline)
    assert "def load_orders(path: str) -> list[Order]" in text(engine.jobs[-1])
    done = await pipeline.complete(ask(root))
    assert shown(done)
    head = sum(s.tokens for s in done.segments if s.kind in ("scaffold", "repo", "path", "context"))
    assert done.counters.reused >= head - 3


async def test_a_request_whose_context_takes_long_never_overtakes_a_newer_one(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    await pipeline.complete(ask(root, context="now"))  # the index is open
    reader = next(found.reader for found in pipeline.readers.all())
    done = len(engine.jobs)
    with reader.together():  # another thread's queries wait
        older = asyncio.create_task(pipeline.complete(ask(root, context="now", id="older")))
        await asyncio.sleep(0)
        newer = asyncio.create_task(pipeline.complete(ask(root, " m", id="newer")))
        await engine.until(lambda: len(engine.jobs) > done)
        assert (await newer).stop != "superseded"
    assert (await older).stop == "superseded"
    assert not [job.id for job in engine.jobs if job.id.startswith("older")]


async def test_a_warm_up_between_keystrokes_does_not_end_idle_work_for_good(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    await pipeline.complete(ask(root))
    await pipeline.complete(ask(root, warm=True))
    await resting(pipeline)
    assert shown(await pipeline.complete(ask(root)))


async def test_one_thread_at_a_time_looks_for_context(pipeline: Pipeline, root: Path) -> None:
    await pipeline.complete(ask(root, context="now"))
    reader = next(found.reader for found in pipeline.readers.all())
    before, after = REPORT.split("@")
    with reader.together():
        for number in range(8):
            pipeline.mirror.open("c", str(root / "report.py"), f"{before}{number}{after}")
            await asyncio.sleep(0.01)
        busy = [t for t in threading.enumerate() if t.name.startswith("asyncio_")]
    assert len(busy) <= 3
    await resting(pipeline)
