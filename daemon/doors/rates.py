"""How fast one client may ask: a token bucket per client, looked at before a request is planned.

A request costs a token until it is answered, so that only what a client does not wait for counts: who asks
again as soon as it has its answer is never refused, however quick the answers are. A refusal costs a token as
well, down to a second's worth below zero: a client that floods on is refused for as long as it does, and one
that keeps still for the seconds that it was told is let in again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from daemon.errors import Overloaded

KEPT = 256
"""Clients remembered; the one that has been silent for longest goes first, with a full bucket."""


class TooFast(Overloaded):
    """One client asks faster than it may; the others are not touched."""


_BURST_S = 0.4
"""A full bucket, in seconds of its filling: so long a flood is felt before it is told."""


class Rates:
    """`per_s` requests a second of each client; 0: no limit."""

    def __init__(self, per_s: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._most = max(1.0, _BURST_S * per_s)
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}
        """Client → (tokens, when), the longest silent first."""

    def take(self, client: str, *, free: bool = False) -> None:
        """`client` asks; `free` of charge where it comes with a request that paid. Raises TooFast."""
        if not self._per_s:
            return
        level = self._level(client)
        left = level if free else max(level - 1.0, -float(self._per_s))
        self._keep(client, left)
        if level < 1.0:
            seconds = math.ceil((1.0 - left) / self._per_s)
            asks = f"this client asks more than {self._per_s} times a second and does not wait for answers"
            raise TooFast(asks, f"Be silent for {seconds} s", seconds)

    def give_back(self, client: str) -> None:
        """A request of `client` was answered."""
        if client in self._levels:
            self._keep(client, self._level(client) + 1.0)

    def _level(self, client: str) -> float:
        now = self._clock()
        level, since = self._levels.get(client, (self._most, now))
        return min(self._most, level + (now - since) * self._per_s)

    def _keep(self, client: str, level: float) -> None:
        self._levels.pop(client, None)
        self._levels[client] = (min(level, self._most), self._clock())
        if len(self._levels) > KEPT:
            del self._levels[next(iter(self._levels))]
