"""What is evaluated while nobody waits: a better anchor, the epoch that should follow, a file just opened.

One piece of work at a time; any request ends it, and what it evaluated so far stays evaluated.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from dataclasses import replace
from typing import Any

from daemon.context.planner import Better, Planned, Planner
from daemon.documents.mirror import DENIED
from daemon.engine.frames import Submit
from daemon.engine.protocol import Engine
from daemon.errors import Loading
from daemon.libc import give_back
from daemon.nouns import Generation, Limits

_QUIET_S = 0.4
"""Time after an answer before idle work begins."""
_REST_S = 5.0
"""Then nobody is in the middle of a word, and garbage is collected: that takes 20 ms or so."""
_STEPS = 2
"""First another epoch, then a better anchor behind it: each is used as soon as it is evaluated."""


class Idle:
    """Idle work of one event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._task: asyncio.Task[None] | None = None
        self._choosing: asyncio.Future[Any] | None = None
        self._unfinished: tuple[Planner, Planned, bool] | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._numbers = itertools.count(1)
        self.spent_ms = 0.0
        """Milliseconds in which the engine worked for this, abandoned work included."""

    @property
    def resting(self) -> bool:
        """Whether no idle work waits or runs."""
        return self._task is None or self._task.done()

    def after(self, planner: Planner, planned: Planned, opened: bool = False) -> None:
        """Make the next answer here better: once nothing was asked for a while, or at once where a document
        was `opened` and nothing of the plan is evaluated yet."""
        self.stop()
        self._unfinished = planner, planned, opened
        self._task = asyncio.create_task(self._improve(planner, planned, opened), name="idle work")

    def again(self) -> None:
        """Go on with what was stopped, after a request that makes nothing better for others."""
        if self._unfinished is not None:
            self.after(*self._unfinished)

    def stop(self) -> None:
        """A request is here: the engine is its own."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._rest is not None:
            self._rest.cancel()

    async def close(self) -> None:
        """End it all, and wait for the thread that chooses."""
        self.stop()
        if self._choosing is not None:
            await asyncio.wait([self._choosing])

    async def _improve(self, planner: Planner, planned: Planned, opened: bool) -> None:
        if not opened:
            await asyncio.sleep(_QUIET_S)
        if self._choosing is not None:  # of work that was stopped: its thread goes on, and one is enough
            await asyncio.wait([self._choosing])
        self._choosing = asyncio.ensure_future(asyncio.to_thread(planner.following, planned))
        following = await asyncio.shield(self._choosing)
        better = planner.better(planned, following) or (planner.same(planned) if opened else None)
        for _ in range(_STEPS):
            if better is None or not await self._evaluated(better, planned.document.why != DENIED):
                break
            planner.adopt(better)
            planned = replace(planned, stable=better.stable, anchor=better.anchor)
            better = planner.better(planned, None)
        self._unfinished = None
        self._rest = asyncio.get_running_loop().call_later(_REST_S, give_back)

    async def _evaluated(self, better: Better, keep: bool) -> bool:
        job = Submit(
            id=f"idle.{next(self._numbers)}",
            tokens=better.prompt.tokens,
            warm=True,
            lane="anchor",
            limits=Limits(),
            keep=keep,
        )
        began = time.monotonic()
        try:
            async with contextlib.aclosing(self._engine.stream(job)) as events:
                async for event in events:
                    if isinstance(event, Generation):
                        return event.stop == "warm"
        except Loading:
            pass
        finally:
            self.spent_ms += (time.monotonic() - began) * 1000
        return False
