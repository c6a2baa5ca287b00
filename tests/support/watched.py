"""Somebody who knows of a folder only what a watcher says."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support import ignore_repos as repos

from indexer import walk
from indexer.content import Caps
from indexer.errors import RootUnavailable
from indexer.records import FileChange
from indexer.watch import Kind, Watcher

DEADLINE_S = 20.0
KINDS: tuple[Kind, ...] = ("folders", "recursive") if sys.platform == "linux" else ("recursive",)
both = pytest.mark.parametrize("kind", KINDS)


def state_of(root: Path, path: str) -> tuple[bytes, str] | None:
    loaded = walk.load(root, path)
    return None if loaded is None else (loaded.digest, loaded.reason)


def fresh(root: Path) -> dict[str, tuple[bytes, str]]:
    """What a look at everything finds."""
    listing = walk.scan(root)
    paths = [f.path for f in listing.files] + [s.stat.path for s in listing.skipped]
    return {p: s for p in paths if (s := state_of(root, p)) is not None}


class Mirror:
    """What somebody knows who only looks where the watcher says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.known: dict[str, tuple[bytes, str]] = {}
        self.heard: list[Sequence[FileChange]] = []
        self.stamps: list[float] = []
        self.changed = threading.Condition()

    def hear(self, changes: Sequence[FileChange]) -> None:
        with self.changed:
            self.heard.append(changes)
            self.stamps.append(time.monotonic())
            if not changes:
                with suppress(RootUnavailable):
                    self.known = fresh(self.root)
            for change in changes:
                now = None if change.gone else state_of(self.root, change.path)
                if now is None:
                    self.known.pop(change.path, None)
                else:
                    self.known[change.path] = now
            self.changed.notify_all()

    def until(self, done: Callable[[], bool]) -> None:
        """Wait for `done`, judged whenever something was heard."""
        end = time.monotonic() + DEADLINE_S
        with self.changed:
            while not done():
                assert time.monotonic() < end, f"heard only {self.heard[-5:]}"
                self.changed.wait(0.1)

    def settle(self) -> None:
        """Wait until what is known is what is there."""
        self.until(lambda: self.known == fresh(self.root))


@contextmanager
def watching(
    root: Path, kind: Kind, caps: Caps | None = None, poll_s: float = 5.0
) -> Iterator[tuple[Mirror, Watcher]]:
    mirror = Mirror(root)
    watcher = Watcher(root, mirror.hear, caps=caps or Caps(), poll_s=poll_s, kind=kind)
    watcher.start()
    try:
        assert watcher.wait_armed(DEADLINE_S)
        mirror.until(lambda: bool(mirror.heard))
        mirror.settle()
        yield mirror, watcher
    finally:
        watcher.stop()


def checkout(where: Path) -> Path:
    """A checkout with some files, some of them ignored."""
    repos.start(where)
    repos.rules(where, "*.log", "build/")
    repos.fill(where, *(f"d{n % 5}/e/f{n}.py" for n in range(20)), "x.log", "build/b.py")
    repos.commit(where)
    return where
