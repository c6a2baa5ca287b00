"""Progress bars of an editor that has them."""

from __future__ import annotations

import asyncio

from lsprotocol import types
from pygls.progress import Progress

from daemon.doors.lspnews import Going

_OPEN_S = 5.0
"""How long an editor may take to open one."""


class ProgressBar:
    """One that the editor has opened."""

    def __init__(self, progress: Progress, token: str, begun: Going) -> None:
        self._progress, self._token, self._last = progress, token, begun

    def report(self, going: Going) -> None:
        """Said only when it is news."""
        if going != self._last:
            self._last = going
            told = types.WorkDoneProgressReport(message=going.message, percentage=going.percent)
            self._progress.report(self._token, told)

    def end(self) -> None:
        """Close it."""
        self._progress.end(self._token, types.WorkDoneProgressEnd())
        self._progress.tokens.pop(self._token, None)


async def begin(progress: Progress, going: Going) -> ProgressBar | None:
    """Open one; None where the editor refuses or does not answer."""
    token = f"foretype-{going.name}-{id(going)}"
    try:
        await asyncio.wait_for(progress.create_async(token), _OPEN_S)
    except Exception:  # whatever it is: then there is no bar
        return None
    begun = types.WorkDoneProgressBegin(going.title, message=going.message, percentage=going.percent)
    progress.begin(token, begun)
    return ProgressBar(progress, token, going)
