"""`foretype bench index --soak CHANGES`: a long life of an index in a short time; 50,000 changes are a day's.

Random work on a checkout at a steady pace, in rounds, while a reader asks; after each round the indexer's
memory and log are looked at. What grows with the changes is a leak: the slope is that of a line through the
memory after the warm-up. At the end the database must equal that of an index made anew.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from daemon import roots
from daemon.bench.churn import WORDS, Work
from daemon.bench.equivalence import dump, ready, settled, silent
from daemon.bench.indexchild import IndexChild
from daemon.bench.outcome import Figures, Outcome, Progress, table
from indexer.frames import DATABASE, Plan
from indexer.read import Reader

_ROUND = 50
_PER_S = 100
"""Changes a second at most: 50,000 take 500 s."""
_WARM = 0.2
"""Share of the rounds before the slope begins: caches fill."""
_REST_S = 5.0
"""Idle time in which an indexer empties its log."""
_LOOK_S = 0.05
_MB = 1e6


@dataclass(frozen=True, slots=True)
class _Look:
    """The indexer after so many changes; bytes."""

    changes: int
    rss: int
    wal: int


async def run(changes: int, seed: int, vocabulary: str, progress: Progress) -> Outcome:
    """The whole life, in a temporary folder. Raises RuntimeError when an index does not become ready."""
    outcome = Outcome(name="soak", seed=seed)
    plan = Plan(vocabulary=vocabulary)
    with tempfile.TemporaryDirectory(prefix="foretype-bench-") as name:
        folder = roots.normal(Path(name))
        work, live = Work(folder / "root", seed), folder / "live"
        with IndexChild(work.root, live, plan, once=False) as child:
            await child.until(ready, progress)
            first, began = child.descriptors(), time.monotonic()
            looks = await _live(work, child, live, changes, progress)
            seconds = time.monotonic() - began
            equal = await _equal(work.root, live, folder / "anew", plan)
            await asyncio.sleep(_REST_S)
            last, wal = child.descriptors(), _wal(live)
    outcome.figures = {
        "soak_changes": float(changes),
        "changes_per_s": changes / seconds,
        **_memory(looks),
        "wal_mb": wal / _MB,
        "wal_peak_mb": max(look.wal for look in looks) / _MB,
        "descriptors_first": float(first),
        "descriptors_last": float(last),
        "equal": float(equal),
    }
    rows = [[name.replace("_", " "), value] for name, value in outcome.figures.items()]
    outcome.tables.append(table("a long life of an index", ["", "figure"], rows))
    return outcome


async def _live(work: Work, child: IndexChild, live: Path, changes: int, progress: Progress) -> list[_Look]:
    looks: list[_Look] = []
    due = time.monotonic()
    with Reader(live / DATABASE) as reader:
        while work.done < changes:
            work.do(min(_ROUND, changes - work.done))
            due = max(due + _ROUND / _PER_S, time.monotonic() + _LOOK_S)
            while time.monotonic() < due:
                await asyncio.sleep(_LOOK_S)
                reader.definitions(WORDS[work.done % len(WORDS)])
            if child.ended:
                raise RuntimeError(f"the indexer ended after {work.done} changes")
            looks.append(_Look(work.done, child.rss(), _wal(live)))
            progress(work.done, changes)
    return looks


def _memory(looks: Sequence[_Look]) -> Figures:
    """Levels of the first and the last tenth after the warm-up, and the slope between."""
    warm = looks[int(len(looks) * _WARM) :]
    tenth = max(1, len(warm) // 10)
    slope = 0.0
    if len(warm) > 1:
        slope = statistics.linear_regression([w.changes for w in warm], [w.rss for w in warm]).slope
    return {
        "rss_first_mb": statistics.median(look.rss for look in warm[:tenth]) / _MB,
        "rss_last_mb": statistics.median(look.rss for look in warm[-tenth:]) / _MB,
        "rss_slope_mb_per_10k": slope * 10_000 / _MB,
    }


async def _equal(root: Path, live: Path, anew: Path, plan: Plan) -> bool:
    """Whether the kept index comes to hold what one made anew does."""
    with IndexChild(root, anew, plan, once=True) as child:
        await child.finished(silent)
    wanted = dump(anew)
    return await settled(live, wanted) == wanted


def _wal(folder: Path) -> int:
    log = folder / f"{DATABASE}-wal"
    return log.stat().st_size if log.exists() else 0
