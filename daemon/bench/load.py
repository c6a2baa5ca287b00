"""`foretype bench load`: many streams typing at once, against a naive pipeline and Foretype, in one run.

Naive: the whole file and random snippets in random order, nothing reused, nothing drafted, one question at a
time; in the same engine with the same model and threads, after the same edits, for answers of one limit.
It is spared what it could not help: a question that was taken back is not computed any further. Foretype: as
everybody has it, except that more requests are let in at once. Both take turns, and each number of streams
makes other edits. crowd.py says what is counted, typists.py how the streams type.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon import roots
from daemon.bench import crowd, loadtable, ours, repo, rig, stats, survey, traces, typists
from daemon.bench.crowd import Crowd, Side
from daemon.bench.outcome import Outcome, Progress
from daemon.errors import BadRequest
from daemon.settings import Server

STREAMS = (50, 100, 200)
SECONDS = 150
"""Longer than typists.LONGEST_S: a time beyond that is known to be longer, not how much."""
TOKENS = 32
"""Enough for a line; the limit of both sides."""
BOXES = 3
"""Most times that few streams type."""
PROBES = 8
"""Most further numbers of streams that are tried on each side."""
PROBE_S = 60.0
"""Longest time of a try: to see that a pipeline is too slow for the limit takes less than to see how slow."""
_FIRST = {"": 4, "_naive": 1}
"""Where the search begins."""
_NAIVE: dict[str, Any] = {
    "cache": False,
    "heal": False,
    "anchor_lines": -1,
    "context": "none",
    "draft": False,
}
_WHOLE = 65_536
"""Tokens: more than any file here has."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `root`: a folder whose files are typed in; None: generated ones."""

    streams: tuple[int, ...]
    root: Path | None
    seconds: float
    seed: int
    model: str | None


@dataclass(slots=True)
class Field:
    """Both sides by the ends of their figures' names, the files, and what was measured so far."""

    plan: Plan
    sides: Mapping[str, Side]
    library: Sequence[typists.Document]
    outcome: Outcome
    progress: Progress
    found: dict[tuple[str, int], Crowd] = field(default_factory=dict)

    async def crowd(self, name: str, count: int, seconds: float) -> Crowd:
        """`count` streams against one side; few of them again, until enough questions stood for the limit."""
        plan = self.plan
        made = Crowd(0.0, ())
        for again in range(BOXES):
            streams = typists.streams(self.library, count, seconds, plan.seed + again)
            made += await crowd.play(self.sides[name], streams, seconds)
            if sum(asked.stood >= loadtable.LIMIT_MS for asked in made.asked) >= stats.FEW:
                break
        self.found[name, count] = made
        self.progress(len(self.found), 2 * len(plan.streams) + PROBES)
        return made

    async def most(self, name: str) -> int:
        """Most streams that one side serves within the limit."""

        async def serves(count: int) -> bool:
            return loadtable.served(await self.crowd(name, count, min(self.plan.seconds, PROBE_S)))

        known = {count: loadtable.served(made) for (side, count), made in self.found.items() if side == name}
        return await most(serves, known, _FIRST[name])


async def most(serves: Callable[[int], Awaitable[bool]], known: Mapping[int, bool], first: int) -> int:
    """The largest number that is served, to a quarter and up to the largest known one; in PROBES tries."""
    low = max((count for count, ok in known.items() if ok), default=0)
    high = min((count for count in known if count > low), default=low + 1)
    for _ in range(PROBES):
        if high - low <= max(1, low // 4):
            break
        count = min(2 * low or first, (low + high) // 2)
        low, high = (count, high) if await serves(count) else (low, count)
    return low


@asynccontextmanager
async def prepared(plan: Plan, progress: Progress) -> AsyncIterator[Field]:
    """Write the files, start both daemons. Raises BadRequest when there is nothing to type in."""
    crowded = max(plan.streams)
    with tempfile.TemporaryDirectory(prefix="foretype-", ignore_cleanup_errors=True) as name:
        folder = roots.normal(Path(name))
        if plan.root is None:
            repo.generate(folder / "made", crowded * typists.LINES, plan.seed, longest=typists.LINES)
        library = typists.documents(survey.copy(plan.root or folder / "made", folder / "root"))
        if not library:
            sizes = f"{typists.SMALLEST} to {typists.LARGEST} bytes"
            raise BadRequest(
                f"nothing in {plan.root} can be typed in", f"Give --root source files of {sizes}"
            )
        server = {"max_concurrent": Server().max_concurrent + crowded}
        async with rig.running(plan.model, idle=True, root=folder / "root", server=server) as mine:
            await mine.indexed()
            same = {key: mine.profile[key] for key in ("threads", "context")}
            async with rig.running(
                plan.model, server=server, engine=same,
                stable=False, prefix_tokens=_WHOLE, suffix_tokens=_WHOLE, extra_tokens=_WHOLE,
            ) as its:  # fmt: skip
                naive = _naive_body(library, random.Random(plan.seed))
                sides = {"": Side(mine, _body), "_naive": Side(its, naive, asyncio.Lock())}
                yield Field(plan, sides, library, mine.outcome("load", plan.seed), progress)


def _body(stream: typists.Stream, state: traces.State) -> bytes:
    return ours.document_body(
        state.text, state.cursor, stream.document.path,
        tokens=TOKENS, lines="line", stream=False, client=stream.name,
    )  # fmt: skip


def _naive_body(
    library: Sequence[typists.Document], chance: random.Random
) -> Callable[[typists.Stream, traces.State], bytes]:
    def body(stream: typists.Stream, state: traces.State) -> bytes:
        return ours.ask_body(
            state.text[: state.cursor], state.text[state.cursor :],
            tokens=TOKENS, lines="line", stream=False, client=stream.name,
            extras=typists.snippets(library, chance), **_NAIVE,
        )  # fmt: skip

    return body


async def run(plan: Plan, progress: Progress) -> Outcome:
    """All numbers of streams on both sides, then the search for the most that are served."""
    async with prepared(plan, progress) as here:
        for count in plan.streams:
            for name in here.sides:
                await here.crowd(name, count, plan.seconds)
        most_served = {name: await here.most(name) for name in here.sides}
    outcome = here.outcome
    cell = stats.ratio(outcome.profile["kv_bytes"], outcome.profile["context"])
    for count in plan.streams:
        mine, its = here.found["", count], here.found["_naive", count]
        figures = loadtable.compared(mine, its, cell)
        outcome.figures.update({f"{key}_{count}": value for key, value in figures.items()})
        outcome.tables.append(
            loadtable.shown(f"{count} streams typing for {plan.seconds:g} s", figures, mine, its)
        )
        outcome.notes += loadtable.bounds(count, mine, its)
    loadtable.conclude(outcome, plan.streams, most_served)
    return outcome
