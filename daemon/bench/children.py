"""Child processes of a measurement: ended always, politely first."""

from __future__ import annotations

import asyncio
import contextlib

PATIENCE_S = 5.0


async def ended(child: asyncio.subprocess.Process) -> None:
    """Close its standard input, ask it to end, and kill it when it does not within 5 s."""
    if child.stdin is not None:
        child.stdin.close()
    if child.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
    try:
        await asyncio.wait_for(child.wait(), PATIENCE_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
