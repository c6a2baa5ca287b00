"""Evaluated sequences beyond the context: pages in host memory, and behind it on disk.

A page is the state of up to CHUNK tokens of one sequence, found by the tokens themselves from the first one
on. The last page of a sequence may be shorter, and a page helps as far as its tokens agree. States are copied
through a scratch sequence, because llama.cpp reads and writes whole sequences only.

A page in host memory is written to disk at once, behind; giving it up later costs nothing then. One is read
back only where that was measured to be quicker than to evaluate its tokens.
"""

from __future__ import annotations

import mmap
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from daemon.engine.binding import Context, Ids
from daemon.engine.frames import Paged
from daemon.engine.pagedisk import Disk
from daemon.engine.pagefile import CHUNK, Page
from daemon.engine.pagetree import Match, PageTree

LEAST = 32
"""A shorter rest is not worth a page."""
_RECENT = 9
"""Measurements whose median counts: a busy moment decides nothing …"""
_FEW = 3
"""… and nothing is decided by fewer."""
_ENOUGH = 16
"""Rows of a decode that stand for evaluating a prompt."""
_PROBE = 16
"""So many refusals of a slow level, then one try: it may have become quick."""


class Restored(NamedTuple):
    """What a page brought back: the sequence holds `end` tokens now; `widths` of those it did not hold. Cells
    were given out for as many more before them as `skipped` says."""

    end: int
    widths: Ids
    skipped: int = 0


