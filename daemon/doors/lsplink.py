"""The way from an editor to the daemon: found or started when the editor begins, found again when it went.

A daemon that crashed is started again. One that was ended in order stays away until the person asks for a
completion by hand; a newer build that took its place is taken as it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from daemon import instance, lifecycle
from daemon.aside import aside
from daemon.doors.client import TIMEOUT_S, Address
from daemon.doors.session import Session
from daemon.errors import ForetypeError, NotRunning

_AGAIN_S = 10.0
"""Between two starts of a daemon that crashes."""


class Link:
    """`arguments` and `token` are what `lifecycle.up` takes. One event loop only."""

    def __init__(
        self, address: Callable[[], Address], arguments: tuple[str, ...] = (), token: str = ""
    ) -> None:
        self._session = Session(address)
        self._arguments, self._token = arguments, token
        self.starting: asyncio.Task[None] | None = None
        """Ends when the daemon is found, or cannot be started."""
        self._started = -_AGAIN_S
        self._failure: ForetypeError | None = None
        """Why the daemon could not be started."""
        self._known = False
        """A daemon was reached, and not lost since."""
        self.lost: Callable[[], None] = lambda: None
        """Called when a daemon that was reached is there no longer: the next one knows nothing."""

    def start(self) -> None:
        """Find or start the daemon, as `foretype up` does."""
        self._begin(replace=True)

    def wake(self) -> None:
        """Somebody asks by hand: a daemon that is away, for whatever reason, is started."""
        if not self._known:
            self._begin(replace=False)

    async def ask(
        self, method: str, path: str, body: Any = None, timeout: float | None = TIMEOUT_S
    ) -> dict[str, Any]:
        """See Session.ask; waits for a daemon that is being started."""
        if self.starting is not None and not self.starting.done():
            await asyncio.shield(self.starting)
            if self._failure is not None:
                raise self._failure
        try:
            found = await self._session.ask(method, path, body, timeout)
        except NotRunning as error:
            self._missed(error)
            if self._failure is not None:  # it says more than that nobody answers
                raise self._failure from error
            raise
        self._known, self._failure = True, None
        return found

    async def close(self) -> None:
        """Hang up. A daemon that is being started stays."""
        if self.starting is not None:
            self.starting.cancel()
        await self._session.close()

    def _missed(self, error: NotRunning) -> None:
        if self._known:
            self._known = False
            self.lost()
        ended = isinstance(error.__cause__, FileNotFoundError)  # it took its socket along: no crash
        if not ended and time.monotonic() - self._started > _AGAIN_S:
            self._begin(replace=False)

    def _begin(self, *, replace: bool) -> None:
        if self.starting is None or self.starting.done():
            self._started = time.monotonic()
            self.starting = asyncio.create_task(self._up(replace), name="up")

    async def _up(self, replace: bool) -> None:
        def work() -> None:
            if replace or instance.greet(self._token) is None:
                lifecycle.up(self._arguments, self._token)

        try:
            await aside(work)
            self._failure = None
        except ForetypeError as error:
            self._failure = error
