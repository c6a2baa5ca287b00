"""`foretype bench exactness`: greedy text with the cache against greedy text of a fresh evaluation.

Both evaluate with the same batch shapes, without drafts. On a CPU the logits are the same, bit by bit. On
other devices, or without flash attention, the order of additions may differ, which matters only where the two
best tokens are nearly tied: a difference is explained where both margins at the first different token are
within the noise that this run measured on tokens that agree.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from daemon.bench import keystrokes, ours, rig, stats, traces
from daemon.bench.outcome import Figures, Outcome, Progress, show, table
from daemon.errors import BadRequest

TOKENS = 16
UNMEASURED_NOISE = 0.5
"""Logits. Taken until enough tokens were compared, and never exceeded: a fault must not explain itself."""
ENOUGH = 200
"""Compared tokens that make a measured noise."""
LINE = 12
"""A line shorter than this is not typed again."""
UNEXPLAINED = "UNEXPLAINED"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    trace: Path | None
    python: Path | None
    start: int | None
    limit: int
    seed: int
    model: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One edit asked twice. Margins: best logit minus second best, per generated token."""

    source: str
    edit: int
    cached: ours.Answer
    fresh: ours.Answer

    @property
    def equal(self) -> bool:
        """Whether both generated the same text."""
        return self.cached.raw == self.fresh.raw

    @property
    def place(self) -> int:
        """Characters that agree."""
        return stats.common_prefix(self.cached.raw, self.fresh.raw)

    @property
    def split(self) -> int | None:
        """Number of the first generated token that differs, or None when it cannot be told."""
        left, right = self.cached.tokens, self.fresh.tokens
        different = (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)
        return next(different, None)


def python_source(given: Path | None) -> tuple[str, str]:
    """(name, text) of the file to edit: the one given, or a module of the standard library."""
    spec = importlib.util.find_spec("argparse")
    path = given or (Path(spec.origin) if spec and spec.origin else None)
    if path is None:
        raise BadRequest("this Python has no source files", "Give --python FILE")
    try:
        return path.name, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path} cannot be read: {error}", "Give --python FILE") from error


def typed_again(name: str, text: str, seed: int, count: int) -> traces.Trace:
    """`count` edits of `text`: at seeded lines, remove what is there and type it again with a few slips,
    then jump elsewhere."""
    chance = random.Random(seed)
    edits: list[traces.Edit] = []
    now = text
    while len(edits) < count:
        before = len(edits)
        for patch in _burst(now, chance):
            now = traces.apply(now, (patch,))
            edits.append(traces.Edit(float(len(edits)), (patch,)))
        if len(edits) == before:
            raise BadRequest(f"{name} has no line of {LINE} characters or more")
    kept = tuple(edits[:count])
    end = text
    for edit in kept:
        end = traces.apply(end, edit.patches)
    return traces.Trace(name, text, end, kept)


def _burst(text: str, chance: random.Random) -> Iterator[traces.Patch]:
    starts, position = [], 0
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if len(line) - indent >= LINE:
            starts.append((position + indent, line[indent:]))
        position += len(line) + 1
    if not starts:
        return
    place, line = chance.choice(starts)
    yield place, len(line), ""
    length = min(len(line), chance.randint(LINE, 2 * LINE))
    for offset, character in enumerate(line[:length]):
        yield place + offset, 0, character
        if chance.random() < 0.08:
            yield place + offset + 1, 0, "x"
            yield place + offset + 1, 1, ""
    if length < len(line):
        yield place + length, 0, line[length:]


async def compare(
    source: str,
    questions: Iterable[traces.Keystroke],
    here: rig.Rig,
    found: list[Comparison],
    tick: Callable[[], None],
) -> None:
    """Ask each twice, as an editor would and with nothing reused, and add what came to `found`."""
    for key in questions:
        cached = await _ask(here, key)
        found.append(Comparison(source, key.index, cached, await _ask(here, key, cache=False)))
        tick()


async def _ask(here: rig.Rig, key: traces.Keystroke, cache: bool = True) -> ours.Answer:
    body = ours.ask_body(key.prefix, key.suffix, tokens=TOKENS, margins=True, stream=False, cache=cache)
    return await ours.ask_whole(here.endpoint, body)


