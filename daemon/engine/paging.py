"""Between the cache tree and its pages: what leaves the context is kept, what is asked for again comes back.

Whole pages of what is resident are kept ahead, while nobody asks or beside long prompts, so that making room
costs nothing and a restart loses little. The rest behind them changes with every keystroke: it is kept once a
text has been left alone for a while, or leaves the context.
"""

from __future__ import annotations

import time

import msgspec
import numpy as np

from daemon.engine.binding import Ids
from daemon.engine.frames import Paged
from daemon.engine.pagefile import CHUNK
from daemon.engine.pages import Pages
from daemon.engine.tree import Resident, Tree

_AT_ONCE_S = 0.025
"""For so long in a tick pages are brought back, for all requests together."""
_AHEAD_S = 0.5
"""Quiet time before whole pages are kept."""
_REST_S = 20.0
"""Quiet time before the rests behind them are kept too."""
_BEHIND_S = 0.05
"""Until the disk is looked at again while it is behind."""
_WRITING_S = 0.005
_BESIDE = 0.05
"""Share of the time of long prompts in which whole pages of other texts are kept: these prompts need their
room, and whoever goes from file to file leaves no quiet moment."""
_LEAVING_S = 0.01
"""For so long in a tick what makes room is kept: requests wait meanwhile, the rest is dropped."""


class Paging:
    """Used by the engine thread only, `report` by any."""

    def __init__(
        self,
        tree: Tree,
        pages: Pages,
        *,
        ahead_s: float = _AHEAD_S,
        rest_s: float = _REST_S,
        leaving_s: float = _LEAVING_S,
    ) -> None:
        self._tree = tree
        self._pages = pages
        self._ahead_s, self._rest_s, self._leaving_s = ahead_s, rest_s, leaving_s
        self.begin()
        self._quiet = time.monotonic()
        self._done: set[Resident] = set()
        """Of which all that can be kept is kept since the last evaluation."""
        self._rests = False
        self._kept = True
        self._due: float | None = None
        self._beside_ms = 0.0
        """Time that may be spent beside prompts."""
        self._whole: dict[int, int] = {}
        """Sequence → `used` of the resident whose whole pages were all kept then."""
        tree.leaving = self._leaving

    def stir(self) -> None:
        """Something was evaluated."""
        self._quiet = time.monotonic()
        self._done.clear()
        self._rests = self._kept = False
        self._due = self._quiet + self._ahead_s
        if self._beside_ms >= self._pages.page_ms:
            self._beside()

    def _beside(self) -> None:
        """Keep a page of a text that nobody asks in."""
        for resident in self._tree.residents:
            if not resident.busy and self._whole.get(resident.sequence) != resident.used:
                began = time.perf_counter()
                self._keep_one(resident)
                self._beside_ms -= (time.perf_counter() - began) * 1000.0
                if resident in self._done:
                    self._whole[resident.sequence] = resident.used
                return
        self._beside_ms = 0.0  # none is left: what comes together from here on is for the next text

    @property
    def pause(self) -> float | None:
        """Seconds of quiet until `ahead` has something to do; None: nothing."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def ahead(self) -> None:
        """In a quiet moment: keep one page, or find that none is left to keep."""
        if self.pause != 0.0:
            return
        if not self._rests and time.monotonic() >= self._quiet + self._rest_s:
            self._rests = True
            self._done.clear()
        for resident in self._tree.residents:
            if resident not in self._done and not resident.busy:
                self._due = time.monotonic() + self._keep_one(resident)
                return
        self._pages.trim()
        self._kept = True
        self._due = None if self._rests else self._quiet + self._rest_s

    def _keep_one(self, resident: Resident) -> float:
        """Seconds until it may go on."""
        if not resident.keep:
            self._done.add(resident)
            return 0.0
        n = resident.n if self._rests else resident.n - resident.n % CHUNK
        tokens = resident.tokens[:n]
        at = self._pages.missing(tokens)
        following = self._pages.put(resident.sequence, tokens, resident.widths[:n], at) if at < n else n
        if following == n:
            self._done.add(resident)
        return _BEHIND_S if following == at < n else 0.0

    def begin(self) -> None:
        """A tick begins."""
        self._leaving_left, self._bringing_left = self._leaving_s, _AT_ONCE_S

    def _leaving(self, resident: Resident) -> None:
        began = time.monotonic()
        self.keep(resident, began + self._leaving_left)
        self._leaving_left -= time.monotonic() - began

    def keep(self, resident: Resident, until: float) -> None:
        """Keep of a resident that leaves the context as much as the time allows, and a disk not behind."""
        at, before, n = 0, -1, resident.n if resident.keep else 0
        while before < at < n and time.monotonic() < until:
            before = at
            at = self._pages.put(resident.sequence, resident.tokens[:n], resident.widths[:n], at)

    def leave(self, seconds: float) -> None:
        """Keep what is resident on disk, the last used first, for `seconds` at most."""
        until = time.monotonic() + seconds
        for resident in sorted(self._tree.residents, key=lambda r: -r.used):
            if not self._pages.lasting or time.monotonic() > until:
                return
            self.keep(resident, until)
        while self._pages.writing and time.monotonic() < until:
            time.sleep(_WRITING_S)

    def evaluated(self, rows: int, ms: float) -> None:
        """See Pages.evaluated."""
        if self._pages.evaluated(rows, ms):
            self._beside_ms += _BESIDE * ms

    def known(self, tokens: Ids, start: int) -> int:
        """See Pages.known."""
        return self._pages.known(tokens, start)

    @property
    def tired(self) -> bool:
        """No more pages are to be brought back in this tick."""
        return self._bringing_left <= 0

    def bring(self, resident: Resident, tokens: Ids) -> bool:
        """Bring one page of `tokens` back behind what `resident` holds of them; False where there is none, or
        no room for it."""
        start, began = resident.n, time.monotonic()
        if not self._tree.make_room(CHUNK):
            return False
        restored = self._pages.get(resident.sequence, tokens, start)
        self._bringing_left -= time.monotonic() - began
        if restored is None:
            return False
        self._tree.skip(restored.skipped)
        self._tree.extend(resident, tokens[start : restored.end])
        resident.widths[start : restored.end] = restored.widths
        if (lead := _lead(restored.widths)) and lead != _reach(resident.widths[:start]):
            resident.widths[start] = lead  # a call that began on the page before may be another evaluation's
        resident.behind = None  # logits of the text that it was forked from or cut to
        return True

    def close(self) -> None:
        """See Pages.close."""
        self._pages.close()

    def report(self) -> Paged:
        """Levels and counters."""
        return msgspec.structs.replace(self._pages.report(), kept=self._kept)


def _reach(widths: Ids) -> int:
    """How many rows of the last call stand behind these tokens, if it is whole."""
    starts = np.flatnonzero(widths)
    return int(starts[-1] + widths[starts[-1]]) - len(widths) if len(starts) else 0


def _lead(widths: Ids) -> int:
    """Tokens before the first call that begins here."""
    starts = np.flatnonzero(widths)
    return int(starts[0]) if len(starts) else len(widths)
