"""The running daemon as a program with an event loop asks it: many questions at once, connections kept open.

Cancelling the task that waits for an answer hangs up, and that cancels the work. As in client.py no proxy and
no environment is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import msgspec

from daemon.doors.client import TIMEOUT_S, Address, decoded, failure, gone
from daemon.errors import NotRunning, Overloaded


class Session:
    """Where the daemon is, is asked of `address` whenever there is no connection. One event loop only."""

    def __init__(self, address: Callable[[], Address]) -> None:
        self._address = address
        self._session: aiohttp.ClientSession | None = None
        self._base = ""

    async def ask(
        self, method: str, path: str, body: Any = None, timeout: float | None = TIMEOUT_S
    ) -> dict[str, Any]:
        """The JSON object that `path` answers. `timeout` in seconds for all of it; None: no limit.

        Raises NotRunning when nobody answers (its cause says why), and the error that the daemon reports.
        """
        try:
            async with asyncio.timeout(timeout):
                session = self._opened()
                sent = msgspec.json.encode({} if body is None else body) if method == "POST" else None
                async with session.request(method, self._base + path, data=sent) as response:
                    found = decoded(await response.read())
        except aiohttp.ClientConnectorError as error:
            await self.close()
            raise gone(error.os_error) from error.os_error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise gone(error) from error
        if response.status != 200:
            told = failure(found, response.status)
            if isinstance(told, Overloaded) and response.headers.get("Retry-After", "").isdecimal():
                told.retry_after = int(response.headers["Retry-After"])
            raise told
        return found

    async def close(self) -> None:
        """Hang up on everything."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            at = self._address()
            if at.socket_path is None and not at.port:
                raise NotRunning("no daemon is running", "`foretype up` starts one")
            headers = {"User-Agent": "foretype", "Content-Type": "application/json"}
            if at.token:
                headers["Authorization"] = f"Bearer {at.token}"
            if at.socket_path is not None:
                self._base = "http://foretype"
                connector: aiohttp.BaseConnector = aiohttp.UnixConnector(path=str(at.socket_path))
            else:
                self._base, connector = f"http://127.0.0.1:{at.port}", aiohttp.TCPConnector()
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
            )
        return self._session
