"""Changes below a root, a moment after they happen. Notices from the system are hints; a stat decides.

Linux: one inotify watch for each folder that is not ignored. Elsewhere: watchdog's recursive observer.
Where neither works (limits, network file systems) the whole root is looked at periodically, and `degraded`
says why.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from indexer import mounts, walk
from indexer.content import DEFAULTS, Caps
from indexer.errors import RootUnavailable
from indexer.ignore import IGNORE_FILES
from indexer.limits import explain
from indexer.pending import Notices, Pending
from indexer.records import FileChange
from indexer.recursive import RecursiveSource
from indexer.sieve import Sieve

if sys.platform == "linux":
    from indexer.inotify import InotifySource

log = logging.getLogger(__name__)

Hear = Callable[[Sequence[FileChange]], None]
"""Called in the watcher's thread with at most BATCH changes. None at all means: look at everything."""
Kind = Literal["auto", "folders", "recursive", "scan"]

BATCH = 1000
LIMIT = 10_000
"""Paths noticed at once; beyond, everything is looked at."""
QUIET_S = 0.03
MOST_S = 0.15
ABSENT_S = 0.1
"""How often a root that is not there is looked for."""
SAFETY_S = 600.0
"""How often everything is looked at although notices arrive."""
ROOT_S = 2.0
"""How often the root itself is looked at, for what is mounted over it sends no notice, and the user's own
ignore file."""
SPACING_S = 0.25
"""Least time between two looks at everything; ten times as long as the last one took, if that is more."""
MARKS = frozenset(("HEAD", "index", "exclude"))
"""git's own files that are heard: every command that changes the work tree or what is tracked writes one."""


class Source(Protocol):
    """Where notices come from. Folders are relative to the root, but for `mark`."""

    recursive: bool
    """The root alone is to be watched."""

    def watched(self) -> set[str]:
        """Folders watched now."""
        ...

    def watch(self, folder: str) -> None:
        """Report what happens in `folder`, not below. One that is gone is passed over. Raises OSError."""
        ...

    def forget(self, folder: str) -> None:
        """`folder` has another name now; it and what is below are watched no more."""
        ...

    def mark(self, folder: str) -> None:
        """Report changes of git's own files in `folder`, absolute. Raises OSError."""
        ...

    def close(self) -> None:
        """End, without a thread or handle left."""
        ...


