"""A second implementation of the Engine protocol: texts come from a script, everything else is real.

It evaluates prompts in slices against what is resident, generates piece by piece, honours stops, limits,
cancel and supersede, and counts what it does, so that tests can say what must not have been done.
"""

from __future__ import annotations

import asyncio
import re
import time
from array import array
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from daemon.engine.frames import Report, Submit
from daemon.engine.protocol import EngineState
from daemon.errors import Loading
from daemon.machine import EngineProfile, FimIds, ModelFacts
from daemon.nouns import Counters, Generation, StopReason, Timings
from indexer import tokens
from indexer.vocabulary import FORMAT, Vocabulary, save

SLICE = 64
_PIECE = re.compile(r"\s*\S+|\s+")

VOCABULARY = Vocabulary(
    format=FORMAT,
    sha256="0" * 64,
    kind="bpe",
    pre="gpt-2",
    pieces=[*(bytes([byte]) for byte in range(256)), *[b""] * 6],
    control={
        f"<|{name}|>": 256 + number
        for number, name in enumerate(
            ("fim_prefix", "fim_middle", "fim_suffix", "fim_pad", "repo_name", "file_sep")
        )
    },
)
"""A token is a byte; the last six are control ids."""

PROFILE = EngineProfile(
    model=ModelFacts(
        name="scripted",
        path="/nowhere/scripted.gguf",
        sha256="0" * 64,
        architecture="script",
        vocabulary=262,
        trained_context=8192,
        fim=FimIds(pre=256, mid=257, suf=258, pad=259, rep=260, sep=261),
    ),
    backend="none",
    device="script",
    why="tests",
    threads=1,
    context=8192,
    prefill=((SLICE, 1.0),),
    tick_tokens=SLICE,
)


@dataclass(eq=False)
class _Running:
    job: Submit
    begun: float = field(default_factory=time.perf_counter)
    ended: StopReason | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    followed: bool = True

    def end(self, reason: StopReason) -> None:
        self.ended = self.ended or reason
        self.woken.set()


