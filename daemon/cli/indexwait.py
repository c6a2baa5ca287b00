"""Waiting for an index with a progress bar: the running daemon's, or an indexer run for this once."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from daemon import indexing, roots
from daemon.errors import LifecycleError
from daemon.projects import Projects
from daemon.settings import Settings
from indexer import statefile
from indexer.frames import Begin, RootState, Source, State, pack
from indexer.lock import FolderLock

_POLL_S = 0.1
_TAKE_UP_S = 10.0
"""How long the daemon may take to see a new root."""
_FORGET_S = 5.0
Show = Callable[[RootState], None]


def until_complete(settings: Settings, root: Path, running: bool, *, quiet: bool) -> None:
    """Return when `root` is complete or cannot be. Raises LifecycleError when no indexer can be run."""
    with _bar(quiet) as show:
        if running:
            _follow(settings, root, show)
        else:
            _once(settings, root, show)


def _follow(settings: Settings, root: Path, show: Show) -> None:
    """Read the state that the daemon's indexer writes."""
    wanted = next(spec for spec in roots.specs(settings.index) if spec.path == str(root))
    began = time.time()
    while True:
        state = statefile.load(roots.folder(root))
        if state is None or state.generation != wanted.generation:
            if time.time() - began > _TAKE_UP_S:
                raise LifecycleError("the daemon does not take the folder up", "See `foretype logs indexer`")
        else:
            show(state)
            if state.complete or state.phase in ("degraded", "unavailable", "deferred"):
                return
        time.sleep(_POLL_S)


def _once(settings: Settings, root: Path, show: Show) -> None:
    projects = Projects(settings)
    specs = tuple(projects.spec(s) for s in roots.specs(settings.index) if s.path == str(root))
    begin = Begin(roots=specs, plan=indexing.plan(settings, indexing.newest_vocabulary()), once=True)
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "indexer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(pack(begin))
        process.stdin.flush()
        source: Source[State] = Source(process.stdout, State)
        while (state := source.read()) is not None:
            for one in state.roots:
                show(one)
    finally:
        process.stdin.close()
        process.stdout.close()
        code = process.wait()
    if code:
        raise LifecycleError(f"the indexer ended with exit code {code}", "See `foretype logs indexer`")


def forget(folder: Path, *, running: bool) -> bool:
    """Remove an index folder once nobody writes it; whether it is gone."""
    lock = FolderLock(folder)
    deadline = time.monotonic() + (_FORGET_S if running else 0.0)
    if not folder.exists():
        return True
    while not lock.acquire():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    lock.release()
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


@contextlib.contextmanager
def _bar(quiet: bool) -> Iterator[Show]:
    if quiet:
        yield lambda state: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    lock = threading.Lock()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("starting", total=None)

        def show(state: RootState) -> None:
            with lock:
                total = state.total or None
                progress.update(bar, description=state.phase, completed=state.done, total=total)

        yield show
