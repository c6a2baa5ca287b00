"""`foretype bench batch`: many requests in the same ticks. Rates, a keystroke beside a long answer, what the
knobs do, and a mixed load in which nobody may wait for ever. Straight to the engine, whose work it is."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from daemon.bench import direct, stats
from daemon.bench.direct import Direct, Timed
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.engine.frames import LANES, Lane

STREAMS = 8
CONTEXT = 512
TYPED = 3
"""Tokens of the source that are typed between two requests of a stream."""
ANSWER = 24
KEYSTROKE = 12
LONG = 2000
BLOCK = 10
"""Keystrokes in a row with, and then without, the long answer."""
FOR_EVER_S = 60.0
KNOBS: dict[str, dict[str, int]] = {
    "as_set": {},
    "concurrency_1": {"concurrency": 1},
    "concurrency_4": {"concurrency": 4},
    "max_batch_16": {"max_batch": 16},
    "tick_ms_40": {"tick_ms": 40},
    "max_delay_0": {"max_delay_ms": 0},
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure; `minutes` of mixed load."""

    limit: int
    seed: int
    model: str | None
    minutes: float
    knobs: bool


@dataclass(slots=True)
class Stream:
    """A document that is typed on: each request's text is a little longer than the one before."""

    name: str
    source: Sequence[int]
    start: int
    typed: int = 0

    def following(self) -> list[int]:
        """The tokens of its next request."""
        self.typed += TYPED
        return [self.source[(self.start + n) % len(self.source)] for n in range(CONTEXT + self.typed)]


def streams(here: Direct, seed: int, count: int = STREAMS) -> list[Stream]:
    """Documents that share nothing."""
    apart = len(here.ids) // count
    shift = random.Random(seed).randrange(apart)
    return [Stream(f"stream {n}", here.ids, n * apart + shift) for n in range(count)]


async def answered(here: Direct, stream: Stream) -> Timed:
    """A stream's next request."""
    return await here.ask(stream.following(), client=stream.name, most=ANSWER)


async def evaluate(here: Direct, made: Sequence[Stream]) -> None:
    """The texts of streams, one after the other."""
    for stream in made:
        await here.ask(stream.following(), client=stream.name, warm=True)


async def rates(here: Direct, made: list[Stream], rounds: int, step: Callable[[], None]) -> Figures:
    """The same streams in turn and together, by turns: first with evaluated contexts, then with new ones."""
    await evaluate(here, made)
    spent = {"turn": 0.0, "together": 0.0}
    tokens = {"turn": 0, "together": 0}
    for _ in range(rounds):
        for way in spent:
            began = time.perf_counter()
            if way == "turn":
                done = [await answered(here, stream) for stream in made]
            else:
                done = list(await asyncio.gather(*(answered(here, stream) for stream in made)))
            spent[way] += time.perf_counter() - began
            tokens[way] += sum(one.generation.counters.generated for one in done)
            step()
    answers = float(rounds * len(made))
    return {
        "answers": answers,
        "rate_ratio_8": stats.ratio(spent["turn"], spent["together"]),
        "rate_in_turn": stats.ratio(answers, spent["turn"]),
        "rate_together": stats.ratio(answers, spent["together"]),
        "tokens_in_turn": float(tokens["turn"]),
        "tokens_together": float(tokens["together"]),
    }


async def cold(here: Direct, seed: int) -> float:
    """The ratio of `rates` with contexts that must be evaluated."""
    spent = []
    for way in range(2):
        made = streams(here, seed + 7 * way + 1)
        began = time.perf_counter()
        if way:
            await asyncio.gather(*(answered(here, stream) for stream in made))
        else:
            for stream in made:
                await answered(here, stream)
        spent.append(time.perf_counter() - began)
    return stats.ratio(*spent)


async def beside(here: Direct, made: list[Stream], limit: int, step: Callable[[], None]) -> Figures:
    """Keystrokes alone and beside a long answer, in blocks by turns. Both texts are evaluated before: `cold`
    may have taken their cells, and the first keystroke beside would pay for that, none alone."""
    key, other = made[0], made[1]
    await evaluate(here, [key, other])
    times: dict[bool, list[float]] = {True: [], False: []}
    decodes = steps = most = 0

    def begun() -> asyncio.Task[Timed]:
        return asyncio.create_task(here.ask(other.following(), lane="long", client=other.name, most=LONG))

    while len(times[False]) < limit:
        task, before = begun(), await here.report()
        for together in (True, False):
            for _ in range(min(BLOCK, limit - len(times[False]))):
                done = await here.ask(key.following(), client=key.name, most=KEYSTROKE)
                times[together].append(done.last)
                steps += done.generation.counters.steps if together else 0
                most = max(most, done.generation.counters.evaluated)
                if together and task.done():
                    task.result()
                    task = begun()
                step()
            if together:
                decodes += (await here.report()).decodes - before.decodes
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
    return {
        **beside_or_alone(times[False], times[True]),
        "keystroke_most_evaluated": float(most),
        "decodes_beside": float(decodes),
        "decodes_of_keystrokes": float(steps),
    }


