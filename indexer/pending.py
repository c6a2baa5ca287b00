"""Where notices gather until a burst is over. Any thread adds, one thread takes.

Bounded: beyond the limit single paths are forgotten and one mark stands for all of them.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Notices:
    """What came in since the last time."""

    paths: set[str] = field(default_factory=set)
    """May have changed, appeared or gone; files and folders."""
    folders: set[str] = field(default_factory=set)
    """Appeared just now; nothing below them is watched yet."""
    moved: set[str] = field(default_factory=set)
    """Folders that went elsewhere; what is watched below them has another name now."""
    marks: set[str] = field(default_factory=set)
    """Names of git's own files that changed."""
    flooded: bool = False
    """Notices were lost: anything may have changed, anywhere."""
    lost: bool = False
    """The root itself went away."""

    def __bool__(self) -> bool:
        return bool(self.paths or self.marks or self.flooded or self.urgent)

    @property
    def urgent(self) -> bool:
        """Not to be kept waiting for the end of the burst."""
        return bool(self.folders or self.moved or self.lost)


class Pending:
    """Coalesces notices: handed out after `quiet_s` without a new one, or `most_s` after the first."""

    def __init__(self, limit: int, quiet_s: float, most_s: float) -> None:
        self._limit, self._quiet, self._most = limit, quiet_s, most_s
        self._changed = threading.Condition()
        self._held = Notices()
        self._first = self._last = 0.0
        self.closed = False

    def path(self, path: str) -> None:
        """Something happened to `path`."""
        with self._changed:
            self._stir()
            if len(self._held.paths) < self._limit:
                self._held.paths.add(path)
            else:
                self._held.flooded = True

    def folder(self, path: str) -> None:
        """A folder appeared."""
        with self._changed:
            self._stir()
            self._bounded(self._held.folders, path)

    def moved(self, path: str) -> None:
        """A folder went elsewhere."""
        with self._changed:
            self._stir()
            self._bounded(self._held.moved, path)

    def mark(self, name: str) -> None:
        """One of git's own files changed."""
        with self._changed:
            self._stir()
            self._held.marks.add(name)

    def flood(self) -> None:
        """Notices were lost."""
        with self._changed:
            self._stir()
            self._held.flooded = True

    def lose(self) -> None:
        """The root went away."""
        with self._changed:
            self._stir()
            self._held.lost = True
            self._changed.notify()

    def close(self) -> None:
        """Wake whoever waits, for good."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def take(self, timeout_s: float) -> Notices:
        """What came in, once it is quiet; at once what is urgent; nothing after `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._held, timeout_s)
            while not self.closed and self._held and not self._held.urgent:
                left = min(self._last + self._quiet, self._first + self._most) - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            held = self._held
            if self.closed or not held.urgent:
                self._held = Notices()
                return held
            self._held = Notices(paths=held.paths, marks=held.marks, flooded=held.flooded)
            return Notices(folders=held.folders, moved=held.moved, lost=held.lost)

    def _stir(self) -> None:
        self._last = time.monotonic()
        if not self._held:
            self._first = self._last
            self._changed.notify()

    def _bounded(self, held: set[str], path: str) -> None:
        if len(held) < self._limit:
            held.add(path)
        else:
            self._held.flooded = True
        self._changed.notify()
