"""What other files say now is what a prompt shows, and nothing of what must not be shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from support.indexing import index_once
from support.scripted import PROFILE, ScriptedEngine
from support.shop import ORDERS, SETTINGS, ask, engine, pipeline, resting, root, shown, text

from daemon import replay, roots
from daemon.nouns import Extra
from daemon.observe.entries import Entry
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Complete

__all__ = ["engine", "pipeline", "root"]


async def test_an_unsaved_buffer_counts(pipeline: Pipeline, engine: ScriptedEngine, root: Path) -> None:
    pipeline.mirror.open("c", str(root / "orders.py"), ORDERS)
    await pipeline.complete(ask(root))
    await resting(pipeline)
    assert "load_orders(path: str)" in text(engine.jobs[-1])
    changed = ORDERS.replace("total_price", "sum_of_lines").replace("discount", "rebate")
    pipeline.mirror.change("c", str(root / "orders.py"), changed)
    await resting(pipeline)
    await pipeline.complete(ask(root, " m"))
    await resting(pipeline)
    done = await pipeline.complete(ask(root, " ma"))
    prompt = text(engine.jobs[-1])
    assert shown(done)
    assert "def sum_of_lines(self, rebate: float = 0.0) -> int" in prompt
    assert "def total_price" not in prompt


async def test_another_unsaved_text_of_a_file_opened_again_counts(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    path = str(root / "orders.py")
    pipeline.mirror.open("c", path, ORDERS.replace("total_price", "sum_of_lines"))
    await pipeline.complete(ask(root))
    await resting(pipeline)
    assert "def sum_of_lines" in text(engine.jobs[-1])
    pipeline.mirror.close("c", path)
    pipeline.mirror.open("c", path, ORDERS.replace("total_price", "price_in_cents"))
    await resting(pipeline)
    await pipeline.complete(ask(root, " m"))
    await resting(pipeline)
    await pipeline.complete(ask(root, " ma"))
    prompt = text(engine.jobs[-1])
    assert "def price_in_cents" in prompt
    assert "def sum_of_lines" not in prompt


async def test_secrets_of_other_files_are_taken_out(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    secret = "AKIA" + "IOSFODNN7QWERTY2"
    text_with = ORDERS.replace("    return []", f'    key = "{secret}"\n    return []')
    (root / "orders.py").write_text(text_with)
    index_once(root, roots.folder(root))
    clip = (Extra(text=f'aws_key = "{secret}"', kind="clipboard"),)
    await pipeline.complete(ask(root, context="now", extras=clip))
    prompt = text(engine.jobs[-1])
    assert "load_orders" in prompt
    assert "aws_key" in prompt
    assert secret not in prompt


async def test_a_client_without_a_path_gets_the_context_of_its_file(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    request = msgspec.structs.replace(ask(root), path=None, whole=False)
    await pipeline.complete(request)
    async with asyncio.timeout(20):
        while not shown(await pipeline.complete(request)):
            await resting(pipeline)
    assert "class Order" in text(engine.jobs[-1])


async def test_a_file_that_is_left_out_is_not_shown_from_its_buffer(
    engine: ScriptedEngine, root: Path
) -> None:
    settings = msgspec.structs.replace(SETTINGS, complete=Complete(ignore=("drafts/",)))
    pipeline = Pipeline(engine, settings, Metrics())
    path = str(root / "drafts" / "orders.py")
    pipeline.mirror.open("c", path, ORDERS)
    pipeline.mirror.change("c", path, ORDERS.replace("load_orders", "load_drafts"))
    pipeline.mirror.accepted("c", path, "load_drafts(path)")
    await resting(pipeline)
    assert pipeline.mirror.documents() == ()
    assert pipeline.mirror.recent() == ()
    await pipeline.close()


async def told(pipeline: Pipeline, engine: ScriptedEngine, root: Path, typed: str) -> bool:
    """Whether the other file is shown, at once; then idle work."""
    await pipeline.complete(ask(root, typed))
    job = next(job for job in reversed(engine.jobs) if not job.id.startswith("idle"))
    await resting(pipeline)
    return "def load_orders(path: str)" in text(job)


async def test_a_file_that_is_left_out_by_now_is_not_shown_any_more(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    assert [await told(pipeline, engine, root, typed) for typed in ("", " m")] == [False, True]
    (root / ".foretype.toml").write_text('[complete]\nignore = ["orders.py"]\n')
    assert [await told(pipeline, engine, root, typed) for typed in (" ma", " max", " max(")] == [False] * 3
    assert "def load_orders" not in text(engine.jobs[-1])
    (root / ".foretype.toml").unlink()
    assert [await told(pipeline, engine, root, typed) for typed in (" max(o", " max(or")] == [False, True]


async def test_a_file_that_was_deleted_is_not_shown_any_more(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    """At once, whatever the index still says of it."""
    assert [await told(pipeline, engine, root, typed) for typed in ("", " m")] == [False, True]
    (root / "orders.py").unlink()
    assert [await told(pipeline, engine, root, typed) for typed in (" ma", " max", " max(")] == [False] * 3
    assert "def load_orders" not in text(engine.jobs[-1])
    now = await pipeline.complete(ask(root, " max(", context="now"))
    assert not any("orders.py" in source for source in shown(now))
    (root / "orders.py").write_text(ORDERS)
    assert [await told(pipeline, engine, root, typed) for typed in (" max(o", " max(or")] == [False, True]


async def test_a_file_deleted_before_what_was_chosen_of_it_is_evaluated_is_chosen_no_more(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    planner = pipeline.planning.planner()
    planned = planner.plan(ask(root))
    chosen = planner.following(planned)
    assert chosen is not None
    assert "orders.py" in {piece.path for piece in chosen.pieces}
    (root / "orders.py").unlink()
    again = planner.following(planned)
    assert again is None or "orders.py" not in {piece.path for piece in again.pieces}
    planner.begin(planned.around, chosen)
    assert "orders.py" not in {piece.path for piece in planner.plan(ask(root, " m")).stable.pieces}


async def test_a_file_that_was_deleted_is_shown_while_somebody_has_it_open(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    assert [await told(pipeline, engine, root, typed) for typed in ("", " m")] == [False, True]
    pipeline.mirror.open("c", str(root / "orders.py"), ORDERS)
    await resting(pipeline)
    (root / "orders.py").unlink()
    assert await told(pipeline, engine, root, " ma")
    pipeline.mirror.close("c", str(root / "orders.py"))
    assert not await told(pipeline, engine, root, " max")


async def test_a_text_without_a_name_is_shown_nothing_of_another(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    body = "".join(f"    step_{n} = compute(step_{n - 1})\n" for n in range(1, 400))
    nameless = ask(
        root, path=None, prefix=f"def first(step_0):\n{body}    return ", suffix="\n", language="python"
    )
    await pipeline.complete(nameless)
    await resting(pipeline)
    other = msgspec.structs.replace(nameless, prefix="def second(x):\n    y = x\n    return ")
    await pipeline.complete(other)
    assert "first" not in text(engine.jobs[-1])


async def test_the_ledger_keeps_no_text_of_a_denied_file(pipeline: Pipeline, root: Path) -> None:
    rows: list[Entry] = []
    pipeline.record = lambda *passed: rows.append(replay.entry(*passed, profile=PROFILE, build="b"))
    await pipeline.complete(ask(root, path=str(root / ".env"), prefix="PASSWORD=", suffix=""))
    await pipeline.complete(ask(root))
    assert [row.content is None for row in rows] == [True, False]


async def test_no_page_holds_a_denied_file(pipeline: Pipeline, engine: ScriptedEngine, root: Path) -> None:
    await pipeline.complete(ask(root, path=str(root / ".env"), prefix="PASSWORD=", suffix=""))
    await resting(pipeline)
    denied = len(engine.jobs)
    await pipeline.complete(ask(root))
    await resting(pipeline)
    assert [job.keep for job in engine.jobs] == [False] * denied + [True] * (len(engine.jobs) - denied)
    assert 0 < denied < len(engine.jobs)
