"""`foretype bench context`: milliseconds to gather and choose the context of a cursor, on an index."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from daemon import roots
from daemon.bench import repo, stats
from daemon.bench.indexchild import IndexChild
from daemon.bench.outcome import Outcome, table
from daemon.context import budget, cursor
from daemon.context.oneline import WORD
from daemon.context.tiers import Tiers
from daemon.readers import Found
from daemon.settings import Context
from daemon.surroundings import Surroundings
from indexer import crew, tokens
from indexer.frames import DATABASE, Plan
from indexer.read import Reader
from indexer.records import FileRow, ParsedFile
from indexer.render import CALLABLES, TYPES

Progress = Callable[[int, int], None]
_ABOVE, _BELOW = 40, 8
"""Lines that the window shows around the cursor."""
_NEAR = 12
_WARM = 50
_ROOM, _TAKEN = 4096, 1024
"""Tokens of the prompt, and of them the window's."""


@dataclass(frozen=True)
class Target:
    """What is indexed: a folder of one's own, or so many generated lines; how many builds."""

    root: Path | None
    generate: int
    seed: int
    builds: int
    vocabulary: str


class _Only:
    """The one index of this measurement, without registering it."""

    def __init__(self, reader: Reader, root: Path) -> None:
        self._reader, self._root = reader, root

    def find(self, path: str) -> Found:
        """Every path is inside."""
        return Found(self._reader, self._root, Path(path).relative_to(self._root).as_posix())

    def overlay(self) -> Mapping[tuple[str, str], tuple[ParsedFile, bytes]]:
        """No file is open."""
        return {}


async def run(target: Target, progress: Progress) -> Outcome:
    """Index in a temporary folder, then build at random places."""
    outcome = Outcome(name="context", seed=target.seed)
    with tempfile.TemporaryDirectory(prefix="foretype-bench-") as name:
        root, folder = Path(name) / "root", Path(name) / "index"
        outcome.notes += repo.put(root, target.root, target.generate, target.seed)
        root = roots.normal(root)
        with IndexChild(root, folder, Plan(vocabulary=target.vocabulary), once=True) as child:
            await child.finished(progress)
        with closing(Reader(folder / DATABASE)) as reader:
            _measure(reader, root, target, outcome, progress)
    rows = [[name.replace("_", " "), value] for name, value in outcome.figures.items()]
    outcome.tables.append(table("context", ["", "figure"], rows))
    return outcome


def _measure(reader: Reader, root: Path, target: Target, outcome: Outcome, progress: Progress) -> None:
    only = _Only(reader, root)
    tiers, settings = Tiers(only, only), Context()
    tokenizer, _ = crew.tokenizer_of(target.vocabulary)
    count = (lambda text: tokens.count(tokenizer.encode(text))) if tokenizer else len
    rows: list[tuple[float, ...]] = []
    places = _places(reader, root, random.Random(target.seed))
    for number in range(_WARM + target.builds):
        around, text, shown = next(places)
        window = "\n".join(text.split("\n")[shown[0] : shown[1]])
        worked, began = time.thread_time(), time.perf_counter()
        found = tiers.candidates(around, text, shown)
        gathered = time.perf_counter()
        chosen = budget.choose(
            found,
            room=_ROOM,
            taken=_TAKEN,
            shares=settings.shares,
            count=count,
            shown=window,
            best=settings.best,
        )
        ended, spent = time.perf_counter(), time.thread_time() - worked
        if number >= _WARM:
            times = (ended - began, spent, gathered - began, ended - gathered)
            rows.append((*(1000 * t for t in times), len(found), sum(chosen.tokens.values())))
        progress(number + 1, _WARM + target.builds)
    whole, cpu, gather, choose, candidates, chosen_tokens = zip(*rows, strict=True)
    outcome.figures.update(
        build_ms_p50=stats.percentile(whole, 0.5),
        build_ms_p99=stats.percentile(whole, 0.99),
        build_cpu_ms_p50=stats.percentile(cpu, 0.5),
        build_cpu_ms_p99=stats.percentile(cpu, 0.99),
        gather_ms_p99=stats.percentile(gather, 0.99),
        choose_ms_p99=stats.percentile(choose, 0.99),
        candidates_mean=stats.mean(candidates),
        tokens_mean=stats.mean(chosen_tokens),
    )


def _places(
    reader: Reader, root: Path, rng: random.Random
) -> Iterator[tuple[Surroundings, str, tuple[int, int]]]:
    """Random cursors inside functions, for ever."""
    rows = [row for row in _rows(reader) if not row.reason and row.language and row.lines > _BELOW]
    while True:
        row = rng.choice(rows)
        symbols = reader.symbols(row.path)
        functions = [s for s in symbols if s.kind in CALLABLES]
        if not functions:
            continue
        inner = rng.choice(functions)
        line = rng.randrange(inner.span.start_line, max(inner.span.end_line, inner.span.start_line + 1))
        chain = [
            cursor.scope(s)
            for s in symbols
            if s.span.start_line <= line < s.span.end_line and (s.kind in CALLABLES or s.kind in TYPES)
        ]
        text = (root / row.path).read_text(encoding="utf-8", errors="replace")
        lines = text.split("\n")
        near = (n for far in range(_NEAR) for n in dict.fromkeys((line - far, line + far)))
        names = dict.fromkeys(w for n in near if 0 <= n < len(lines) for w in WORD.findall(lines[n]))
        imports = tuple(name for item, _ in reader.imports(row.path) for name in item.names)
        around = Surroundings(
            path=row.path, root=str(root), language=row.language, chain=tuple(chain), names=tuple(names),
            imports=imports, line=line,
        )  # fmt: skip
        yield around, text, (max(0, line - _ABOVE), min(len(lines), line + _BELOW))


def _rows(reader: Reader) -> Iterator[FileRow]:
    page: Sequence[FileRow] = reader.files()
    while page:
        yield from page
        page = reader.files(after=page[-1].path)
