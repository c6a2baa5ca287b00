"""What the doors need of the house, and what is going on at them right now."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from daemon.documents.mirror import Mirror
from daemon.doors.rates import Rates, TooFast
from daemon.engine.protocol import Engine
from daemon.errors import Overloaded
from daemon.nouns import Completion, CompletionRequest
from daemon.observe.acceptance import Acceptance
from daemon.observe.ledger import Ledger
from daemon.observe.metrics import Metrics
from daemon.settings import Server, Settings

LONGEST_RETRY = 30
"""Most seconds that `Retry-After` says."""
OnText = Callable[[str], Awaitable[None]]
"""Receives text as it comes; all pieces together are the completion's text."""


class Pipeline(Protocol):
    """daemon.pipeline.Pipeline as the doors see it; cancelling the awaiting task cancels the work."""

    async def complete(self, request: CompletionRequest, on_text: OnText | None = None) -> Completion:
        """Answer one request."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client may take, in seconds."""

    head: float = 30.0
    """For the request line and headers; also how long an idle connection is kept."""
    body: float = 10.0
    """For the whole body."""
    read: float = 10.0
    """For reading what we wrote, each time that the socket is full."""
    linger: float = 2.0
    """For the rest of a body that we will not read."""


@dataclass(frozen=True, slots=True)
class House:
    """Given by app.py. `status` is the body of /v1/status, `hello` the identity of the running daemon."""

    pipeline: Pipeline
    settings: Settings
    status: Callable[[], Awaitable[dict[str, Any]]]
    hello: Callable[[], dict[str, Any]]
    stop: Callable[[], None]
    engine: Engine
    metrics: Metrics
    documents: Mirror
    ledger: Ledger
    feedback: Acceptance
    patience: Patience = Patience()


@dataclass(slots=True)
class Traffic:
    """Requests in the house. Intake of completions stops when `high` clients wait for one, and goes on when
    `low` do, or below `high` once the time is over that the refused were told to wait."""

    high: int = 64
    low: int = 16
    held: int = 64
    """Most requests of one client, alternatives left out, that wait at once: others need room as well."""
    inside: int = 0
    """Requests that count against `server.max_concurrent`."""
    waiting: int = 0
    """Completions asked for and not answered yet, alternatives included."""
    stopped: bool = False
    """Intake of completions has stopped."""
    stops: int = 0
    """How often it did."""
    empty: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while nobody is inside."""
    draining: bool = False
    rates: Rates = field(default_factory=lambda: Rates(0))
    """How fast each client may ask."""
    works: set[asyncio.Task[Completion]] = field(default_factory=set)
    _asking: Counter[str] = field(default_factory=Counter)
    _since: float = 0.0
    _until: float = 0.0
    _left: int = 0

    def __post_init__(self) -> None:
        self.empty.set()

    @classmethod
    def of(cls, settings: Server) -> Traffic:
        """With the marks of the settings."""
        most = settings.max_concurrent
        high, low = math.ceil(most * settings.high_mark / 100), int(most * settings.low_mark / 100)
        held = max(1, most * 2 // 3) if settings.client_per_s else most
        return cls(high=max(1, high), low=max(1, low), held=held, rates=Rates(settings.client_per_s))

    def enter(self) -> None:
        """One more is inside."""
        self.inside += 1
        self.empty.clear()

    def leave(self) -> None:
        """One has gone."""
        self.inside -= 1
        if not self.inside:
            self.empty.set()

    @contextlib.contextmanager
    def asking(self, client: str, *, alternative: bool = False) -> Iterator[None]:
        """A completion, or an alternative to one, is asked for and waited for.

        Raises TooFast when `client` asks too often, and Overloaded while intake is stopped, unless it waits
        for one other already: the newer one takes its place, and the queue does not grow.
        """
        self.rates.take(client, free=alternative)
        self._admit(client, alternative)
        counted = [] if alternative else [client]
        self.waiting += 1
        self._asking.update(counted)
        try:
            yield
        finally:
            self.waiting -= 1
            self._asking.subtract(counted)
            if not alternative and not self._asking[client]:
                del self._asking[client]
                self._left += 1
            self.stopped = self.stopped and len(self._asking) > self.low

    def _admit(self, client: str, alternative: bool) -> None:
        if not alternative and self._asking[client] >= self.held:
            raise TooFast(f"{self.held} requests of this client wait already", "Wait for answers", 1)
        self._look()
        if not self.stopped and len(self._asking) >= self.high:
            self.stopped, self._since, self._left = True, time.monotonic(), 0
            self._until = self._since + 1.0
            self.stops += 1
        if self.stopped and (alternative or self._asking[client] != 1):
            seconds = self._resumes_in()
            raise Overloaded(
                f"{len(self._asking)} clients wait already", f"Try again in {seconds} s", seconds
            )

    def _look(self) -> None:
        """Intake goes on when those that were refused come back as they were told: some may type for ever."""
        if len(self._asking) < self.high and time.monotonic() >= self._until:
            self.stopped = False

    def _resumes_in(self) -> int:
        """Seconds, at the pace at which clients were served since intake stopped; from 1 to LONGEST_RETRY.

        Nobody is told a later time than LONGEST_RETRY from that stop on.
        """
        now = time.monotonic()
        pace = (now - self._since) / self._left if self._left else 0.0
        last = self._since + LONGEST_RETRY
        seconds = max(1, math.ceil(min((len(self._asking) - self.low) * pace, last - now)))
        self._until = min(max(self._until, now + seconds), last)
        return seconds

    def facts(self) -> dict[str, Any]:
        """For status."""
        self._look()
        return {
            "inside": self.inside,
            "waiting": self.waiting,
            "clients": len(self._asking),
            "high": self.high,
            "low": self.low,
            "stopped": self.stopped,
            "stops": self.stops,
        }


HOUSE: web.AppKey[House] = web.AppKey("house", House)
TRAFFIC: web.AppKey[Traffic] = web.AppKey("traffic", Traffic)
