"""One root's index as it is kept: open, reconcile, take changes, write rows, say how things are.

    hints ─┐
    scan  ─┴→ Changes → tasks ⇢ children ⇢ Made → Batch of rows → store

All methods belong to the worker's thread, except `hint`. The store's last good state is served whatever
happens here.
"""

from __future__ import annotations

import logging
import os
import queue
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from indexer.changes import Changes
from indexer.content import Caps
from indexer.errors import RootUnavailable
from indexer.frames import Made, Plan, RootSpec, Task
from indexer.keeping import Keeper
from indexer.records import FileChange
from indexer.scan import Scan
from indexer.specs import Rules
from indexer.watch import Watcher

_log = logging.getLogger(__name__)
_FLOOD = 500
"""More hints than this at once are no person's: they do not go before the others."""
_SETTLE_S = 0.2
"""A scan waits until nothing has happened for so long, for four times as long at most."""
_LOOK_S = 1.0


class Root:
    """One root. `wake` stirs the worker; `watching` is false when everything is indexed only once."""

    def __init__(self, spec: RootSpec, plan: Plan, wake: Callable[[], None], watching: bool) -> None:
        self.spec = spec
        self.path = Path(spec.path)
        self.changes = Changes()
        self.keeper = Keeper(spec, plan)
        self.scan: Scan | None = None
        self.unavailable = ""
        self.scanned = False
        self._plan = plan
        self._wake = wake
        self._watching = watching
        self._watcher: Watcher | None = None
        self._hints: queue.SimpleQueue[Sequence[FileChange]] = queue.SimpleQueue()
        self._wanted = 0.0
        self._stirred = 0.0
        self._looked = 0.0
        self._touched: set[str] = set()
        self._caps = Caps(
            size=plan.max_file_kb * 1024,
            line=plan.max_line,
            files=plan.max_files if spec.max_files is None else min(spec.max_files, plan.max_files),
            ignore=spec.ignore,
        )
        self._rules: Rules | None = None
        self._left_out = ""
        self._mounted = True

    def hint(self, changes: Sequence[FileChange]) -> None:
        """Any thread: these may have changed. Nothing at all means: look at everything."""
        self._hints.put(changes)
        self._wake()

    def rescan(self, now: float) -> None:
        """Look at everything soon."""
        self._wanted = self._wanted or now
        self._stirred = now

    def tend(self, now: float) -> None:
        """Open, watch, take hints, scan: whatever is due."""
        if now - self._looked >= _LOOK_S or not self.keeper.opened:
            self._looked = now
            self._visit(now)
        if not self.keeper.opened or self.unavailable:
            return
        self._take_hints(now)
        self._absorb(now)
        settled = now - self._stirred >= _SETTLE_S or now - self._wanted >= 4 * _SETTLE_S
        if self._wanted and self.scan is None and (settled or not self.scanned):
            self._wanted = 0.0
            self._touched.clear()
            mounted = self.keeper.holding.mounted
            self.scan = Scan(self.path, self.keeper.known(), self._caps, self._wake, mounted)

    def _visit(self, now: float) -> None:
        was = self.unavailable
        self.unavailable = _why_unavailable(self.path)
        if self.unavailable:
            self._unwatch()
            return
        if was:
            self.rescan(now)
        self.keeper.look(now)
        if self.keeper.open(now):
            self.rescan(now)
        if self.keeper.opened and self._watching and self._watcher is None:
            self._watcher = Watcher(self.path, self.hint, caps=self._caps, poll_s=self._plan.poll_s)
            self._watcher.start()
            self.rescan(now)

    def touch(self, paths: set[str]) -> None:
        """An editor saved these; whether they count is found out here."""
        if self._rules is not None:
            self._sort(paths, self._rules)

    def _take_hints(self, now: float) -> None:
        """The watcher has already found out what counts and what is gone."""
        latest: dict[str, bool] = {}
        while not self._hints.empty():
            changes = self._hints.get_nowait()
            if not changes:
                self.rescan(now)
            latest.update((change.path, change.gone) for change in changes)
        if not latest:
            return
        self._stirred = now
        if self.scan is not None:
            self._touched |= latest.keys()
        self.remove(path for path, gone in latest.items() if gone)
        present = [path for path, gone in latest.items() if not gone]
        self.changes.add(present, urgent=len(present) <= _FLOOD)

    def _absorb(self, now: float) -> None:
        if self.scan is None or not self.scan.finished:
            return
        scan, self.scan = self.scan, None
        try:
            found = scan.result()
        except RootUnavailable as error:
            self.unavailable = str(error)
            return
        except (OSError, ValueError) as error:
            _log.warning("%s cannot be scanned: %s", self.path, error)
            self.keeper.degrade(f"it cannot be scanned: {error}", now)
            self._wanted = now
            return
        self.scanned, self._mounted = True, scan.mounted
        self._rules, self._left_out = scan.rules, scan.left_out
        gone = [c.path for c in found if c.gone and c.path not in self._touched]
        self.remove(gone)
        self.changes.add((c.path for c in found if not c.gone), urgent=False)
        # What was not stored yet when the scan began, and is not on disk, may have gone without a hint.
        doubtful = (self.keeper.paths() | self.changes.in_flight()) - scan.here
        if self._rules is not None and (doubtful or self._touched):
            self._sort(doubtful | self._touched, self._rules)
        self._touched.clear()
        self.changes.add(self.keeper.stale(), urgent=False)
        self.keeper.done, self.keeper.total = 0, len(self.changes)

    def _sort(self, paths: set[str], rules: Rules) -> None:
        """Queue what counts of hinted paths, forget the rest. A folder stands for all that is below it."""
        counting = rules.select(sorted(paths))
        gone = paths - counting
        folders = {path for path in gone if self.keeper.row(path) is None}
        if folders:
            gone.update(p for p in self.keeper.paths() if p not in counting and _below(p, folders))
        self.remove(gone)
        self.changes.add(sorted(counting), urgent=True)

    def take(self, most: int, urgent: bool) -> list[Task]:
        """Up to `most` tasks of one lane."""
        return [
            Task(root=self.spec.path, path=path, digest=self.keeper.digest(path))
            for path in self.changes.take(most, urgent)
        ]

    def accept(self, made: Made) -> None:
        """One task has come back."""
        urgent = self.changes.land(made.path)
        if urgent is not None and not self.keeper.accept(made, urgent):
            self.changes.add((made.path,), urgent)

    def remove(self, paths: Iterable[str]) -> None:
        """These are files of the root no more."""
        for path in paths:
            self.changes.drop(path)
            self.keeper.remove(path)

    def ready(self) -> bool:
        """Whether tasks may be taken."""
        return self.keeper.ready and not self.unavailable

    def quiet(self) -> bool:
        """Whether nothing is with the children that should be written together with what waits."""
        return not (self.changes.urgent_flying if self.keeper.waiting.urgent else self.changes.flying)

    def restless(self) -> bool:
        """Whether something is due in a moment that nobody will announce."""
        return bool(self._wanted) and self.ready()

    def finish_walk(self, now: float) -> None:
        """Note that everything the last scan found is written."""
        if self.settled() and not self.keeper.trouble:
            self.keeper.walked(self._mounted, now)

    def settled(self) -> bool:
        """Whether everything known to have changed is written."""
        busy = self._wanted or self.scan is not None or len(self.changes) or not self._hints.empty()
        return self.scanned and not busy and not self.keeper.pending

    def finished(self) -> bool:
        """For indexing once: all is done, or nothing can be."""
        blocked, _ = self.keeper.remarks()
        tidied = not self.keeper.unsettled or (bool(blocked) and not self.keeper.busy_settling)
        return (self.settled() and tidied) or bool(self.unavailable or self.keeper.trouble)

    def notes(self) -> tuple[str, ...]:
        """What is not as it should be with walking and watching."""
        watching = self._watcher.degraded if self._watcher is not None else ""
        return tuple(note for note in (watching, self._left_out) if note)

    def close(self) -> None:
        """Write what is ready, let go of everything."""
        self._unwatch()
        self.keeper.close()

    def _unwatch(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None


def _below(path: str, folders: set[str]) -> bool:
    parts = path.split("/")
    return any("/".join(parts[:n]) in folders for n in range(1, len(parts)))


def _why_unavailable(path: Path) -> str:
    try:
        with os.scandir(path):
            return ""
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
