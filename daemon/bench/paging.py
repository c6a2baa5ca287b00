"""`foretype bench paging`: switching among more files than the context has room for.

Every file is visited once (its prompt is evaluated), then again (it was paged out meanwhile), after a
restart, after random bytes of page files were changed, and once more with little room. Ceilings are watched
from outside all the time: the memory of the engine's process, the bytes of the folder. Answers are those of
the first visit, unless the two best tokens are tied within the noise of this run, see bench/exactness.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from daemon.bench import exactness, gathering, ours, repo, rig, stats
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.errors import EngineFailed

FILES = 24
TOKENS = 3000
ANSWER = 8
RESIDENT = 3
_CHARS = 6.0
"""Characters per token that are generated; the prompts are cut to size with the model's own count."""
_LOOK_S = 0.02
_PAGED_S = 180.0
_SLACK = 48 * 2**20
"""What the engine's own memory may grow by while it works: buffers, logits, lists."""
_MB = 2**20


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    files: int
    tokens: int
    seed: int
    model: str | None


@dataclass
class Watch:
    """Peaks seen from outside, and how often one lay above its ceiling."""

    folder: Path
    host: int
    disk: int
    looks: int = 0
    breaches: int = 0
    grown: int = 0
    """Most bytes of the engine's process beyond what it had before the first page."""
    stored: int = 0

    def look(self, pid: int, before: int) -> None:
        """One sample."""
        with contextlib.suppress(psutil.Error):
            self.grown = max(self.grown, grown := psutil.Process(pid).memory_info().rss - before)
            self.breaches += grown > self.host + _SLACK
        stored = used(self.folder)
        self.stored = max(self.stored, stored)
        self.breaches += stored > self.disk
        self.looks += 1


@dataclass
class Visits:
    """One round: the answer in each file, by its number."""

    answers: dict[int, ours.Answer] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    """What the engine said of its pages afterwards."""

    @property
    def first_ms(self) -> float:
        """Median time to the first text."""
        return stats.percentile([answer.first for answer in self.answers.values()], 0.5)

    @property
    def reused_share(self) -> float:
        """Prompt tokens that were not evaluated."""
        reused = sum(answer.reused for answer in self.answers.values())
        return stats.ratio(reused, sum(answer.prompt for answer in self.answers.values()))

    @property
    def reusing(self) -> int:
        """Files of which at least half of the prompt was not evaluated."""
        return sum(2 * answer.reused >= answer.prompt for answer in self.answers.values())


def used(folder: Path) -> int:
    """Bytes of all files in a folder; 0 when there is none."""
    total = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                total += entry.stat(follow_symlinks=False).st_size
    return total


