"""An engine that knows how documents go on, a pipeline over it, and what its answers must be."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.scripted import ScriptedEngine
from support.waiting import until

from daemon.context.planner import Planned
from daemon.engine.frames import Submit
from daemon.nouns import Completion, CompletionRequest, Generation, Limits
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Complete, Recall, Settings
from indexer.tokens import to_ids

LINES = (
    "total = sum(item.price for item in items)",
    "names = [item.name for item in items if item]",
    "report(total, names, width=80)",
)
NOTHING = "else_where()"
"""Said where a document does not go on."""
PRE, MID, SUF = 256, 257, 258


class Typing:
    """`rows` are what every request went through, `unplanned` those that were over before, as the ledger
    would get them."""

    def __init__(
        self,
        folder: Path,
        *,
        coalesce_ms: int = 60_000,
        lines: tuple[str, ...] = LINES,
        recall: Recall | None = None,
    ) -> None:
        """Without `recall` every answer is a run."""
        self.lines = lines
        self.engine = ScriptedEngine(self._script, vocabulary=folder / "vocabulary")
        self.metrics = Metrics()
        settings = Settings(complete=Complete(coalesce_ms=coalesce_ms), recall=recall or Recall(on=False))
        self.pipeline = Pipeline(self.engine, settings, self.metrics)
        self.rows: list[tuple[Planned, Submit, Generation, Completion]] = []
        self.pipeline.record = lambda *passed: self.rows.append(passed)
        self.unplanned: list[tuple[CompletionRequest, Completion]] = []
        self.pipeline.unplanned = lambda *passed: self.unplanned.append(passed)
        self._numbers = 0

    def ask(self, typed: str, client: str = "me", line: int = 0, **more: Any) -> CompletionRequest:
        """A request whose cursor stands behind `typed` in the document of a line."""
        self._numbers += 1
        fields: dict[str, Any] = {"path": f"/project/doc{line}.py", "limits": Limits(lines="line")}
        return CompletionRequest(
            id=str(self._numbers),
            client=client,
            door="test",
            **{"prefix": f"# {line}\n{typed}", "suffix": "\n", **fields, **more},
        )

    def rest(self, request: CompletionRequest) -> str:
        """What must be answered."""
        return self._rest(request.prefix)

    def joined(self, how: str) -> int:
        """Requests that share a run: `same`, `said`, `awaited`; or `parted`."""
        return self.metrics.total("coalesced", how)

    def _script(self, job: Submit) -> str:
        ids = to_ids(job.tokens)
        shown = bytes(one for one in ids[ids.index(PRE) + 1 : ids.index(SUF)] if one < 256)
        middle = bytes(one for one in ids[ids.index(MID) :] if one < 256)
        return self._rest((shown + middle + job.must).decode())

    def _rest(self, prefix: str) -> str:
        typed = prefix.partition("\n")[2]
        found = (line for line in self.lines if typed and line.startswith(typed))
        return next(found, typed + NOTHING)[len(typed) :]


async def begun(typing: Typing, request: CompletionRequest) -> asyncio.Task[Completion]:
    """A request whose run the engine holds."""
    jobs = len(typing.engine.jobs)
    typing.engine.hold()
    task = asyncio.create_task(typing.pipeline.complete(request))
    await typing.engine.until(lambda: len(typing.engine.jobs) > jobs)
    return task


async def joining(typing: Typing, request: CompletionRequest, how: str) -> asyncio.Task[Completion]:
    """A request that shares a run."""
    before = typing.joined(how)
    task = asyncio.create_task(typing.pipeline.complete(request))
    await until(lambda: typing.joined(how) > before, 5)
    return task


async def gone(task: asyncio.Task[Completion]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@pytest.fixture
async def typing(tmp_path: Path) -> AsyncIterator[Typing]:
    found = Typing(tmp_path)
    yield found
    found.engine.go_on()
    await found.pipeline.close()