class ScriptedEngine:
    """`script` maps a job to its text. `hold()` lets jobs stand before their next step until `go_on()`."""

    def __init__(
        self, script: Callable[[Submit], str], *, loaded: bool = True, vocabulary: Path | None = None
    ) -> None:
        self.script = script
        self.loaded = loaded
        self.made = PROFILE
        self.hold_after = 0
        """Hold by itself when a job has produced this many pieces; 0: never."""
        self.unloaded = ""
        self._vocabulary = vocabulary
        if vocabulary is not None:
            save(VOCABULARY, vocabulary)
        self.jobs: list[Submit] = []
        self.work: Counter[str] = Counter()
        """Evaluated prompt tokens by job id."""
        self.ends: dict[str, StopReason] = {}
        """How each job ended; `cancelled` also when its reader just went away."""
        self.told: list[str] = []
        """Jobs whose Generation was given to a reader."""
        self.late = 0
        """Steps begun for a job after its end was known: must stay 0."""
        self.changed = asyncio.Condition()
        self._open = asyncio.Event()
        self._open.set()
        self._turn = asyncio.Lock()
        self._running: dict[str, _Running] = {}
        self._resident: array[int] = array("i")
        self._closed = False
        self._reused = 0
        self._generated = 0

    @property
    def state(self) -> EngineState:
        if self._closed:
            return EngineState(phase="stopped")
        if self.unloaded:
            return EngineState(phase="unloaded", detail=self.unloaded)
        return EngineState(phase="ready" if self.loaded else "loading", share=float(self.loaded))

    @property
    def profile(self) -> EngineProfile | None:
        return self.made if self.loaded else None

    @property
    def vocabulary(self) -> tuple[str, str]:
        return (str(self._vocabulary), "") if self._vocabulary and self.loaded else ("", "")

    @property
    def held(self) -> bool:
        return not self._open.is_set()

    def hold(self) -> None:
        self._open.clear()

    def go_on(self) -> None:
        self._open.set()

    async def until(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        """Wait until `condition`, looked at after every step and end; TimeoutError after `seconds`."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(condition)

    async def stream(self, job: Submit) -> AsyncGenerator[str | Generation, None]:
        if not self.loaded:
            raise Loading("Loading model")
        self.wake()
        self.jobs.append(job)
        running = self._running[job.id] = _Running(job, followed=job.follow)
        try:
            await self._tell()
            async with self._turn:
                async for found in self._run(running):
                    yield found
        finally:
            self.ends.setdefault(job.id, running.ended or "cancelled")
            del self._running[job.id]
            await self._tell()

    def supersede(self, job_id: str) -> None:
        if job_id in self._running:
            self._running[job_id].end("superseded")

    def follow(self, job_id: str) -> None:
        if job_id in self._running:
            self._running[job_id].followed = True

    def wake(self) -> None:
        self.unloaded = ""

    async def unload(self, why: str) -> None:
        if not self._running:
            self.unloaded = why

    async def report(self) -> Report | None:
        done = sum(self.work.values())
        return Report(
            idle=not self._running,
            sequences=1,
            cells_used=len(self._resident),
            cells=PROFILE.context,
            evaluated=done,
            reused=self._reused,
            generated=self._generated,
            decodes=0,
            aborted=0,
            after_slice=self.late,
        )

    async def close(self) -> None:
        self._closed = True
        for running in list(self._running.values()):
            running.end("cancelled")

    async def _run(self, running: _Running) -> AsyncGenerator[str | Generation, None]:
        job = running.job
        reused, total = await self._evaluate(running)
        text, said, stop, word, count = "", "", running.ended or "eos", "", 0
        if running.ended is None and job.warm:
            stop = "warm"
        elif running.ended is None:
            for piece in _PIECE.findall(self.script(job)):
                early = await self._step(running) or self._over(running, text, count)
                if early:
                    stop = early
                    break
                count += 1
                cut, word = _cut(text + piece, job)
                text = cut
                if len(text) > len(said) and (running.followed or not said):
                    yield text[len(said) :]
                    said = text
                if count == self.hold_after:
                    self.hold()
                if word:
                    stop = "line" if word == "\n" and job.limits.lines == "line" else "word"
                    break
        if len(text) > len(said):
            yield text[len(said) :]
        self.ends[job.id] = stop
        self._reused += reused
        self._generated += count
        elapsed = (time.perf_counter() - running.begun) * 1000
        work = Counters(
            prompt=total, reused=reused, evaluated=self.work[job.id], generated=count, steps=count + 1
        )
        times = Timings(first=elapsed, total=elapsed)
        word = word if stop == "word" else ""
        self.told.append(job.id)
        yield Generation(text=text, stop=stop, stop_word=word, counters=work, timings=times)

    async def _evaluate(self, running: _Running) -> tuple[int, int]:
        prompt = array("i", tokens.to_ids(running.job.tokens))
        pairs = zip(prompt, self._resident, strict=False)
        reused = next((at for at, (new, old) in enumerate(pairs) if new != old), None)
        reused = min(len(prompt), len(self._resident)) if reused is None else reused
        for begin in range(reused, len(prompt), SLICE):
            if await self._step(running):
                break
            self.work[running.job.id] += len(prompt[begin : begin + SLICE])
        self._resident = prompt[: reused + self.work[running.job.id]]
        return reused, len(prompt)

    async def _step(self, running: _Running) -> StopReason | None:
        """Wait for the gate, and for everybody else on the loop; the reason when the job is over."""
        self.late += running.ended is not None
        await self._tell()
        if not self._open.is_set() and running.ended is None:
            waits = [asyncio.create_task(e.wait()) for e in (self._open, running.woken)]
            try:
                await asyncio.wait(waits, timeout=self._left(running), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        await asyncio.sleep(0)
        return running.ended

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def _left(self, running: _Running) -> float | None:
        limit = running.job.limits.milliseconds
        return None if limit is None else max(0.0, limit / 1000 - (time.perf_counter() - running.begun))

    def _over(self, running: _Running, text: str, count: int) -> StopReason | None:
        limits, age = running.job.limits, (time.perf_counter() - running.begun) * 1000
        if count >= limits.tokens:
            return "limit"
        if limits.milliseconds is not None and age >= limits.milliseconds:
            return "time"
        after = limits.milliseconds_after_line
        return "time" if after is not None and "\n" in text and age >= after else None


def _cut(text: str, job: Submit) -> tuple[str, str]:
    """`text` before its earliest stop, and that stop."""
    stops = (*job.limits.stop, "\n") if job.limits.lines == "line" else job.limits.stop
    found = min(((text.find(stop), stop) for stop in stops if stop in text), default=None)
    return (text[: found[0]], found[1]) if found else (text, "")
