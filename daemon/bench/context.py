"""`foretype bench context`: milliseconds to classify a cursor and to build its context, on an index.

What runs is the daemon's own planner, told of documents as an editor tells it: a person works in a file and
in files that it refers to or that refer to it, each open and unsaved, at several places of each in turn.

    cold    the first request in a file: nothing of it was read before; SQLite's pages may be in memory
    warm    later requests in those files, each at another place and with other text typed there, so that
            neither the position, nor its names, nor the parse of the buffer were asked for before

`pause` is what the documents' own threads make of a new text once nobody types: tree, symbols, outlines.
`classify` is Document → Surroundings → WindowClass; `build` is everything that idle time does then to choose
the context that follows: the unsaved buffers that differ from their files, candidates, redaction, budget with
exact tokens, and the states of the files that are shown. The room is that of a machine that need not save
tokens.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from daemon import roots
from daemon.bench import repo, stats
from daemon.bench.indexchild import IndexChild
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.context import cursor, window
from daemon.context.layout import Layout
from daemon.context.planner import Planned, Planner
from daemon.documents.mirror import Mirror
from daemon.machine import EngineProfile, FimIds, ModelFacts
from daemon.nouns import CompletionRequest
from daemon.readers import Found
from daemon.settings import Context, Engine
from indexer import crew, tokens
from indexer.frames import DATABASE, Plan
from indexer.read import Reader
from indexer.records import FileRow
from indexer.render import CALLABLES
from indexer.vocabulary import FORMAT, Vocabulary

_FILES, _VISITS = 4, 4
"""Files of one piece of work, and the places at which each is asked for."""
_LEAST_LINES = 12
_SETTLED_S = 10.0
_PLAIN = Vocabulary(
    format=FORMAT, sha256="0" * 64, kind="bpe", pre="gpt-2", pieces=[bytes([b]) for b in range(256)]
)
"""Where there is no model's vocabulary, a byte is a token."""


@dataclass(frozen=True)
class Target:
    """What is indexed: a folder of one's own, or so many generated lines; how many warm builds."""

    root: Path | None
    generate: int
    seed: int
    builds: int
    vocabulary: str


