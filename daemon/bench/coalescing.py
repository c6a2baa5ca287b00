"""`foretype bench coalesce`: keystrokes in bursts. How many runs are saved by sharing them, and how many with
the answers that are known from earlier ones, as everybody has it?

The schedule has the shape of a measured editor session: gaps between edits of p10/p50/p90 21/113/581 ms, in
bursts of median 3 and p90 18 edits. Each edit types the next character of a source file whose text from there
on is taken out, and asks for a completion without closing the request before.

Definitions:
- requests moments apart: the share of requests that come within 50 ms of the one before, in the same line.
  That share is the shape's: no more can be saved by waiting for what the model says;
- runs saved: 1 − runs begun with sharing ÷ runs begun without, on the same schedule;
- an answer fits: what was typed since the run's request + the answer = the run's text, before polish; a known
  one, whose run may have said more: it is how that text goes on.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from daemon.bench import exactness, ours, rig, stats, traces, wire
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.errors import BadRequest

EDITS = 300
TOKENS = 32
MOMENT_S = 0.05
GAPS_MS = (21.0, 113.0, 581.0)
GAPS = ("gap_ms_p10", "gap_ms_p50", "gap_ms_p90")
BURSTS = (3.0, 18.0)
Z90 = 1.2815515655446004
"""Standard normal quantile of 0.9."""
SIDES: dict[str, tuple[int, rig.Section | None]] = {
    "alone": (0, None),
    "shared": (round(MOMENT_S * 1000), None),
    "known": (round(MOMENT_S * 1000), {"on": True, "prefetch": False}),
}
"""Measurement → complete.coalesce_ms, and the section `recall`: nothing is asked in advance."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One edit. `at` in seconds from the start; `prefix`: all of the file before the cursor. A client sends
    less of it."""

    at: float
    prefix: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer. `after` in ms."""

    prefix: str
    id: str
    run: str
    """Id of the request whose run it was; empty for its own."""
    raw: str
    text: str
    stop: str
    after: float
    known: bool = False
    """No run was needed."""


def gaps(seed: int, count: int) -> list[float]:
    """Seconds before each edit. The quantiles of all are those of the session: two half log-normals meet at
    the median. The longest lie between bursts, whose lengths are log-normal; inside a burst the order is
    random, which makes fewer runs of short gaps than a person does."""
    chance = random.Random(seed)
    low, middle, high = (math.log(gap / 1000) for gap in GAPS_MS)
    drawn = sorted(chance.gauss(0, 1) for _ in range(count))
    found = [math.exp(middle + z * ((high if z > 0 else 2 * middle - low) - middle) / Z90) for z in drawn]
    starts = _starts(chance, count)
    between, inside = found[count - len(starts) :], found[: count - len(starts)]
    chance.shuffle(between)
    chance.shuffle(inside)
    return [between.pop() if place in starts else inside.pop() for place in range(count)]


def _starts(chance: random.Random, count: int) -> set[int]:
    """Numbers of the edits that begin a burst."""
    middle, spread = math.log(BURSTS[0]), math.log(BURSTS[1] / BURSTS[0]) / Z90
    found, at = set(), 0
    while at < count:
        found.add(at)
        at += max(1, round(chance.lognormvariate(middle, spread)))
    return found