def texts(count: int, tokens: int, seed: int) -> list[str]:
    """Generated source files, different from the first line on."""
    length = int(tokens * _CHARS)
    with tempfile.TemporaryDirectory(prefix="foretype-") as folder:
        repo.generate(Path(folder), count * length // 20, seed)
        files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
        whole = "".join(path.read_text(encoding="utf-8") for path in files)
    if len(whole) < count * length:
        raise EngineFailed(f"only {len(whole)} characters were generated")
    return [whole[n * length : (n + 1) * length] for n in range(count)]


def damage(folder: Path, count: int, chance: random.Random) -> int:
    """Change one random byte in each of `count` random page files; how many were changed."""
    pages = sorted(folder.glob("*.page"))
    for path in chance.sample(pages, min(count, len(pages))):
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
        path.write_bytes(data)
    return min(count, len(pages))


class Session:
    """One measurement: the same files under several daemons with one home."""

    def __init__(self, plan: Plan, home: Path, progress: Progress) -> None:
        self.plan = plan
        self.home = home
        self.files = texts(plan.files, plan.tokens, plan.seed)
        self.watches: list[Watch] = []
        self._progress = progress
        self._done = 0
        self._rounds = 4 * plan.files + min(plan.files, 2 * RESIDENT)

    @property
    def folder(self) -> Path:
        """Where the daemons keep pages."""
        return self.home / "home/cache/pages"

    @contextlib.asynccontextmanager
    async def daemon(self, host_mb: int, disk_mb: int) -> AsyncIterator[rig.Rig]:
        """One daemon, watched from its first page on."""
        tokens = self.plan.tokens
        engine = {"context": RESIDENT * (tokens + tokens // 8), "page_mb": host_mb, "disk_mb": disk_mb}
        async with rig.running(
            self.plan.model, folder=self.home, engine=engine, prefix_tokens=2 * tokens, jump_ms=600_000
        ) as here:
            await ours.ask(here.endpoint, ours.ask_body("# " + "warm up " * 300, "", tokens=4))
            watch = Watch(self.folder, host_mb * _MB, disk_mb * _MB)
            self.watches.append(watch)
            task = asyncio.create_task(self._watched(here, watch))
            try:
                yield here
            finally:
                task.cancel()
                await asyncio.wait({task})

    async def _watched(self, here: rig.Rig, watch: Watch) -> None:
        pid = int((await here.status())["children"][0]["pid"])
        before = psutil.Process(pid).memory_info().rss
        while True:
            watch.look(pid, before)
            await asyncio.sleep(_LOOK_S)

    @staticmethod
    def body(text: str) -> bytes:
        """The question at the end of a text."""
        return ours.ask_body(text, "", tokens=ANSWER, context="none", window="complex", margins=True)

    async def visit(self, here: rig.Rig, files: Iterable[int]) -> Visits:
        """Ask once in each file, then wait until everything is kept."""
        visits = Visits()
        for number in files:
            visits.answers[number] = await ours.ask(here.endpoint, self.body(self.files[number]))
            self._done += 1
            self._progress(self._done, self._rounds)
        visits.levels = await kept(here)
        return visits


async def kept(here: rig.Rig) -> dict[str, float]:
    """Wait until whole pages of what is resident are kept and written; the levels then.

    Raises EngineFailed.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PAGED_S
    while loop.time() < deadline:
        report = await here.report()
        levels = dict(report.get("pages") or {})
        if report.get("idle") and levels.get("kept") and not levels.get("writing"):
            return levels
        await asyncio.sleep(0.1)
    raise EngineFailed(f"pages are not written within {_PAGED_S:.0f} s")


def wrong(first: Visits, later: dict[str, Visits]) -> dict[str, int]:
    """Per later round, how many answers differ without a tie to explain it."""
    rounds = {
        name: [exactness.Comparison("", n, answer, first.answers[n]) for n, answer in visits.answers.items()]
        for name, visits in later.items()
    }
    noise = exactness.noise_of(exactness.shifts(itertools.chain(*rounds.values())))

    def mistaken(entry: exactness.Comparison) -> bool:
        return not entry.equal and exactness.verdict(entry, noise) == exactness.UNEXPLAINED

    return {name: sum(map(mistaken, entries)) for name, entries in rounds.items()}


async def rounds(session: Session) -> tuple[Outcome, dict[str, Visits]]:
    """All rounds by name, the first one first; returning in the opposite order, so that some come from host
    memory and some from disk."""
    plan, everything = session.plan, range(session.plan.files)
    async with session.daemon(1, 0) as here:
        profile, outcome = here.profile, here.outcome("paging", plan.seed)
        count = here.counter()
    session.files = [gathering.beginning(text, plan.tokens, count) for text in session.files]
    each = int(profile["kv_bytes"] / profile["context"] * plan.tokens * 1.25 / _MB) + 1
    host, disk = plan.files // 2 * each, (plan.files + 2) * each
    session.watches.clear()
    found = {}
    async with session.daemon(host, disk) as here:
        found["first"] = await session.visit(here, everything)
        found["back"] = await session.visit(here, reversed(everything))
    async with session.daemon(host, disk) as here:
        found["restart"] = await session.visit(here, everything)
    flipped = damage(session.folder, max(3, plan.files // 4), random.Random(plan.seed))
    async with session.daemon(host, disk) as here:
        found["damage"] = await session.visit(here, everything)
    async with session.daemon(each, 2 * each) as here:
        found["tight"] = await session.visit(here, everything[: 2 * RESIDENT])
    ceilings = {"host_ceiling_mb": float(host), "disk_ceiling_mb": float(disk)}
    outcome.figures |= {**ceilings, "bytes_flipped": float(flipped)}
    return outcome, found


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Four rounds through all files under three daemons, and a short one with little room."""
    with tempfile.TemporaryDirectory(prefix="foretype-", ignore_cleanup_errors=True) as folder:
        session = Session(plan, Path(folder), progress)
        outcome, later = await rounds(session)
    first = later.pop("first")
    for number in range(plan.files - RESIDENT, plan.files):  # these were resident still
        later["back"].answers.pop(number, None)
    outcome.figures |= {**_ratios(first, later), **_seen(session.watches), **_costs(later)}
    mistakes = wrong(first, later)
    outcome.figures["wrong_after_damage"] = float(mistakes.pop("damage"))
    outcome.figures["wrong_after_paging"] = float(sum(mistakes.values()))
    rows = [[name.replace("_", " "), value] for name, value in outcome.figures.items()]
    title = f"{plan.files} files of {plan.tokens} tokens, room for {RESIDENT}"
    outcome.tables.append(table(title, ["", "figure"], rows))
    return outcome


def _ratios(first: Visits, later: dict[str, Visits]) -> Figures:
    found = {
        "prompt_tokens_p50": stats.percentile([answer.prompt for answer in first.answers.values()], 0.5),
        "first_ms_p50": first.first_ms,
        "pagein_ratio": stats.ratio(first.first_ms, later["back"].first_ms),
        "restart_ratio": stats.ratio(first.first_ms, later["restart"].first_ms),
        "files_reused_after_restart": float(later["restart"].reusing),
    }
    for name, visits in later.items():
        found[f"{name}_ms_p50"] = visits.first_ms
        found[f"{name}_reused_share"] = visits.reused_share
    return found


def _seen(watches: Sequence[Watch]) -> Figures:
    return {
        "ceiling_breaches": float(sum(watch.breaches for watch in watches)),
        "looks": float(sum(watch.looks for watch in watches)),
        "engine_grown_mb": max(watch.grown for watch in watches) / _MB,
        "folder_mb": max(watch.stored for watch in watches) / _MB,
    }


def _costs(later: dict[str, Visits]) -> Figures:
    """Milliseconds per token as the engine measured them, how often it left pages alone because of them, and
    the damage it met."""
    back, restart = later["back"].levels, later["restart"].levels
    return {
        "out_ms_per_token": float(back.get("out_ms", 0)),
        "host_ms_per_token": float(back.get("host_ms", 0)),
        "disk_ms_per_token": float(restart.get("disk_ms", 0)),
        "recompute_ms_per_token": float(back.get("recompute_ms", 0)),
        "declined": float(sum(visits.levels.get("declined", 0) for visits in later.values())),
        "damaged": float(later["damage"].levels.get("damaged", 0)),
    }
