"""A real indexer process on a real folder, and waiting until its database holds what a fresh one does."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from daemon.bench.equivalence import dump
from indexer.errors import IndexDamaged
from indexer.frames import Begin, End, Frame, Plan, RootSpec, RootState, Source, State, pack

DEADLINE_S = 60.0


class Indexer:
    """`python -I -m indexer` for one root. Ended on leaving; `kill` ends it as a power cut would."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        *,
        once: bool = False,
        generation: int = 0,
        before: str = "",
        **plan: Any,
    ) -> None:
        """`before`: Python that the process runs first."""
        self.folder = folder
        self.states: list[State] = []
        self._heard = threading.Condition()
        spec = RootSpec(path=str(root), folder=str(folder), generation=generation)
        command = [sys.executable, "-I", "-m", "indexer"]
        if before:
            command = [
                sys.executable,
                "-I",
                "-c",
                f"import os\n{before}\nos.execv({command[0]!r}, {command})",
            ]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.send(Begin(roots=(spec,), plan=Plan(**plan), once=once))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def send(self, message: Frame) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(pack(message))
        self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        source: Source[State] = Source(self.process.stdout, State)
        while (state := source.read()) is not None:
            with self._heard:
                self.states.append(state)
                self._heard.notify_all()

    @property
    def state(self) -> RootState | None:
        return self.states[-1].roots[0] if self.states and self.states[-1].roots else None

    def wait(self, wanted: Callable[[RootState], bool], seconds: float = DEADLINE_S) -> RootState:
        with self._heard:
            good = self._heard.wait_for(lambda: (s := self.state) is not None and wanted(s), seconds)
        assert good, self.state
        assert self.state is not None
        return self.state

    def ready(self) -> RootState:
        return self.wait(lambda state: state.phase == "ready")

    def finish(self) -> RootState:
        """With `once`: the last state."""
        assert self.process.wait(DEADLINE_S) == 0
        self._thread.join(10.0)
        assert self.state is not None
        self._shut()
        return self.state

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10.0)
        self._thread.join(10.0)
        self._shut()

    def _shut(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.send(End())
            assert self.process.stdin is not None
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            try:
                self.process.wait(15.0)
            finally:
                self.process.kill()
                self.process.wait()
        self._thread.join(10.0)
        self._shut()


def index_once(root: Path, folder: Path, **plan: Any) -> RootState:
    return Indexer(root, folder, once=True, **plan).finish()


def until_equal(folder: Path, fresh: dict[str, Any], seconds: float = DEADLINE_S) -> None:
    """The database in `folder` comes to hold what `fresh` does."""
    deadline, now = time.monotonic() + seconds, {}
    while time.monotonic() < deadline:
        with contextlib.suppress(IndexDamaged):
            now = dump(folder)
            if now == fresh:
                return
        threading.Event().wait(0.05)
    keys = {key for key in now.keys() | fresh.keys() if now.get(key) != fresh.get(key)}
    detail = {k: (now.get(k), fresh.get(k)) for k in sorted(keys)[:3]}
    raise AssertionError(f"{len(keys)} differ: {sorted(keys)[:20]}: {detail}")
