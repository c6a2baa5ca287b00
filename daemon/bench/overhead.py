"""`foretype bench overhead`: what the daemon and its doors add to the engine's own work, time and memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from daemon.bench import exactness, ours, rig, stats, traces
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.errors import EngineFailed

TOKENS = 12
CLIENTS = 8
MB = 1e6
SETTLE_S = 2.0
"""How long the engine must have done nothing before silence is measured: it evaluates ahead after answers."""
SETTLED_WITHIN_S = 120.0


def processes(pid: int) -> list[psutil.Process]:
    """The daemon and everything it started."""
    daemon = psutil.Process(pid)
    return [daemon, *daemon.children(recursive=True)]


def cpu_seconds(family: Sequence[psutil.Process]) -> float:
    """User and system time of all of them so far."""
    spent = [process.cpu_times() for process in family]
    return float(sum(times.user + times.system for times in spent))


async def idle_percent(pid: int, seconds: float) -> float:
    """Share of one core that all processes use together while nobody asks, in percent."""
    family = processes(pid)
    loop = asyncio.get_running_loop()
    before, began = cpu_seconds(family), loop.time()
    await asyncio.sleep(seconds)
    return 100.0 * (cpu_seconds(family) - before) / (loop.time() - began)


async def settled(here: rig.Rig) -> float:
    """Wait until the work that follows an answer is done; seconds that took. Raises EngineFailed."""
    loop = asyncio.get_running_loop()
    began = quiet_since = loop.time()
    before = -1
    while loop.time() - quiet_since < SETTLE_S:
        if loop.time() - began > SETTLED_WITHIN_S:
            raise EngineFailed(f"the engine still works {SETTLED_WITHIN_S:.0f} s after the last answer")
        report = await here.report()
        if not report.get("idle") or report.get("decodes") != before:
            before, quiet_since = report.get("decodes", 0), loop.time()
        await asyncio.sleep(0.1)
    return quiet_since - began


def mapped_resident(pid: int, file: Path) -> int:
    """Bytes of `file` that are mapped into process `pid` and resident; 0 where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 0
    return resident_of(lines, str(file.resolve()))


def resident_of(smaps: Sequence[str], path: str) -> int:
    """Sum of `Rss:` over the mappings of `path`, in bytes."""
    inside, total = False, 0
    for line in smaps:
        first = line.split(" ", 1)[0]
        if "-" in first and not first.endswith(":"):
            inside = line.rstrip().endswith(path)
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


async def memory(here: rig.Rig) -> Figures:
    """Resident memory of all processes, and what is left beyond weights, KV cache and compute buffers.

    Weights are what is mapped of the file, and what llama.cpp copied of it into the layout of its kernels (29
    MB of a 0.5B model). Compute buffers count as llama.cpp reserves them, its buffer of logits among them. Of
    the cache both counts: what the context has room for, and pages of it that left the context.
    """
    profile = here.profile
    file = Path(profile["model"]["path"])
    family = processes(here.pid)
    total = sum(process.memory_info().rss for process in family)
    repacked = int(profile.get("repacked_bytes") or 0)
    mapped = sum(mapped_resident(process.pid, file) for process in family)
    if not sys.platform.startswith("linux"):
        mapped = min(int(profile["model"].get("weights_bytes") or 0), total)
    on_device = profile["backend"].upper() != "CPU"
    kv = 0 if on_device else int(profile.get("kv_bytes") or 0)
    compute = 0 if on_device else int(profile.get("compute_bytes") or 0)
    pages = int(((await here.report()).get("pages") or {}).get("host_bytes") or 0)
    return {
        "rss_mb": total / MB,
        "weights_mb": (mapped + repacked) / MB,
        "repacked_mb": repacked / MB,
        "kv_mb": kv / MB,
        "pages_mb": pages / MB,
        "compute_mb": compute / MB,
        "rss_beyond_mb": (total - mapped - repacked - kv - pages - compute) / MB,
        "processes": float(len(family)),
    }


async def doors(here: rig.Rig, limit: int, seed: int, progress: Progress) -> Figures:
    """Client time minus the engine's own time, over typed edits: whole, as a client waits for it that does
    nothing else, and streamed; the engine's share."""
    name, text = exactness.python_source(None)
    keys = list(traces.replay(exactness.typed_again(name, text, seed, limit)))
    before = await here.report()
    whole, streamed = [], []
    for number, key in enumerate(keys, 1):
        if number % 5:
            body = ours.ask_body(key.prefix, key.suffix, tokens=TOKENS, stream=False)
            answer = ours.ask_waiting(here.endpoint, body)
            whole.append(answer.last - answer.engine_ms)
        else:
            answer = await ours.ask(here.endpoint, ours.ask_body(key.prefix, key.suffix, tokens=TOKENS))
            streamed.append(answer.last - answer.engine_ms)
        progress(number, len(keys))
    after = await here.report()
    busy = float(after.get("busy_ms", 0.0)) - float(before.get("busy_ms", 0.0))
    compute = float(after.get("compute_ms", 0.0)) - float(before.get("compute_ms", 0.0))
    return {
        "requests": float(len(keys)),
        "door_ms_p50": stats.percentile(whole, 0.5),
        "door_ms_p90": stats.percentile(whole, 0.9),
        "door_ms_p99": stats.percentile(whole, 0.99),
        "door_ms_stream_p50": stats.percentile(streamed, 0.5),
        "engine_share_1": stats.ratio(busy - compute, busy),
        "busy_ms": busy,
        "compute_ms": compute,
    }


async def together(here: rig.Rig, limit: int, seed: int) -> Figures:
    """The engine's own share while `CLIENTS` type in documents of their own, `limit` requests in all."""
    name, text = exactness.python_source(None)

    async def types(number: int) -> None:
        edits = exactness.typed_again(name, text, seed + number, max(1, limit // CLIENTS))
        for key in traces.replay(edits):
            body = ours.ask_body(
                key.prefix, key.suffix, tokens=TOKENS, stream=False, client=f"bench {number}"
            )
            await ours.ask_whole(here.endpoint, body)

    before = await here.report()
    await asyncio.gather(*(types(number) for number in range(CLIENTS)))
    after = await here.report()
    busy, compute = (float(after[key]) - float(before[key]) for key in ("busy_ms", "compute_ms"))
    return {"engine_share_8": stats.ratio(busy - compute, busy)}


async def run(limit: int, seed: int, seconds: float, model: str | None, progress: Progress) -> Outcome:
    """`limit` requests, then `seconds` of silence."""
    async with rig.running(model, idle=True) as here:
        outcome = here.outcome("overhead", seed)
        outcome.figures.update(await doors(here, limit, seed, progress))
        outcome.figures.update(await together(here, limit, seed))
        outcome.figures["work_ahead_s"] = await settled(here)
        outcome.figures["idle_cpu_percent"] = await idle_percent(here.pid, seconds)
        outcome.figures.update(await memory(here))
    rows = [[name.replace("_", " "), value] for name, value in outcome.figures.items()]
    outcome.tables.append(table(f"overheads, {limit} requests of {TOKENS} tokens", ["", "figure"], rows))
    if not sys.platform.startswith("linux"):
        outcome.notes.append(
            "this system does not tell mapped pages apart: the model's size stands for its weights"
        )
    return outcome
