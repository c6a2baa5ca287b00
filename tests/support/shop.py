"""A shop in two files, indexed, and questions asked in one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from support.indexing import index_once
from support.scripted import VOCABULARY, ScriptedEngine
from support.waiting import until

from daemon import roots
from daemon.engine.frames import Submit
from daemon.nouns import Completion, CompletionRequest, Limits
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Context, Recall, Settings
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
    await made.planning.prepare()
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
