"""Twins of the callable around the cursor: found beside the loop, drafted from, never more than a guess."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.repository import around, indexed
from support.scripted import VOCABULARY, ScriptedEngine
from support.waiting import until
from test_engine_drafts import CHEAP, FIM, KNOWN, PIECES, drive

from daemon.engine.drafts import Drafts
from daemon.engine.frames import Submit
from daemon.nouns import CompletionRequest, Limits
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.readers import Readers
from daemon.recall.similar import twins
from daemon.settings import Context, Settings
from indexer.tokens import TiktokenTokenizer, to_bytes

TWIN = """\
def load_order(path: Path, count: int) -> list[Order]:
    rows = read_rows(path)
    return [Order(row) for row in rows[:count]]
"""
HERE = """\
def load_order(path: Path, limit: int) -> list[Order]:
    rows = path
"""
FILES = {
    "twin.py": TWIN,
    "other.py": "def close(self) -> None:\n    self.done = True\n",
    "here.py": HERE,
    "secrets.py": TWIN.replace("read_rows(path)", "'AKIAQ3EGRXK5D7MN2PLW'"),
}


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Readers]:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))
    return indexed(tmp_path / "shop", FILES)


def test_only_a_near_twin_of_another_file_counts(found: tuple[Path, Readers]) -> None:
    root, readers = found
    holder = readers.find(str(root / "here.py"))
    assert holder is not None
    here = around(root, "here.py", HERE, "rows = ")
    assert twins(holder.reader, here) == [("twin.py", TWIN.rstrip("\n"))]
    far = around(root, "other.py", FILES["other.py"], "self.done")
    assert twins(holder.reader, far) == []
    readers.close()


async def test_the_engine_gets_a_twin_once_it_is_found(found: tuple[Path, Readers], tmp_path: Path) -> None:
    root, readers = found
    readers.close()
    engine = ScriptedEngine(lambda job: "x\n", vocabulary=tmp_path / "vocabulary")
    pipeline = Pipeline(engine, Settings(context=Context(idle=False)), Metrics())

    async def ask(path: str, text: str, at: int) -> Submit:
        request = CompletionRequest(
            id="1", client="c", door="t", prefix=text[:at], suffix=text[at:], path=str(root / path),
            whole=True, limits=Limits(lines="line"), recall=False,
        )  # fmt: skip
        await pipeline.complete(request)
        return engine.jobs[-1]

    at = HERE.index("rows =") + 7
    assert (await ask("here.py", HERE, at)).guesses == b""
    await until(lambda: any(ids for ids, _ in pipeline.recall.similar._known.values()), 5)
    job = await ask("here.py", HERE, at)
    assert job.guesses == TiktokenTokenizer(VOCABULARY).encode(TWIN.rstrip("\n"))
    assert (await ask("other.py", FILES["other.py"], 40)).guesses == b""
    pipeline.recall.similar.left_out = lambda path: path == str(root / "twin.py")
    assert (await ask("here.py", HERE, at)).guesses == b""
    assert not any(ids for ids, _ in pipeline.recall.similar._known.values())
    await pipeline.close()
    await asyncio.sleep(0)


def test_guesses_are_a_source_of_drafts_like_any_other() -> None:
    prompt = [90, 1, 91, 50, 92, 3, 4]
    drafts = Drafts(PIECES, FIM, CHEAP)
    done = drive(drafts, prompt, KNOWN[5:25], guesses=to_bytes(KNOWN))
    assert done.steps <= 4
    assert done.accepted["similar"] > 0
    assert next(source for source in drafts.report() if source.name == "similar").length > 0
    wrong = [random % 60 for random in range(7, 7 + 40 * 13, 13)]
    drafts = Drafts(PIECES, FIM, CHEAP)
    for run in range(20):
        drive(drafts, prompt, KNOWN[5:25], run=str(run), guesses=to_bytes(wrong))
    assert drafts.judge.steps["similar"] < 20
