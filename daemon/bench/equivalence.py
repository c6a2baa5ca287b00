"""`foretype bench index --operations N --kills K`: whatever happened, the index equals a fresh one.

Random work on a checkout while its index is kept; then the same with the indexer killed at random moments,
while it starts, walks, writes or idles. After every kill, and every so many operations, all that the reading
side shows is compared with that of an index made anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daemon import roots
from daemon.bench.churn import WORDS, Work
from daemon.bench.indexchild import IndexChild
from daemon.bench.outcome import Outcome, Progress, table
from indexer.errors import IndexDamaged
from indexer.frames import DATABASE, Plan, RootState
from indexer.read import Reader

_ROUND = 25
"""Operations between two comparisons."""
_PATIENCE_S = 120.0
_LOOK_S = 0.05
_MOMENT_S = 1.5
"""A kill comes within so much time after the work, or after the start."""
_STARTING = 0.4
"""Share of the kills that meet an indexer which was started a moment ago."""


async def run(operations: int, kills: int, seed: int, progress: Progress) -> Outcome:
    """Both parts, in a temporary folder. Raises RuntimeError when an index does not become ready."""
    outcome = Outcome(name="equivalence", seed=seed)
    with tempfile.TemporaryDirectory(prefix="foretype-bench-") as name:
        trial = _Trial(roots.normal(Path(name)), seed)
        total = operations + kills
        await trial.work(operations, lambda done: progress(done, total))
        await trial.kill(kills, lambda done: progress(operations + done, total))
        outcome.figures = {
            "operations": float(trial.checkout.done),
            "kills": float(trial.kills),
            "comparisons": float(trial.comparisons),
            "different": float(len(trial.different)),
            "put_aside": float(len(list(trial.live.glob(f"{DATABASE}.damaged-*")))),
        }
    outcome.notes += trial.different[:20]
    rows = [[name.replace("_", " "), value] for name, value in outcome.figures.items()]
    outcome.tables.append(table("index kept against index made anew", ["", "count"], rows))
    return outcome


class _Trial:
    """One checkout and its kept index. `different`: what differed, one line a comparison."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.checkout = Work(folder / "root", seed)
        self.live = folder / "live"
        self.kills = self.comparisons = 0
        self.different: list[str] = []
        self._anew = folder / "anew"
        self._rng = random.Random(seed)

    async def work(self, operations: int, progress: Callable[[int], None]) -> None:
        """Operations under a running indexer."""
        if not operations:
            return
        with self._child() as child:
            await child.until(ready, silent)
            for done in range(0, operations, _ROUND):
                self.checkout.do(min(_ROUND, operations - done))
                await self._compare(f"after {self.checkout.done} operations")
                progress(done)

    async def kill(self, kills: int, progress: Callable[[int], None]) -> None:
        """A few operations, a kill, a comparison with what the next indexer makes of it; so many times."""
        while self.kills < kills:
            with self._child() as child:
                if self._rng.random() >= _STARTING:
                    await child.until(ready, silent)
                self.checkout.do(self._rng.randrange(1, 15))
                await asyncio.sleep(self._rng.random() * _MOMENT_S)
                child.kill()
            self.kills += 1
            with self._child():
                await self._compare(f"after kill {self.kills}")
            progress(self.kills)

    def _child(self, folder: Path | None = None, once: bool = False) -> IndexChild:
        return IndexChild(self.checkout.root, folder or self.live, Plan(), once=once)

    async def _compare(self, when: str) -> None:
        """Give the kept index time to become equal to one made anew."""
        shutil.rmtree(self._anew, ignore_errors=True)
        with self._child(self._anew, once=True) as child:
            await child.finished(silent)
        wanted = dump(self._anew)
        now = await settled(self.live, wanted)
        self.comparisons += 1
        if now != wanted:
            keys = sorted(k for k in now.keys() | wanted.keys() if now.get(k) != wanted.get(k))
            self.different.append(f"{when}: {len(keys)} differ, such as {', '.join(keys[:3])}")


async def settled(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """What the index in `folder` holds once that is `wanted`, or when it has had its time."""
    deadline, now = time.monotonic() + _PATIENCE_S, dict[str, Any]()
    while now != wanted and time.monotonic() < deadline:
        await asyncio.sleep(_LOOK_S)
        with contextlib.suppress(IndexDamaged):
            now = dump(folder)
    return now


def ready(state: RootState | None) -> bool:
    """Whether the root's index is complete."""
    return state is not None and state.phase == "ready"


def silent(done: int, total: int) -> None:
    """Progress that nobody is told."""


def dump(folder: Path) -> dict[str, Any]:
    """Everything that the reading side shows of each file, times left out. Raises IndexDamaged."""
    found: dict[str, Any] = {}
    with Reader(folder / DATABASE) as reader:
        page = reader.files()
        while page:
            for row in page:
                path = row.path
                found[path] = (
                    (row.size, row.digest, row.language, row.reason, row.lines, row.tokens),
                    reader.symbols(path),
                    reader.references(path),
                    reader.imports(path),
                    reader.outlines(path),
                    reader.chunks(path),
                    sorted((e.path, e.imports, e.uses) for e in reader.edges(path)),
                )
            page = reader.files(after=page[-1].path)
        for word in WORDS:
            places = [(p.path, p.number) for p in reader.definitions(word, 100)]
            uses = [(u.path, u.reference.line, u.reference.start_byte) for u in reader.callers(word, 100)]
            found[f"//{word}"] = sorted(places), sorted(uses)
    return found
