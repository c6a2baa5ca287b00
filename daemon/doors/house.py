"""What the doors need of the house, and what is going on at them right now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from daemon.engine.protocol import Engine
from daemon.nouns import Completion, CompletionRequest
from daemon.observe.ledger import Ledger
from daemon.observe.metrics import Metrics
from daemon.settings import Settings

OnText = Callable[[str], Awaitable[None]]
"""Receives text as it comes; all pieces together are the completion's text."""


class Pipeline(Protocol):
    """daemon.pipeline.Pipeline as the doors see it; cancelling the awaiting task cancels the work."""

    async def complete(self, request: CompletionRequest, on_text: OnText | None = None) -> Completion:
        """Answer one request."""
        ...


class Documents(Protocol):
    """daemon.documents.mirror.Mirror as the doors see it."""

    def open(self, client: str, path: str, text: str, language: str | None = None, version: int = 0) -> None:
        """A client opened a document."""
        ...

    def change(
        self, client: str, path: str, text: str, version: int | None = None, *, language: str | None = None
    ) -> None:
        """The whole new text of a document."""
        ...

    def close(self, client: str, path: str) -> None:
        """A client has it open no longer."""
        ...

    def visit(self, client: str, path: str, line: int = -1) -> None:
        """The person looks at a line, or at the document when it is negative."""
        ...

    def accepted(self, client: str, path: str, text: str) -> None:
        """The person took a completion."""
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
    documents: Documents
    ledger: Ledger
    patience: Patience = Patience()


@dataclass(slots=True)
class Traffic:
    """Requests in the house."""

    inside: int = 0
    """Requests that count against `server.max_concurrent`."""
    empty: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while nobody is inside."""
    draining: bool = False
    works: set[asyncio.Task[Completion]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.empty.set()

    def enter(self) -> None:
        """One more is inside."""
        self.inside += 1
        self.empty.clear()

    def leave(self) -> None:
        """One has gone."""
        self.inside -= 1
        if not self.inside:
            self.empty.set()


HOUSE: web.AppKey[House] = web.AppKey("house", House)
TRAFFIC: web.AppKey[Traffic] = web.AppKey("traffic", Traffic)
