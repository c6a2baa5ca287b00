"""Which pages there are, in host memory and on disk, and which of them go when room is needed.

All pages form a tree: each names the one before it, the first ones name the identity of what computed them.
"""

from __future__ import annotations

import mmap
import time
from typing import NamedTuple

from daemon.engine.binding import Ids
from daemon.engine.pagedisk import OLDEST_S, Disk
from daemon.engine.pagefile import CHUNK, Page, chained


class Match(NamedTuple):
    """A page whose tokens agree with a sequence up to position `end`."""

    page: Page
    end: int


class PageTree:
    """Used by the engine thread only, `count` and `size` by any."""

    def __init__(self, identity: bytes, ceiling: int, disk: Disk | None) -> None:
        self.ceiling = ceiling
        self.size = 0
        """Bytes of states in host memory."""
        self._identity = identity
        self._disk = disk
        self._pages: dict[bytes, Page] = {}
        self._children: dict[bytes, list[Page]] = {}
        for page in disk.pages() if disk else ():
            self._place(page)
        for page in sorted(self._pages.values(), key=lambda p: -p.start):
            if (before := self._pages.get(page.parent)) and before.used < page.used:
                self.use(before, page.used)

    @property
    def count(self) -> int:
        """Pages in host memory."""
        return sum(page.data is not None for page in list(self._pages.values()))

    def walk(self, tokens: Ids) -> list[Match]:
        """The pages that hold the beginning of `tokens`, first to last; the last one may agree in part."""
        found: list[Match] = []
        parent, at = self._identity, 0
        while at < len(tokens):
            page = self.nearest(parent, tokens[at : at + CHUNK])
            if page is None:
                break
            shared = page.shared(tokens[at:])
            found.append(Match(page, at + shared))
            if shared < CHUNK:
                break
            parent, at = page.key, at + CHUNK
        return found

    def nearest(self, parent: bytes, tokens: Ids) -> Page | None:
        """The page behind `parent` that agrees longest with `tokens`, the shortest of equals."""
        exact = self._pages.get(chained(parent, tokens))
        if exact is not None and self._there(exact):
            return exact
        near = [p for p in self._children.get(parent, ()) if p.tokens[0] == tokens[0] and self._there(p)]
        return max(near, key=lambda p: (p.shared(tokens), -len(p.tokens)), default=None)

    def touch(self, tokens: Ids, now: float) -> bytes | None:
        """Note that the pages of `tokens` are used, all at one moment: the first outlive those behind them.

        Returns the key of the last; None where one is missing.
        """
        key = self._identity
        for at in range(0, len(tokens), CHUNK):
            key = chained(key, tokens[at : at + CHUNK])
            page = self._pages.get(key)
            if page is None or not self._there(page):
                return None
            self.use(page, now)
        return key

    def use(self, page: Page, now: float) -> None:
        """Note that one page is used."""
        page.used = now
        if self._disk is not None:
            self._disk.touch(page)

    def add(self, page: Page, data: mmap.mmap) -> None:
        """A new page, whose state is `data`; `room` was made. Shorter ones that it contains go."""
        for other in list(self._children.get(page.parent, ())):
            if other.shared(page.tokens) == len(other.tokens):
                self.forget(other)
        self._place(page)
        self.hold(page, data)
        if self._disk is not None:
            self._disk.put(page)

    def hold(self, page: Page, data: mmap.mmap) -> None:
        """Keep the state in host memory; `room` was made."""
        page.data = data
        self.size += page.size

    def forget(self, page: Page) -> None:
        """Out of all levels."""
        if self._pages.pop(page.key, None) is None:
            return
        siblings = self._children[page.parent]
        siblings.remove(page)
        if not siblings:
            del self._children[page.parent]
        if self._disk is not None:
            self._disk.drop(page)
        self._release(page)

    def room(self, size: int, rank: tuple[float, int]) -> bool:
        """Give up what is on disk too, or worth less than `rank`, until `size` bytes fit into host memory.

        What waits for the disk stays. With a disk there is room for two pages on their way at least.
        """
        ceiling = max(self.ceiling, 2 * size) if self.writes() else self.ceiling
        held = [page for page in self._pages.values() if page.data is not None]
        for page in sorted(held, key=lambda p: p.rank) if self.size + size > ceiling else ():
            if self.size + size <= ceiling:
                break
            saved = self._disk is not None and self._disk.has(page)
            waits = self._disk is not None and self._disk.waits(page)
            if saved or (page.rank < rank and not waits):
                self._release(page)
        return self.size + size <= ceiling

    def trim(self) -> None:
        """Write what a disk that came back has missed; give memory beyond the ceiling back; forget what
        the disk made room of, and what is too old."""
        if self._disk is not None:
            self._disk.expire()
        oldest = time.time() - OLDEST_S
        for page in [p for p in self._pages.values() if p.used < oldest or not self._there(p)]:
            self.forget(page)
        if self._disk is not None and self.writes():
            self._disk.remember()
            for page in self._pages.values():
                self._disk.put(page)
        self.room(0, (time.time(), 0))

    def writes(self) -> bool:
        """Whether there is a disk to write to."""
        return self._disk is not None and self._disk.writes()

    def _place(self, page: Page) -> None:
        self._pages[page.key] = page
        self._children.setdefault(page.parent, []).append(page)

    def _there(self, page: Page) -> bool:
        return page.data is not None or (self._disk is not None and self._disk.has(page))

    def _release(self, page: Page) -> None:
        if page.data is not None:
            page.data = None
            self.size -= page.size
        if not self._there(page):
            self.forget(page)
