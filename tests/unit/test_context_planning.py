"""From a request to its prompt with stable context, through a real index and the whole pipeline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from support.indexing import index_once
from support.scripted import PROFILE, VOCABULARY, ScriptedEngine
from support.waiting import until

from daemon import replay, roots
from daemon.engine.frames import Submit
from daemon.nouns import Completion, CompletionRequest, Extra, Limits
from daemon.observe.entries import Entry
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Complete, Context, Recall, Settings
from indexer.vocabulary import save

ORDERS = '''"""Orders and what they cost."""


class Order:
    """Lines of one customer."""

    customer: str

    def total_price(self, discount: float = 0.0) -> int:
        """Cents of all lines."""
        return int(sum(self.lines) * (1 - discount))


def load_orders(path: str) -> list[Order]:
    """All orders of a file."""
    return []
'''
REPORT = '''"""Reports."""

from orders import Order, load_orders


def summary(path: str) -> str:
    """One line for each order."""
    orders = load_orders(path)
    return "\\n".join(str(order.total_price()) for order in orders)


def biggest(path: str) -> Order:
    """The order that costs most."""
    orders = load_orders(path)
    best =@
'''
SETTINGS = Settings(context=Context(stable_ms=600_000, jump_ms=60_000), recall=Recall(on=False))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))
    root = roots.normal(tmp_path / "shop")
    root.mkdir()
    (root / "orders.py").write_text(ORDERS)
    (root / "report.py").write_text(REPORT.replace("@", ""))
    roots.add(root)
    index_once(root, roots.folder(root))
    return root


@pytest.fixture
async def engine(tmp_path: Path) -> ScriptedEngine:
    save(VOCABULARY, tmp_path / "vocabulary.msgpack")
    return ScriptedEngine(lambda job: " x\n", vocabulary=tmp_path / "vocabulary.msgpack")


@pytest.fixture
async def pipeline(engine: ScriptedEngine, root: Path) -> AsyncIterator[Pipeline]:
    made = Pipeline(engine, SETTINGS, Metrics())
    await made.prepare()
    yield made
    await made.close()


def ask(root: Path, typed: str = "", **more: object) -> CompletionRequest:
    before, after = REPORT.split("@")
    request = CompletionRequest(
        id="1",
        client="c",
        door="t",
        prefix=before + typed,
        suffix=after,
        path=str(root / "report.py"),
        whole=True,
        limits=Limits(lines="line", tokens=8),
    )
    return msgspec.structs.replace(request, **more)


async def resting(pipeline: Pipeline) -> None:
    await until(lambda: pipeline.resting)


def text(job: Submit) -> str:
    return bytes(i for i in memoryview(job.tokens).cast("i") if i < 256).decode()


def shown(done: Completion) -> list[str]:
    return [segment.source for segment in done.segments if segment.kind == "context"]


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


async def test_a_file_that_is_left_out_by_now_is_not_shown_any_more(
    pipeline: Pipeline, engine: ScriptedEngine, root: Path
) -> None:
    async def told(typed: str) -> bool:
        """Whether the other file is shown, at once; then idle work."""
        await pipeline.complete(ask(root, typed))
        job = next(job for job in reversed(engine.jobs) if not job.id.startswith("idle"))
        await resting(pipeline)
        return "def load_orders(path: str)" in text(job)

    assert [await told(typed) for typed in ("", " m")] == [False, True]
    (root / ".foretype.toml").write_text('[complete]\nignore = ["orders.py"]\n')
    assert [await told(typed) for typed in (" ma", " max", " max(")] == [False] * 3
    assert "def load_orders" not in text(engine.jobs[-1])
    (root / ".foretype.toml").unlink()
    assert [await told(typed) for typed in (" max(o", " max(or")] == [False, True]


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