class Pages:
    """The levels of one context. Methods are called by the engine thread only; `put` and `get` move one page,
    so that they fit between ticks."""

    def __init__(
        self,
        context: Context,
        scratch: int,
        identity: bytes,
        *,
        host_bytes: int,
        disk_bytes: int,
        folder: Path | None,
    ) -> None:
        self._context = context
        self._scratch = scratch
        self._disk = Disk(folder, disk_bytes, identity) if folder is not None else None
        self._tree = PageTree(identity, host_bytes, self._disk)
        names = ("out", "host", "disk", "evaluated")
        self._costs: dict[str, deque[float]] = {name: deque(maxlen=_RECENT) for name in names}
        """Milliseconds per token: out, in from a level, and what a page must beat."""
        self._tokens = dict.fromkeys(("out", "host", "disk"), 0)
        self._refused = 0
        self._declined = 0

    def known(self, tokens: Ids, start: int = 0) -> int:
        """Length of the beginning of `tokens` that pages can bring back, quicker than it is evaluated, into
        a sequence that holds `start` tokens; `start` where they cannot."""
        end = start
        for match in self._tree.walk(tokens):
            if match.end > start:
                if not self._pays(match, end):
                    break
                end = match.end
        return end

    def put(self, sequence: int, tokens: Ids, widths: Ids, start: int) -> int:
        """Page out one page of `sequence`, which holds `tokens`: the one that begins at `start`, a multiple
        of CHUNK. Returns where the next one begins; `start` itself while what
        waits for the disk leaves no room; len(tokens) when no more can be done."""
        n, now = len(tokens), time.time()
        end = min(start + CHUNK, n)
        parent = self._tree.touch(tokens[:start], now)
        if end - start < LEAST or parent is None or not (self._tree.ceiling or self._tree.writes()):
            return n
        page = Page(parent, start, tokens[start:end].copy(), widths[start:end].copy(), 0, now)
        near = self._tree.nearest(parent, page.tokens)
        shared = near.shared(page.tokens) if near else 0
        if near and (shared == end - start or (end - start < CHUNK and end - start - shared < LEAST)):
            self._tree.use(near, now)
            return end
        waiting = self.writing
        if self._copy_out(sequence, page):
            return end
        return start if waiting else n

    def get(self, sequence: int, tokens: Ids, start: int) -> Restored | None:
        """Page in one page behind the `start` tokens that `sequence` holds; CHUNK cells must be free.

        None when there is none, when it cannot be read now, or when it is damaged: then it is gone.
        """
        match = next((m for m in self._tree.walk(tokens) if m.end > start), None)
        if match is None:
            return None
        began, now, page = time.perf_counter(), time.time(), match.page
        level = "host" if page.data is not None else "disk"
        data = page.data if page.data is not None else self._load(page, now)
        if data is None and self._disk is not None and self._disk.has(page):
            return None
        if data is None or not self._copy_in(sequence, page, data, start, match.end):
            self._tree.forget(page)
            return None
        self._measure(level, began, len(page.tokens))
        self._tree.touch(tokens[: page.start], now)
        self._tree.use(page, now)
        held = start - page.start
        return Restored(match.end, page.widths[held : match.end - page.start], held)

    def evaluated(self, rows: int, ms: float) -> bool:
        """A decode took so long; whether it was of a prompt, by its rows."""
        if rows >= _ENOUGH:
            self._costs["evaluated"].append(ms / rows)
        return rows >= _ENOUGH

    @property
    def page_ms(self) -> float:
        """What it takes to page out a whole page; 0 while none was."""
        return self._cost("out") * CHUNK

    def missing(self, tokens: Ids) -> int:
        """Where the first page begins that holds none of `tokens` yet; len(tokens) where none is missing, or
        only a rest too short for one."""
        walked = self._tree.walk(tokens)
        end = walked[-1].end if walked else 0
        return end - end % CHUNK if len(tokens) - end >= LEAST else len(tokens)

    def trim(self) -> None:
        """In idle moments: write what a disk that came back has missed, and give memory back."""
        self._tree.trim()

    @property
    def lasting(self) -> bool:
        """Whether pages reach the disk."""
        return self._tree.writes()

    @property
    def writing(self) -> int:
        """Pages on their way there."""
        return self._disk.pending if self._disk is not None else 0

    def report(self) -> Paged:
        """Levels and counters. May be called from any thread: it only reads."""
        disk, ceiling = self._disk, self._tree.ceiling
        return Paged(
            host_pages=self._tree.count,
            host_bytes=self._tree.size,
            host_ceiling=ceiling,
            host_why="" if ceiling else "engine.page_mb is 0",
            disk_pages=disk.count if disk else 0,
            disk_bytes=disk.size if disk else 0,
            disk_ceiling=disk.ceiling if disk else 0,
            disk_why=disk.why if disk else "no folder",
            writing=self.writing,
            out_tokens=self._tokens["out"],
            host_tokens=self._tokens["host"],
            disk_tokens=self._tokens["disk"],
            out_ms=self._cost("out"),
            host_ms=self._cost("host"),
            disk_ms=self._cost("disk"),
            recompute_ms=self._cost("evaluated"),
            damaged=self._refused + (disk.damaged if disk else 0),
            declined=self._declined,
        )

    def close(self) -> None:
        """Give the folder back; what is not written yet is lost."""
        if self._disk is not None:
            self._disk.close()

    def _pays(self, match: Match, start: int) -> bool:
        """Whether bringing this page back is quicker than to evaluate what `start` tokens lack of it."""
        level, beat = "disk" if match.page.data is None else "host", self._cost("evaluated")
        gained, cost = match.end - max(start, match.page.start), self._cost(level)
        if not beat or len(self._costs[level]) < _FEW or cost * len(match.page.tokens) < beat * gained:
            return True
        self._declined += 1
        return self._declined % _PROBE == 0

    def _copy_out(self, sequence: int, page: Page) -> bool:
        """Read the state of `page` from `sequence`; False where there is no room for it."""
        began = time.perf_counter()
        self._context.copy(sequence, self._scratch, page.start + len(page.tokens), page.start)
        try:
            page.size = self._context.state_size(self._scratch)
            if not self._tree.room(page.size, page.rank):
                return False
            try:
                data = mmap.mmap(-1, page.size)
            except OSError:  # a machine without memory
                return False
            if not self._context.state_get(self._scratch, data):
                return False
        finally:
            self._context.cut(self._scratch, 0)
        self._tree.add(page, data)
        self._measure("out", began, len(page.tokens))
        return True

    def _copy_in(self, sequence: int, page: Page, data: mmap.mmap, start: int, end: int) -> bool:
        """Through the scratch sequence, of which `sequence` takes what it lacks."""
        try:
            last = page.start + len(page.tokens) - 1
            fits = self._context.state_set(self._scratch, data)
            if not fits or self._context.last_position(self._scratch) != last:
                self._refused += 1
                return False
            self._context.copy(self._scratch, sequence, end, start)
            if page.start < start:
                self._context.bury(self._scratch, page.start, start)
        finally:
            self._context.cut(self._scratch, 0)
        return True

    def _load(self, page: Page, now: float) -> mmap.mmap | None:
        """From disk, and into host memory where there is room."""
        data = self._disk.take(page) if self._disk is not None else None
        if data is not None and self._tree.room(page.size, (now, -page.start)):
            self._tree.hold(page, data)
        return data

    def _measure(self, level: str, began: float, tokens: int) -> None:
        self._costs[level].append((time.perf_counter() - began) * 1000.0 / tokens)
        self._tokens[level] += tokens

    def _cost(self, name: str) -> float:
        """Median of the last measurements; 0 while there are none."""
        recent = sorted(self._costs[name])
        return recent[len(recent) // 2] if recent else 0.0
