"""`foretype bench flood`: one client asks 200 times a second while another types: does the other notice?

The typist waits for each answer and for the time of its next key, and is never refused. It types alone for
half of the time, then as long as all of it beside the flood, then alone again, so that a machine that gets
slower or faster meanwhile tells on both sides. The flood waits for nothing: it is told by 429 that it asks
too fast, or by the stop `superseded` that its own next request took over.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from daemon.bench import cancelling, exactness, ours, rig, stats, traces, typists
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.errors import ForetypeError, Overloaded

RATE = 200
"""Requests a second of the flood."""
PAUSE_S = 1.0
"""Longest pause of the typist, so that a minute holds enough of its keys."""
TOKENS = 32
_BODIES = 400
_LAST_S = 10.0
"""For the flood's last answers."""
_SETTLED_S = 2.0
"""From the begin of the flood to the first look at memory: its burst has been let in by then."""
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    minutes: float
    seed: int
    model: str | None


@dataclass(slots=True)
class Typed:
    """What a typist met: milliseconds until each answer, and refusals."""

    waits: list[float] = field(default_factory=list)
    refused: int = 0

    def __add__(self, other: Typed) -> Typed:
        """Both, one after the other."""
        return Typed(self.waits + other.waits, self.refused + other.refused)


@dataclass(slots=True)
class Flooded:
    """What became of the flood's requests, the milliseconds until it was told so by 429, and bytes of memory
    at every second (daemon, engine)."""

    ends: Counter[str] = field(default_factory=Counter)
    told_ms: list[float] = field(default_factory=list)
    memory: list[tuple[int, int]] = field(default_factory=list)


def keys(seed: int, seconds: float) -> Iterator[tuple[bytes, float]]:
    """(request, seconds until the next key) of a person who types in a file."""
    name, text = exactness.python_source(None)
    chance = random.Random(seed)
    trace = exactness.typed_again(name, text, seed, 20 + int(seconds * 20))
    for state in traces.states(trace, 0, len(trace.edits)):
        lines, head, suffix = traces.window(state.text, state.cursor)
        body = ours.ask_body(
            lines + head, suffix, tokens=TOKENS, lines="line", stream=False, client=f"typist-{seed}"
        )
        yield body, min(typists.gap(chance.random()), PAUSE_S)


async def typing(here: rig.Rig, seed: int, seconds: float) -> Typed:
    """One person for so long."""
    found, ends = Typed(), time.perf_counter() + seconds
    for body, gap in keys(seed, seconds):
        began = time.perf_counter()
        if began >= ends:
            break
        try:
            found.waits.append((await ours.ask_whole(here.endpoint, body)).last)
        except Overloaded:
            found.refused += 1
        await asyncio.sleep(max(0.0, began + gap - time.perf_counter()))
    return found


async def flooding(here: rig.Rig, seed: int, seconds: float, found: Flooded) -> None:
    """`RATE` requests a second for so long, whatever becomes of them."""
    begin, tasks = time.perf_counter(), set()
    bodies = itertools.cycle(cancelling.bodies(seed, _BODIES))
    for number in range(int(RATE * seconds)):
        await asyncio.sleep(max(0.0, begin + number / RATE - time.perf_counter()))
        task = asyncio.create_task(_one(here, next(bodies), found))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=_LAST_S)
        found.ends["waiting"] += len(late)
        for task in late:
            task.cancel()


async def _one(here: rig.Rig, body: bytes, found: Flooded) -> None:
    began = time.perf_counter()
    try:
        answer = await ours.ask(here.endpoint, body)
    except Overloaded:
        found.ends["refused"] += 1
        found.told_ms.append((time.perf_counter() - began) * 1e3)
    except ForetypeError:
        found.ends["failed"] += 1
    else:
        found.ends["superseded" if answer.stop == "superseded" else "answered"] += 1


async def watching(here: rig.Rig, found: Flooded) -> None:
    """Look at memory every second, until cancelled."""
    await asyncio.sleep(_SETTLED_S)
    while True:
        memory = (await here.status())["memory"]
        found.memory.append((memory["daemon_rss_bytes"] or 0, memory["engine_rss_bytes"] or 0))
        await asyncio.sleep(1.0)


async def beside(here: rig.Rig, plan: Plan) -> tuple[Typed, Flooded]:
    """The typist and the flood at once."""
    found, seconds = Flooded(), plan.minutes * 60
    watch = asyncio.create_task(watching(here, found))
    try:
        typed, _ = await asyncio.gather(
            typing(here, plan.seed + 1, seconds), flooding(here, plan.seed, seconds, found)
        )
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
    return typed, found


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Alone, beside the flood, alone."""
    half = plan.minutes * 30
    async with rig.running(plan.model) as here:
        outcome = here.outcome("flood", plan.seed)
        await typing(here, plan.seed + 3, min(half, _SETTLED_S))
        first = await typing(here, plan.seed, half)
        progress(1, 4)
        shared, flood = await beside(here, plan)
        progress(3, 4)
        alone = first + await typing(here, plan.seed + 2, half)
        progress(4, 4)
    outcome.figures = figures(alone, shared, flood, plan.minutes * 60)
    rows = [[name.replace("_", " "), value] for name, value in outcome.figures.items()]
    title = f"a typist beside {RATE} requests/s of another client, {plan.minutes:g} min; times in ms"
    outcome.tables.append(table(title, ["", "figure"], rows))
    return outcome


def figures(alone: Typed, shared: Typed, flood: Flooded, seconds: float) -> Figures:
    """Everything. `told`: share of the flood's requests that were answered by 429 or as superseded."""
    sent = flood.ends.total()
    grown = [b - a for a, b in zip(*(flood.memory[0], flood.memory[-1]), strict=True)] if flood.memory else []
    halves = {"alone": alone, "beside": shared}
    marks = {
        f"typist_p{share}_{name}": stats.percentile(typed.waits, share / 100)
        for name, typed in halves.items()
        for share in (50, 99)
    }
    return {
        "typist_p99_ratio": stats.ratio(marks["typist_p99_beside"], marks["typist_p99_alone"]),
        "typist_p50_ratio": stats.ratio(marks["typist_p50_beside"], marks["typist_p50_alone"]),
        **marks,
        "typist_keys_alone": float(len(alone.waits)),
        "typist_keys_beside": float(len(shared.waits)),
        "typist_refused": float(alone.refused + shared.refused),
        "told": stats.ratio(flood.ends["refused"] + flood.ends["superseded"], sent),
        "told_ms_p50": stats.percentile(flood.told_ms, 0.5),
        "flood_per_s": stats.ratio(sent, seconds),
        **{
            f"flood_{end}": float(flood.ends[end])
            for end in ("refused", "superseded", "answered", "waiting", "failed")
        },
        "memory_growth_mb": stats.ratio(sum(grown), _MB) if grown else float("nan"),
        "daemon_growth_mb": stats.ratio(grown[0], _MB) if grown else float("nan"),
    }
