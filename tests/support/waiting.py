"""Waiting for what other threads and processes do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def until(probe: Callable[[], object], seconds: float = 60) -> None:
    """Until `probe` is true; nothing tells when it becomes so."""
    deadline = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)