def beside_or_alone(alone: Sequence[float], beside: Sequence[float]) -> Figures:
    """Of keystrokes, in ms, and their ratios."""
    figures = {}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        one, other = stats.percentile(alone, share), stats.percentile(beside, share)
        figures[f"keystroke_{name}_alone"], figures[f"keystroke_{name}_beside"] = one, other
        figures[f"keystroke_{name}_ratio"] = stats.ratio(other, one)
    return figures


async def knobs(plan: Plan, step: Callable[[], None]) -> dict[str, Figures]:
    """Setting → answers per second and latency of the streams together."""
    found = {}
    for name, changed in KNOBS.items():
        async with direct.running(plan.model, **changed) as here:
            made = streams(here, plan.seed)
            await evaluate(here, made)
            began, times = time.perf_counter(), []
            for _ in range(max(1, plan.limit // 20)):
                times += await asyncio.gather(*(answered(here, stream) for stream in made))
            spent = time.perf_counter() - began
        found[name] = {
            "rate": len(times) / spent,
            "first_p50": stats.percentile([one.first for one in times], 0.5),
            "last_p50": stats.percentile([one.last for one in times], 0.5),
            "last_p99": stats.percentile([one.last for one in times], 0.99),
        }
        step()
    return found


@dataclass(slots=True)
class Mixed:
    """Clients of every kind for a while; the longest that each lane waited for its end, in ms."""

    here: Direct
    made: list[Stream]
    ends: float
    chance: random.Random
    longest: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    asked: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    for_ever: int = 0

    async def client(self, stream: Stream, lane: Lane, most: int, think_s: float) -> None:
        """Ask, wait, think, ask again; every fourth request is abandoned."""
        while time.perf_counter() < self.ends:
            copies = 3 if lane == "alternative" else 1
            tokens = stream.following()
            warm = lane in ("anchor", "warm")
            jobs = [
                asyncio.create_task(
                    self.here.ask(tokens, lane=lane, client=stream.name, most=most, seed=seed, warm=warm)
                )
                for seed in range(copies)
            ]
            began = time.perf_counter()
            patience = self.chance.uniform(0, 0.3) if self.chance.random() < 0.25 else FOR_EVER_S
            _, waiting = await asyncio.wait(jobs, timeout=patience)
            self.for_ever += len(waiting) if patience == FOR_EVER_S else 0
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            self.asked[lane] += copies
            if not waiting:
                self.longest[lane] = max(self.longest[lane], (time.perf_counter() - began) * 1e3)
            await asyncio.sleep(self.chance.uniform(0, 2 * think_s))

    async def run(self) -> Figures:
        """Until the time is over."""
        kinds: list[tuple[Lane, int, float]] = [("keystroke", KEYSTROKE, 0.2)] * 4
        kinds += [("alternative", KEYSTROKE, 0.5), ("anchor", 1, 0.5), ("warm", 1, 0.5), ("long", 200, 0.1)]
        clients = (self.client(s, *kind) for s, kind in zip(self.made, kinds, strict=True))
        await asyncio.gather(*clients)
        return {
            "mixed_requests": float(sum(self.asked.values())),
            "mixed_for_ever": float(self.for_ever),
            **{f"mixed_longest_{lane}": self.longest[lane] for lane in LANES if lane in self.asked},
        }


async def run(plan: Plan, progress: Progress) -> Outcome:
    """All of it, one after the other."""
    rounds = max(1, plan.limit // 10)
    total = 2 * rounds + 2 * plan.limit + (len(KNOBS) if plan.knobs else 0)
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    async with direct.running(plan.model) as here:
        outcome = here.outcome("batch", plan.seed)
        made = streams(here, plan.seed)
        outcome.figures.update(await rates(here, made, rounds, step))
        outcome.figures["rate_ratio_8_cold"] = await cold(here, plan.seed)
        outcome.figures.update(await beside(here, made, plan.limit, step))
        if plan.minutes:
            ends = time.perf_counter() + plan.minutes * 60
            fresh = streams(here, plan.seed + 1)
            outcome.figures.update(await Mixed(here, fresh, ends, random.Random(plan.seed)).run())
    rows = [[name.replace("_", " "), value] for name, value in outcome.figures.items()]
    title = f"{STREAMS} streams of {CONTEXT} tokens; keystrokes of {KEYSTROKE}; times in ms, rates per s"
    outcome.tables.append(table(title, ["", "figure"], rows))
    if plan.knobs:
        found = await knobs(plan, step)
        outcome.figures.update({f"{k}_{name}": v for name, row in found.items() for k, v in row.items()})
        shown = [[name.replace("_", " "), *row.values()] for name, row in found.items()]
        heads = ["setting", "answers/s", "first P50", "last P50", "last P99"]
        outcome.tables.append(table(f"{STREAMS} streams together, by setting", heads, shown))
    return outcome
