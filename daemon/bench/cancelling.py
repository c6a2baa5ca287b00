"""`foretype bench cancel`: requests abandoned one after the other; does the engine stop working for them?"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from daemon.bench import exactness, ours, rig, stats, traces
from daemon.bench.outcome import Outcome, Progress, table
from daemon.errors import EngineFailed

REQUESTS = 40
APART_S = 0.03
TOKENS = 64
QUIET_S = 30.0
"""An engine that is busy for longer after everybody has left does not stop at all."""


def bodies(seed: int, count: int) -> list[bytes]:
    """Requests at `count` seeded places of one document, so that hardly anything can be reused."""
    _, text = exactness.python_source(None)
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        lines, head, suffix = traces.window(text, chance.randrange(len(text)))
        found.append(ours.ask_body(lines + head, suffix, tokens=TOKENS))
    return found


async def abandon(here: rig.Rig, asked: list[bytes], progress: Progress) -> int:
    """Send each `APART_S` after the one before and close the one before first. Returns how many had ended."""
    loop = asyncio.get_running_loop()
    begin, ended = loop.time(), 0
    for number, body in enumerate(asked, 1):
        task = asyncio.ensure_future(ours.ask(here.endpoint, body))
        left = begin + number * APART_S - loop.time()
        await asyncio.wait({task}, timeout=max(left, 0.0))
        if task.done():
            task.result()
            ended += 1
        task.cancel()
        await asyncio.wait({task})
        progress(number, len(asked))
    return ended


async def quiet(here: rig.Rig) -> tuple[float, dict[str, Any]]:
    """(ms until the engine neither runs nor holds anything, its report then). Raises EngineFailed."""
    began = time.perf_counter()
    while (taken := time.perf_counter() - began) < QUIET_S:
        report = await here.report()
        if report.get("idle"):
            return taken * 1e3, report
        await asyncio.sleep(0.005)
    raise EngineFailed(f"the engine still works {QUIET_S:.0f} s after the last client left")


async def run(limit: int, seed: int, model: str | None, progress: Progress) -> Outcome:
    """`limit` requests, all abandoned."""
    async with rig.running(model) as here:
        outcome = here.outcome("cancel", seed)
        before = await here.report()
        ended = await abandon(here, bodies(seed, limit), progress)
        idle_ms, after = await quiet(here)
        probe = await ours.ask(here.endpoint, bodies(seed + 1, 1)[0])
        final = await here.report()
    slices = list(after.get("idle_slices", ()))[len(before.get("idle_slices", ())) :]
    outcome.figures = {
        "requests": float(limit),
        "ended_in_time": float(ended),
        "cancelled_running": float(len(slices)),
        "idle_slices_p50": stats.percentile(slices, 0.5),
        "idle_slices_p95": stats.percentile(slices, 0.95),
        "idle_slices_max": float(max(slices, default=0)),
        "after_slice": float(after.get("after_slice", 0)) - float(before.get("after_slice", 0)),
        "idle_ms": idle_ms,
        "evaluated_abandoned": float(after.get("evaluated", 0)) - float(before.get("evaluated", 0)),
        "evaluated_in_silence": float(final.get("evaluated", 0))
        - after.get("evaluated", 0)
        - probe.evaluated,
        "aborted_decodes": float(after.get("aborted", 0)) - float(before.get("aborted", 0)),
        "answers_after": float(probe.whole),
    }
    words = {"idle_ms": "engine idle after the last disconnect, ms (polled)"}
    rows = [[words.get(name, name.replace("_", " ")), value] for name, value in outcome.figures.items()]
    title = f"{limit} requests {APART_S * 1e3:.0f} ms apart, each abandoned by the next"
    outcome.tables.append(table(title, ["", "figure"], rows))
    return outcome
