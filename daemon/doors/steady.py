"""Snippets of a client that stay while a person types.

Some clients choose them anew for each keystroke, by the words before the cursor. In the prompt they stand
before the text, where each change has all that follows evaluated again. So those of a burst's first request
stay, in their order, until the person pauses or goes to another file.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from daemon.nouns import Extra

PAUSE_S = 3.0
_CLIENTS = 64


class Steady:
    """Of each client and file. `clock`: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[str, float, tuple[Extra, ...]]] = OrderedDict()

    def extras(self, client: str, path: str, sent: tuple[Extra, ...]) -> tuple[Extra, ...]:
        """What to show of the snippets that were `sent`, or before them. Other kinds are as they are sent."""
        now = self._clock()
        snippets = tuple(extra for extra in sent if extra.kind == "snippet")
        where, until, kept = self._kept.pop(client, ("", 0.0, ()))
        if kept and where == path and now < until:
            snippets = kept
        self._kept[client] = (path, now + PAUSE_S, snippets)
        while len(self._kept) > _CLIENTS:
            self._kept.popitem(last=False)
        return (*snippets, *(extra for extra in sent if extra.kind != "snippet"))
