"""`foretype bench index`: first index, second start, change → searchable, queries; on a copy of a folder."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from daemon import roots
from daemon.bench import repo, stats
from daemon.bench.indexchild import IndexChild
from daemon.bench.outcome import Figures, Outcome, Progress, table
from indexer import similarity
from indexer.frames import DATABASE, Plan, RootState
from indexer.read import Reader
from indexer.records import FileRow

_MB = 1e6
_EDITS = {
    ".py": "\n\ndef {name}(first: int) -> int:\n    return first\n",
    ".ts": "\nexport function {name}(first: number): number {{\n  return first;\n}}\n",
    ".go": "\nfunc {name}(first int) int {{\n\treturn first\n}}\n",
    ".java": "\nclass {name} {{\n}}\n",
    ".rs": "\npub fn {name}(first: u32) -> u32 {{\n    first\n}}\n",
}


@dataclass(frozen=True)
class Target:
    """What is indexed: a folder of one's own, or so many generated lines."""

    root: Path | None
    generate: int
    seed: int
    changes: int
    vocabulary: str
    find_s: float = 10.0
    """After which a change that is not found is given up, and said."""


async def run(target: Target, progress: Progress) -> Outcome:
    """All four measurements, in a temporary folder."""
    outcome = Outcome(name="index", seed=target.seed)
    with tempfile.TemporaryDirectory(prefix="foretype-bench-") as name:
        root, folder = Path(name) / "root", Path(name) / "index"
        outcome.notes += repo.put(root, target.root, target.generate, target.seed)
        plan = Plan(vocabulary=target.vocabulary)
        outcome.figures.update(await _first(roots.normal(root), folder, plan, outcome, progress))
        outcome.figures["restart_s"] = await _second(roots.normal(root), folder, plan, progress)
        if target.changes:
            figures, lost = await _live(roots.normal(root), folder, plan, target, progress)
            outcome.figures.update(figures)
            outcome.notes += [
                f"given up after {target.find_s:g} s, counted so: a change of {p}" for p in lost
            ]
    rows = [[name.replace("_", " "), value] for name, value in outcome.figures.items()]
    outcome.tables.append(table("index", ["", "figure"], rows))
    if not target.vocabulary:
        outcome.notes.append("no model's vocabulary is here: without token counts and n-grams")
    return outcome


async def _first(root: Path, folder: Path, plan: Plan, outcome: Outcome, progress: Progress) -> Figures:
    with IndexChild(root, folder, plan, once=True) as child:
        seconds = await child.finished(progress)
    state = child.state
    if state is None or not state.complete:
        raise RuntimeError(f"the first index was not completed: {state}")
    with Reader(folder / DATABASE) as reader:
        files = list(_rows(reader))
    source = sum(row.size for row in files if not row.reason)
    stored = (folder / DATABASE).stat().st_size
    outcome.notes += [f"skipped, {why}: {seen.count}" for why, seen in state.skipped.items()]
    return {
        "files": float(state.files),
        "lines": float(state.lines),
        "first_s": seconds,
        "lines_per_s": stats.ratio(state.lines, seconds),
        "lines_per_cpu_s": stats.ratio(state.lines, child.cpu_s),
        "peak_rss_mb": child.peak_rss / _MB,
        "db_mb": stored / _MB,
        "ngram_mb": state.ngram_bytes / _MB,
        "db_ratio": stats.ratio(stored, source),
    }


async def _second(root: Path, folder: Path, plan: Plan, progress: Progress) -> float:
    with IndexChild(root, folder, plan, once=True) as child:
        return await child.finished(progress)


async def _live(
    root: Path, folder: Path, plan: Plan, target: Target, progress: Progress
) -> tuple[Figures, list[str]]:
    """The figures, and the files whose change was not found."""
    rng = random.Random(target.seed)
    with (
        IndexChild(root, folder, plan, once=False) as child,
        Reader(folder / DATABASE) as reader,
    ):
        await child.until(_ready, progress)
        rows = [row for row in _rows(reader) if Path(row.path).suffix in _EDITS and not row.reason]
        queries = _Queries(reader, rows, rng)
        delays, lost = [], []
        for number in range(target.changes):
            path = rng.choice(rows).path
            delays.append(await _change(root / path, number, target.find_s, reader, queries))
            if delays[-1] > target.find_s * 1000:
                lost.append(path)
            child.sample()
            progress(number + 1, target.changes)
    return {
        "changes_lost": float(len(lost)),
        "change_ms_p50": stats.percentile(delays, 0.5),
        "change_ms_p99": stats.percentile(delays, 0.99),
        "query_ms_p50": stats.percentile(queries.times, 0.5),
        "query_ms_p99": stats.percentile(queries.times, 0.99),
        "queries": float(len(queries.times)),
        "live_rss_mb": child.peak_rss / _MB,
    }, lost


def _ready(state: RootState | None) -> bool:
    return state is not None and state.phase == "ready"


async def _change(place: Path, number: int, find_s: float, reader: Reader, queries: _Queries) -> float:
    """Append a new name to a file; milliseconds until the reading side finds it, while queries run.

    It is given up after `find_s`: files become too large, or are beyond their grammar.
    """
    name = f"Fresh{number}x{time.time_ns() % 100_000}"
    with place.open("a", encoding="utf-8") as file:
        file.write(_EDITS[place.suffix].format(name=name))
    began = time.perf_counter()
    while not reader.definitions(name) and time.perf_counter() - began <= find_s:
        queries.one()
        await asyncio.sleep(0.001)
    return (time.perf_counter() - began) * 1000


class _Queries:
    """The questions of a context builder, in turn, about files and names of the index."""

    def __init__(self, reader: Reader, rows: Sequence[FileRow], rng: random.Random) -> None:
        self.times: list[float] = []
        self._reader, self._rng = reader, rng
        self._paths = [row.path for row in rng.sample(rows, min(300, len(rows)))]
        places = [s for path in self._paths for s in reader.symbols(path)]
        self._symbols = rng.sample(places, min(500, len(places)))
        self._turn = 0

    def one(self) -> None:
        """Ask one question, and note how many milliseconds it took."""
        reader, symbol, path = self._reader, self._rng.choice(self._symbols), self._rng.choice(self._paths)
        bands = similarity.query_bands(symbol.signature)
        kinds: tuple[Callable[[], object], ...] = (
            lambda: reader.definitions(symbol.name, near=path),
            lambda: reader.import_outlines(path),
            lambda: reader.callers(symbol.name, near=path),
            lambda: reader.similar(bands, apart=path),
        )
        ask = kinds[self._turn % len(kinds)]
        self._turn += 1
        began = time.perf_counter()
        ask()
        self.times.append((time.perf_counter() - began) * 1000)


def _rows(reader: Reader) -> list[FileRow]:
    rows: list[FileRow] = []
    page: Sequence[FileRow] = reader.files()
    while page:
        rows += page
        page = reader.files(after=page[-1].path)
    return rows