def shifts(comparisons: Iterable[Comparison]) -> list[float]:
    """How much the margin of the same token moved between the two evaluations, for all tokens that agree."""
    found: list[float] = []
    for entry in comparisons:
        length = None if entry.equal else entry.split
        if entry.equal or length is not None:
            pairs = zip(entry.cached.margins[:length], entry.fresh.margins[:length], strict=False)
            found += [abs(a - b) for a, b in pairs]
    return found


def noise_of(moved: Sequence[float]) -> float:
    """Logits within which two tokens count as tied."""
    return min(max(moved), UNMEASURED_NOISE) if len(moved) >= ENOUGH else UNMEASURED_NOISE


def verdict(entry: Comparison, threshold: float) -> str:
    """Why the two texts differ: a tie within the noise, or UNEXPLAINED."""
    split = entry.split
    if split is None or split >= min(len(entry.cached.margins), len(entry.fresh.margins)):
        return UNEXPLAINED
    near = max(entry.cached.margins[split], entry.fresh.margins[split]) <= threshold
    return "tie" if near else UNEXPLAINED


def figures_of(comparisons: Sequence[Comparison]) -> Figures:
    """All figures."""
    unequal = [entry for entry in comparisons if not entry.equal]
    moved = shifts(comparisons)
    threshold = noise_of(moved)
    reused = sum(entry.cached.reused for entry in comparisons)
    return {
        "compared": float(len(comparisons)),
        "unequal": float(len(unequal)),
        "unexplained": float(sum(verdict(entry, threshold) == UNEXPLAINED for entry in unequal)),
        "noise_logits": threshold,
        "shift_p50": stats.percentile(moved, 0.5),
        "shift_max": max(moved, default=0.0),
        "tokens_compared": float(sum(len(entry.cached.margins) for entry in comparisons)),
        "reused_share": stats.ratio(reused, sum(entry.cached.prompt for entry in comparisons)),
        "prompts_differ": float(sum(entry.cached.prompt != entry.fresh.prompt for entry in comparisons)),
        "fresh_reused": float(sum(entry.fresh.reused for entry in comparisons)),
        "blank": float(sum(not entry.fresh.raw for entry in comparisons)),
    }


def listed(comparisons: Sequence[Comparison], figures: Figures) -> list[Table]:
    """The sum and every unequal pair; no source text."""
    rows = [[name.replace("_", " "), value] for name, value in figures.items()]
    tables = [table("cached against fresh", ["", "figure"], rows)]
    unequal, noise = [], figures["noise_logits"]
    for entry in comparisons:
        if entry.equal:
            continue
        split = entry.split
        margins = [
            a.margins[split] if split is not None and split < len(a.margins) else float("nan")
            for a in (entry.cached, entry.fresh)
        ]
        where = f"{'–' if split is None else split} / {entry.place}"
        tops = " / ".join(map(show, margins))
        unequal.append(
            [f"{entry.source} {entry.edit}", where, tops, entry.cached.reused, verdict(entry, noise)]
        )
    if unequal:
        columns = ["edit", "at token / character", "margins", "reused", "verdict"]
        tables.append(table("unequal", columns, unequal))
    return tables


async def run(plan: Plan, progress: Progress) -> Outcome:
    """`limit` edits of a trace (when one is given) and as many of a Python file."""
    name, text = python_source(plan.python)
    parts = [(typed_again(name, text, plan.seed, plan.limit), 0)]
    if plan.trace is not None:
        trace = traces.load(plan.trace)
        parts.insert(0, (trace, keystrokes.middle(trace) if plan.start is None else plan.start))
    total, done = plan.limit * len(parts), 0

    def tick() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    async with rig.running(plan.model, engine={"draft": "off"}) as here:
        outcome = here.outcome("exactness", plan.seed)
        found: list[Comparison] = []
        for part, begin in parts:
            await compare(part.name, traces.replay(part, begin, plan.limit), here, found, tick)
    outcome.figures.update(figures_of(found))
    outcome.tables += listed(found, outcome.figures)
    if plan.trace is None:
        outcome.notes.append("no --trace was given: only edits of a Python file were compared")
    return outcome
