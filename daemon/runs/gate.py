"""Who is planned now, and who waits unplanned until the engine needs it.

An engine that is asked by more people than it can answer finds most requests superseded before their turn
comes. What a plan takes of the machine is then taken from the engine, for nothing: with 200 people on two
cores, more than a third of one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from daemon.runs.seats import Turn


class Gate:
    """Lets `most` turns in at once, the others in the order in which they came. For one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside: set[Turn] = set()
        self._waiting: deque[Turn] = deque()

    async def let_in(self, turn: Turn) -> bool:
        """Wait until it is inside; False where it is over before, or its time is. To be left in any case."""
        if len(self._inside) < self._most:
            self._inside.add(turn)
            return True
        self._waiting.append(turn)
        began = asyncio.get_running_loop().time()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(turn.until):
                await turn.moved.wait()
        turn.waited_ms = (asyncio.get_running_loop().time() - began) * 1000.0
        return turn in self._inside

    def leave(self, turn: Turn) -> None:
        """It neither waits nor is inside any more, whatever it did before."""
        turn.moved.set()
        if turn in self._inside:
            self._inside.remove(turn)
            self._next()
        elif turn in self._waiting:
            self._waiting.remove(turn)

    def _next(self) -> None:
        if self._waiting:
            turn = self._waiting.popleft()
            self._inside.add(turn)
            turn.moved.set()
