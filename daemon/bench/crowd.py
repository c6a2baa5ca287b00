"""Many streams at once against one pipeline, for a fixed time; each edit takes back the question before it.

Definitions, the same for every pipeline:
- a question: the request of one edit. It stands until the next edit of its stream, or the time is up;
- answered: the whole answer came while its question stood, and not for a failure. Its time counts from the
  moment that the edit was due, not from when the client came to send it;
- cancelled: not answered when the next edit took it back, by closing the connection; neither pipeline
  computes for it any longer;
- waiting: not answered when the time was up; refused: answered 429; failed: another error.
Only answered questions are answers. P50 and P99 are over all questions: what was not answered counts as
longer than it stood (stats.answered_within).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from daemon.bench import cancelling, ours, rig, stats, traces
from daemon.bench.typists import Stream
from daemon.errors import ForetypeError, Overloaded

Ending = Literal["answered", "cancelled", "waiting", "refused", "failed"]
ENDINGS: tuple[Ending, ...] = ("answered", "cancelled", "waiting", "refused", "failed")
_BEFORE_S = 0.1
"""From making the tasks to the first edit."""
_LOOK_S = 0.25
"""Between two looks at the cells in use."""


@dataclass(frozen=True, slots=True)
class Side:
    """A pipeline: its daemon, the body of a question, and a lock where it takes one question at a time."""

    here: rig.Rig
    body: Callable[[Stream, traces.State], bytes]
    turn: asyncio.Lock | None = None

    async def ask(self, body: bytes) -> ours.Answer:
        """One question, when it is its turn: the oldest that still stands goes first."""
        async with self.turn or contextlib.nullcontext():
            return await ours.ask_whole(self.here.endpoint, body)

    async def rested(self) -> None:
        """Until the engine does nothing, and no idle work waits."""
        await cancelling.quiet(self.here)
        await self.here.rested()


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of one question. Times in ms; `after` only where it was answered."""

    stood: float
    ending: Ending
    after: float | None = None
    prompt: int = 0
    evaluated: int = 0
    tokens: int = 0
    """Of prompt and answer: the KV cells that it needs."""
    engine_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """What became of all questions of `seconds`, and the most in use at a look every 250 ms: KV cells, and
    bytes of evaluated text in host memory."""

    seconds: float
    asked: tuple[Asked, ...]
    cells: int = 0
    paged: int = 0

    def __add__(self, other: Crowd) -> Crowd:
        """Both, one after the other."""
        cells, paged = max(self.cells, other.cells), max(self.paged, other.paged)
        return Crowd(self.seconds + other.seconds, self.asked + other.asked, cells, paged)

    def within(self, share: float) -> tuple[float, bool]:
        """See stats.answered_within."""
        return stats.answered_within((stats.Wait(a.stood, a.after) for a in self.asked), share)

    def count(self, ending: Ending) -> int:
        """How many ended so."""
        return sum(a.ending == ending for a in self.asked)

    @property
    def answered(self) -> list[Asked]:
        """The answers."""
        return [a for a in self.asked if a.ending == "answered"]

    @property
    def request_cells(self) -> int:
        """KV cells of the largest question that was answered; without any, those that were in use."""
        return max((a.tokens for a in self.answered), default=self.cells)


async def play(side: Side, streams: Sequence[Stream], seconds: float) -> Crowd:
    """Let all streams type for `seconds`, then wait until the pipeline rests.

    Raises EngineFailed when it does not.
    """
    begin = asyncio.get_running_loop().time() + _BEFORE_S
    peaks = {"cells": 0, "paged": 0}
    watch = asyncio.ensure_future(_watch(side.here, peaks))
    try:
        found = await asyncio.gather(*(_type(side, stream, begin, seconds) for stream in streams))
    finally:
        watch.cancel()
        await asyncio.wait({watch})
    await side.rested()
    return Crowd(seconds, tuple(asked for stream in found for asked in stream), **peaks)


async def _watch(here: rig.Rig, peaks: dict[str, int]) -> None:
    while True:
        with contextlib.suppress(ForetypeError):  # too busy to say
            report = await here.report()
            pages = report.get("pages") or {}
            peaks["cells"] = max(peaks["cells"], report.get("cells_used", 0))
            peaks["paged"] = max(peaks["paged"], pages.get("host_bytes", 0))
        await asyncio.sleep(_LOOK_S)


async def _type(side: Side, stream: Stream, begin: float, seconds: float) -> list[Asked]:
    loop = asyncio.get_running_loop()
    asked = []
    ends = [*stream.times[1:], seconds]
    for at, end, state in zip(stream.times, ends, stream.states(), strict=False):
        await asyncio.sleep(begin + at - loop.time())
        task = asyncio.ensure_future(side.ask(side.body(stream, state)))
        await asyncio.wait({task}, timeout=max(begin + end - loop.time(), 0.0))
        after = (loop.time() - begin - at) * 1e3
        asked.append(_asked(task, (end - at) * 1e3, after, last=end == seconds))
        task.cancel()
        await asyncio.wait({task})
    return asked


def _asked(task: asyncio.Future[ours.Answer], stood: float, after: float, last: bool) -> Asked:
    if not task.done():
        return Asked(stood, "waiting" if last else "cancelled")
    error = task.exception()
    if error is not None and not isinstance(error, ForetypeError):
        raise error
    if error is not None or not (answer := task.result()).whole:
        return Asked(stood, "refused" if isinstance(error, Overloaded) else "failed")
    if after > stood:
        return Asked(stood, "cancelled")
    tokens = answer.prompt + answer.generated
    return Asked(stood, "answered", after, answer.prompt, answer.evaluated, tokens, answer.engine_ms)