class Watcher:
    """Watches one root from `start` to `stop`. The first call of `hear` asks to look at everything.

    A root that goes away is silent until it is back, then everything is looked at again. `kind`: `folders`
    one inotify watch each, `recursive` watchdog's observer, `scan` no notices; `auto` chooses. `caps.folders`
    limits the inotify watches; `poll_s` is the period of looking at everything where there are no notices.
    """

    def __init__(
        self, root: Path | str, hear: Hear, *, caps: Caps = DEFAULTS, poll_s: float = 5.0, kind: Kind = "auto"
    ) -> None:
        self.degraded = ""
        """Why changes are found by periodic looks; empty when the system reports them."""
        self._root, self._hear, self._caps, self._poll = os.fspath(root), hear, caps, poll_s
        self._kind: Kind = kind
        self._pending = Pending(LIMIT, QUIET_S, MOST_S)
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._armed = threading.Event()
        self._source: Source | None = None
        self._sieve: Sieve | None = None
        self._identity: tuple[int, int] | None = None
        self._wanted = self._wide = False
        self._earliest = self._periodic = 0.0

    def start(self) -> None:
        """Begin. Returns at once; `wait_armed` tells when nothing is missed any more."""
        self._thread.start()

    def wait_armed(self, timeout_s: float) -> bool:
        """True once watching has begun, natively or not."""
        return self._armed.wait(timeout_s)

    def stop(self) -> None:
        """End; afterwards `hear` is not called any more."""
        self._pending.close()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._pending.closed:
                try:
                    self._turn()
                except RootUnavailable as error:
                    self._retry_later(str(error))
                except Exception as error:
                    log.exception("watching goes on after a failure")
                    self._retry_later(type(error).__name__)
        finally:
            self._disarm()

    def _retry_later(self, why: str) -> None:
        log.info("looking again soon: %s", why)
        self._wanted, self._earliest = True, time.monotonic() + 1.0
        self._pending.take(ABSENT_S)

    def _turn(self) -> None:
        if not self._present():
            self._pending.take(ABSENT_S)
            return
        notices = self._pending.take(self._patience())
        if self._pending.closed:
            return
        if notices.lost:
            self._disarm()
            return
        paths = self._obey(notices)
        if self._wanted and time.monotonic() >= self._earliest:
            self._look_at_everything()
        if paths and self._sieve is not None:
            changes = self._sieve.changes(paths)
            for start in range(0, len(changes), BATCH):
                self._hear(tuple(changes[start : start + BATCH]))

    def _present(self) -> bool:
        """Whether the root is there; watching begins anew when it is another one than before."""
        try:
            now = walk.identity(self._root)
        except RootUnavailable as error:
            self._disarm()
            self.degraded = str(error)
            return False
        if now != self._identity:
            self._disarm()
            self._arm()
            self._identity = now
        return True

    def _patience(self) -> float:
        due = self._earliest if self._wanted else self._periodic
        return min(ROOT_S, max(0.0, due - time.monotonic()))

    def _obey(self, notices: Notices) -> set[str]:
        """Keep the watches right and return the paths to look at. Rules that changed: look at everything."""
        source = self._source
        if source is not None and not source.recursive:
            for folder in notices.moved:
                source.forget(folder)
            if notices.folders:
                self._cover(notices.folders)
        rules = any(p.rpartition("/")[2] in IGNORE_FILES for p in notices.paths)
        elsewhere = self._sieve is not None and self._sieve.outside_changed()
        self._wide |= notices.flooded or rules or elsewhere or bool(notices.marks & {".git", "exclude"})
        due = time.monotonic() >= self._periodic
        tracked = notices.marks == {"index"} and self._sieve is not None and self._sieve.refresh()
        self._wanted |= self._wide or due or tracked or bool(notices.marks - {"index"})
        return set() if notices.flooded else notices.paths

    def _look_at_everything(self) -> None:
        began = time.monotonic()
        self._wanted, wide, self._wide = False, self._wide, False
        if self._sieve is not None and self._source is not None:
            self._sieve.refresh()
            if not self._source.recursive:
                self._cover([""] if wide else self._sieve.folders - self._source.watched())
        self._hear(())
        now = time.monotonic()
        self._earliest = now + max(SPACING_S, 10 * (now - began))
        self._periodic = now + (self._poll if self.degraded else SAFETY_S)

    def _arm(self) -> None:
        network = mounts.unreliable(self._root) if self._kind == "auto" else ""
        why = f"{network} does not report changes made elsewhere" if network else ""
        self.degraded = self._say("asked to" if self._kind == "scan" else why)
        if not self.degraded:
            self._sieve = Sieve(self._root, self._caps)
            self._sieve.refresh()
            try:
                self._source = self._new_source()
            except OSError as error:
                self.degraded = self._say(explain(error, 0))
            else:
                self._cover([""])
        self._wanted, self._earliest = True, 0.0
        self._armed.set()

    def _new_source(self) -> Source:
        if sys.platform == "linux" and self._kind != "recursive":
            return InotifySource(self._root, self._pending, MARKS)
        return RecursiveSource(self._root, self._pending, MARKS)

    def _cover(self, folders: Iterable[str]) -> None:
        """Watch `folders` and all below that are not ignored; give up watching when a limit is reached."""
        source, sieve = self._source, self._sieve
        if source is None or sieve is None or source.recursive:
            return
        watched = source.watched()
        try:
            for folder in sieve.open_folders(folders):
                source.watch(folder)
                watched.add(folder)
                if len(watched) > self._caps.folders:
                    self._give_up(f"there are more than {self._caps.folders} folders to watch")
                    return
            for mark in sieve.marks:
                source.mark(mark)
        except OSError as error:
            self._give_up(explain(error, len(watched)))

    def _give_up(self, why: str) -> None:
        self._disarm(forget_root=False)
        self.degraded = self._say(why)
        self._wanted = True

    def _say(self, why: str) -> str:
        return f"{why}; everything is looked at every {self._poll:g} s instead" if why else ""

    def _disarm(self, forget_root: bool = True) -> None:
        source, self._source, self._sieve = self._source, None, None
        if forget_root:
            self._identity = None
        if source is not None:
            source.close()