class Times:
    """Milliseconds of one kind of request, warm or cold: by the clock, and of all threads together."""

    def __init__(self) -> None:
        self._spent: dict[str, list[float]] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count what is inside."""
        began, worked = time.perf_counter(), time.process_time()
        yield
        self._spent.setdefault(f"{name}_cpu_ms", []).append(1000 * (time.process_time() - worked))
        self._spent.setdefault(f"{name}_ms", []).append(1000 * (time.perf_counter() - began))

    def count(self) -> int:
        """How many builds."""
        return len(self._spent.get("build_ms", ()))

    def figures(self, ending: str) -> Figures:
        """By name, `ending` behind it."""
        return {
            f"{name}_p{percent}{ending}": stats.percentile(values, percent / 100)
            for name, values in sorted(self._spent.items())
            for percent in (50, 99)
        }


class _Only:
    """The one index of this measurement, without registering it."""

    def __init__(self, reader: Reader, root: Path) -> None:
        self._reader, self._root = reader, root

    def find(self, path: str) -> Found | None:
        """Every path is inside."""
        return Found(self._reader, self._root, Path(path).relative_to(self._root).as_posix())


async def run(target: Target, progress: Progress) -> Outcome:
    """Index in a temporary folder, then work at random places."""
    outcome = Outcome(name="context", seed=target.seed)
    with tempfile.TemporaryDirectory(prefix="foretype-bench-") as name:
        root, folder = Path(name) / "root", Path(name) / "index"
        if target.root is None:
            lines = repo.generate(root, target.generate, target.seed)
            outcome.notes.append(f"generated {lines} lines with seed {target.seed}")
        else:
            shutil.copytree(target.root, root, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        root = roots.normal(root)
        with IndexChild(root, folder, Plan(vocabulary=target.vocabulary), once=True) as child:
            await child.finished(progress)
        with closing(Reader(folder / DATABASE)) as reader:
            measure(reader, root, target, outcome, progress)
    rows = [[name.replace("_", " "), value] for name, value in outcome.figures.items()]
    outcome.tables.append(table("context", ["", "figure"], rows))
    return outcome


def measure(reader: Reader, root: Path, target: Target, outcome: Outcome, progress: Progress) -> None:
    """Work until `target.builds` warm builds are measured."""
    warm, cold = Times(), Times()
    pieces: list[int] = []
    spent: list[int] = []
    rng = random.Random(target.seed)
    work = _work(reader, rng)
    only, layout = _Only(reader, root), _layout(target.vocabulary)
    while warm.count() < target.builds:
        mirror = Mirror(only)
        try:
            planner = Planner(layout, mirror, only, Context())
            for visit, path in next(work):
                times = warm if visit else cold
                planned = _classified(mirror, planner, _request(root, path, reader, rng), times)
                with times.of("build"):
                    following = planner.following(planned)
                if following is not None:
                    planner.begin(planned.around, following)
                    pieces.append(len(following.pieces))
                    spent.append(sum(layout.count(piece.text) for piece in following.pieces))
                progress(min(warm.count(), target.builds), target.builds)
        finally:
            mirror.shut()
    outcome.figures.update(warm.figures(""), **cold.figures("_cold"))
    outcome.figures.update(pieces_mean=stats.mean(pieces), tokens_mean=stats.mean(spent))


def _classified(mirror: Mirror, planner: Planner, request: CompletionRequest, times: Times) -> Planned:
    """The plan of a request, its class timed apart, as it is after a pause in typing."""
    with times.of("pause"):
        mirror.see(request)
        mirror.settle(_SETTLED_S)
    document = mirror.see(request)
    with times.of("classify"):
        around = cursor.around(document)
        with times.of("classify_alone"):
            window.classify(around, request.prefix, request.suffix, "auto", rate=0.0, settings=Context())
    return planner.plan(request)


def _layout(vocabulary: str) -> Layout:
    """Of a model without weights, on a machine that evaluates everything at once."""
    tokenizer = crew.tokenizer_of(vocabulary)[0] or tokens.TiktokenTokenizer(_PLAIN)
    fim = FimIds(pre=0, mid=1, suf=2, pad=3, rep=4, sep=5)
    context = Engine().context
    facts = ModelFacts(
        name="", path="", sha256="", architecture="", vocabulary=0, trained_context=context, fim=fim
    )
    profile = EngineProfile(model=facts, backend="", device="", why="", threads=1, context=context)
    return Layout(tokenizer, profile, Context())


def _work(reader: Reader, rng: random.Random) -> Iterator[list[tuple[int, str]]]:
    """Pieces of work, for ever: (how often the file was asked for before, path) of each request."""
    rows = [row for row in _rows(reader) if _holds_functions(reader, row)]
    kept = {row.path for row in rows}
    while True:
        first = rng.choice(rows).path
        linked = [e.path for e in (*reader.edges(first), *reader.edges_to(first))]
        files = list(dict.fromkeys(p for p in (first, *linked) if p in kept))[:_FILES]
        turns = [(visit, path) for visit in range(1, _VISITS + 1) for path in files]
        yield [*((0, path) for path in files), *turns]


def _holds_functions(reader: Reader, row: FileRow) -> bool:
    if row.reason or not row.language or row.lines <= _LEAST_LINES:
        return False
    return any(s.kind in CALLABLES for s in reader.symbols(row.path))


def _request(root: Path, path: str, reader: Reader, rng: random.Random) -> CompletionRequest:
    """A random line of a random function as it is typed: its rest and the next line are missing."""
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    lines = text.split("\n")
    inner = rng.choice([s for s in reader.symbols(path) if s.kind in CALLABLES]).span
    number = rng.randrange(inner.start_line, max(inner.end_line, inner.start_line + 1))
    number = min(number, len(lines) - 1)
    line = lines[number]
    indent = len(line) - len(line.lstrip())
    prefix = "\n".join([*lines[:number], line[: rng.randrange(indent, len(line) + 1)]])
    suffix = "\n" + "\n".join(lines[number + 2 :])
    return CompletionRequest(
        id="", client="bench", door="native", prefix=prefix, suffix=suffix, path=str(root / path), whole=True
    )


def _rows(reader: Reader) -> Iterator[FileRow]:
    page: Sequence[FileRow] = reader.files()
    while page:
        yield from page
        page = reader.files(after=page[-1].path)
