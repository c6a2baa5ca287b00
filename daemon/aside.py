"""Work beside the event loop that the process does not wait for when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


async def aside(work: Callable[[], _T]) -> _T:
    """Run `work` in a thread of its own that no end of the process waits for: hashing, or a start, may take
    long."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(value: _T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # type: ignore[arg-type]

    def body() -> None:
        try:
            outcome: tuple[_T | None, BaseException | None] = (work(), None)
        except Exception as error:  # delivered to the waiting task, which knows what to do
            outcome = (None, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=body, name="aside", daemon=True).start()
    return await future
