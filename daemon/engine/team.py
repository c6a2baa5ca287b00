"""How many threads compute a decode: what is asked in advance leaves a core to the person who types.

Where every core computes, daemon and editor share one with the engine, and a scheduler takes it from them
again before long, for a whole tick (4 ms on most Linux systems): on two cores one in thirty answers that need
no model waited for that. Warm-ups have all threads: soon somebody waits for them. How many there are changes
no result in any way in which attention is computed on a CPU here (placing.py); GPUs are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from daemon.engine.binding import Context
from daemon.engine.costs import usable_threads
from daemon.engine.work import Work


class Team:
    """`most` threads, or `fewer`. Used by the engine thread only."""

    def __init__(self, context: Context, most: int, fewer: int) -> None:
        self._context = context
        self._most, self.fewer = most, fewer
        self.sparing = False
        """The last decode had fewer threads: its time tells nothing of the others."""

    def gather(self, works: Iterable[Work]) -> None:
        """The threads for a decode of rows of these."""
        sparing = self.fewer < self._most and all(work.spares for work in works)
        if sparing != self.sparing:
            self._context.set_threads(self.fewer if sparing else self._most)
            self.sparing = sparing


def fewer(threads: int) -> int:
    """Threads for what is asked in advance: one less where all that may run at once compute."""
    return threads - 1 if 1 < threads == usable_threads() else threads