def beats(python: Path | None, seed: int, count: int) -> list[Beat]:
    """The schedule, with every request made beforehand. `python` is the file that is typed."""
    name, text = exactness.python_source(python)
    lines = text.splitlines(keepends=True)
    begin = sum(map(len, lines[: len(lines) // 2]))
    end = text.find("\n", begin + count)
    if end < 0:
        raise BadRequest(f"{name} is too short for {count} edits", "Give a lower --limit")
    found, at = [], 0.0
    for typed, gap in enumerate(gaps(seed, count), 1):
        at += gap
        above, head, suffix = traces.window(text[: begin + typed] + text[end:], begin + typed)
        body = ours.ask_body(above + head, suffix, tokens=TOKENS, lines="line", stream=False, path=name)
        found.append(Beat(at, text[: begin + typed], body))
    return found


def unknown(body: bytes) -> bytes:
    """A request whose answer is not remembered."""
    return msgspec.json.encode({**msgspec.json.decode(body), "recall": False})


async def play(schedule: Sequence[Beat], here: rig.Rig, progress: Progress) -> list[Heard]:
    """Send each request at its time; all answers, in order."""
    loop = asyncio.get_running_loop()
    begin, done = loop.time() + 0.05, 0

    async def ask(beat: Beat) -> Heard:
        nonlocal done
        await asyncio.sleep(begin + beat.at - loop.time())
        event: dict[str, Any] = await wire.fetch(here.endpoint, "POST", ours.COMPLETE, beat.body)
        done += 1
        progress(done, len(schedule))
        after = (loop.time() - begin - beat.at) * 1e3
        run = str(event.get("coalesced", ""))
        known = bool(event.get("recall"))
        return Heard(beat.prefix, event["id"], run, event["raw"], event["text"], event["stop"], after, known)

    return await asyncio.gather(*(ask(beat) for beat in schedule))


def misfits(heard: Sequence[Heard]) -> int:
    """Answers of another's run that are not the rest of its text, known ones that are no part of any."""
    named = {entry.id: entry for entry in heard}
    wrong = sum(not _fits(entry, named[entry.run]) for entry in heard if entry.run and finished(entry))
    made = [entry for entry in heard if not entry.known]
    return wrong + sum(not any(_goes_on(entry, run) for run in made) for entry in heard if entry.known)


def _fits(entry: Heard, run: Heard) -> bool:
    typed = entry.prefix.removeprefix(run.prefix)
    if not finished(run):  # the run went on for the others: its text is only known from them
        return entry.prefix.startswith(run.prefix)
    return entry.prefix == run.prefix + typed and typed + entry.raw == run.raw


def _goes_on(entry: Heard, run: Heard) -> bool:
    typed = entry.prefix.removeprefix(run.prefix)
    return entry.prefix == run.prefix + typed and run.raw.startswith(typed + entry.raw)


def finished(entry: Heard) -> bool:
    """Whether it was answered, not overtaken."""
    return entry.stop not in ours.FAILED


def later(alone: Sequence[Heard], shared: Sequence[Heard]) -> Figures:
    """How much later, in ms, sharing answers what both sides answered; negative: earlier."""
    pairs = zip(alone, shared, strict=True)
    waits = [b.after - a.after for a, b in pairs if finished(a) and finished(b)]
    return {"later_ms_p50": stats.percentile(waits, 0.5), "later_ms_p90": stats.percentile(waits, 0.9)}


def moments(schedule: Sequence[Beat]) -> float:
    """Share of requests within MOMENT_S of the one before, in the same line."""
    near = sum(b.at - a.at <= MOMENT_S and not b.prefix.endswith("\n") for a, b in pairwise(schedule))
    return near / len(schedule)


def figures_of(heard: Sequence[Heard], before: dict[str, Any], after: dict[str, Any], side: str) -> Figures:
    """The figures of one side; `before` and `after` are the daemon's status."""
    runs = {name: n - before["runs"].get(name, 0) for name, n in after["runs"].items()}
    work = {
        name: (after.get("engine") or {}).get(name, 0) - (before.get("engine") or {}).get(name, 0)
        for name in ("evaluated", "generated")
    }
    answered = [entry.after for entry in heard if finished(entry)]
    figures = {
        "runs": float(runs["begun"]),
        "answered": float(len(answered)),
        "overtaken": float(sum(not finished(entry) for entry in heard)),
        "answer_ms_p50": stats.percentile(answered, 0.5),
        "answer_ms_p99": stats.percentile(answered, 0.99),
        "evaluated": float(work["evaluated"]),
        "generated": float(work["generated"]),
        "joined_same": float(runs.get("same", 0)),
        "joined_said": float(runs.get("said", 0)),
        "joined_awaited": float(runs.get("awaited", 0)),
        "parted": float(runs.get("parted", 0)),
        "known": float(sum(entry.known for entry in heard)),
        "misfits": float(misfits(heard)),
    }
    return {f"{name}_{side}": value for name, value in figures.items()}


async def run(python: Path | None, limit: int, seed: int, model: str | None, progress: Progress) -> Outcome:
    """`limit` edits, once for each side."""
    schedule = beats(python, seed, limit)
    outcome: Outcome | None = None
    found: dict[str, list[Heard]] = {}
    for number, (side, (moment, recall)) in enumerate(SIDES.items()):

        def report(done: int, total: int, begun: int = number * limit) -> None:
            progress(begun + done, len(SIDES) * total)

        async with rig.running(model, complete={"coalesce_ms": moment}, recall=recall) as here:
            outcome = outcome or here.outcome("coalesce", seed)
            await ours.ask_whole(here.endpoint, unknown(schedule[0].body))
            before = await here.status()
            heard = found[side] = await play(schedule, here, report)
            outcome.figures |= figures_of(heard, before, await here.status(), side)
    assert outcome is not None
    outcome.figures |= later(found["alone"], found["shared"])
    _sum_up(outcome, schedule)
    return outcome


def _sum_up(outcome: Outcome, schedule: Sequence[Beat]) -> None:
    figures = outcome.figures
    waits = [b.at - a.at for a, b in pairwise(schedule)]
    saved, with_known = (
        1 - stats.ratio(figures[f"runs_{side}"], figures["runs_alone"]) for side in ("shared", "known")
    )
    awaited = figures["joined_awaited_shared"] - figures["parted_shared"]
    figures |= {
        "requests": float(len(schedule)),
        "saved_share": saved,
        "saved_share_known": with_known,
        "moments_share": moments(schedule),
        "saved_by_waiting": awaited / len(schedule),
        "saved_by_text": (figures["joined_said_shared"] + figures["joined_same_shared"]) / len(schedule),
        **{n: stats.percentile(waits, at) * 1e3 for n, at in zip(GAPS, (0.1, 0.5, 0.9), strict=True)},
    }
    names = [name.removesuffix("_shared") for name in figures if name.endswith("_shared")]
    rows = [[name.replace("_", " "), *(figures[f"{name}_{side}"] for side in SIDES)] for name in names]
    title = f"{len(schedule)} edits in {schedule[-1].at:.0f} s: {saved:.0%} and {with_known:.0%} fewer runs"
    outcome.tables.append(table(title, ["", "each alone", "shared", "known too"], rows))
    shape = "/".join(f"{figures[name]:.0f}" for name in GAPS)
    outcome.notes += [
        f"gaps p10/p50/p90 {shape} ms; {figures['moments_share']:.0%} of the requests come within"
        f" {MOMENT_S * 1000:.0f} ms of the one before: that much lies in the shape",
        f"of all requests {figures['saved_by_waiting']:.0%} waited for a run that then said what was typed,"
        f" and {figures['saved_by_text']:.0%} came when it had said so already, whatever their distance",
        f"{figures['known_known']:.0f} of {len(schedule)} answers were known from earlier ones",
        f"what both sides answered came {figures['later_ms_p50']:.0f} ms later with sharing at the median,"
        f" and {figures['later_ms_p90']:.0f} ms at p90",
        "nobody closes a request here; a client that does so before it asks again shares nothing with itself",
    ]
