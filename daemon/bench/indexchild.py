"""An indexer process of a measurement: its states as they come, its memory at its largest."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import psutil

from indexer.frames import Begin, End, Plan, RootSpec, RootState, Source, State, pack

PATIENCE_S = 1800.0
_SAMPLE_S = 0.1


class IndexChild:
    """Started on entering, ended on leaving. One root."""

    def __init__(self, root: Path, folder: Path, plan: Plan, *, once: bool) -> None:
        self.state: RootState | None = None
        self.peak_rss = 0
        """Bytes, of the process and its children together, sampled."""
        self.cpu_s = 0.0
        spec = RootSpec(path=str(root), folder=str(folder))
        self._begin = Begin(roots=(spec,), plan=plan, once=once)
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "indexer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        self._process.stdin.write(pack(self._begin))
        self._process.stdin.flush()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(pack(End()))
            process.stdin.close()
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._thread.join(5.0)
        if process.stdout is not None:
            process.stdout.close()

    def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        source: Source[State] = Source(self._process.stdout, State)
        while (state := source.read()) is not None:
            self.cpu_s = max(self.cpu_s, state.cpu_s)
            for root in state.roots:
                self.state = root

    async def until(
        self, done: Callable[[RootState | None], bool], progress: Callable[[int, int], None]
    ) -> float:
        """Wait for a state; seconds it took. Raises RuntimeError when the process ends or takes too long."""
        began = time.monotonic()
        while not done(self.state):
            self.sample()
            if self.state is not None:
                progress(self.state.done, self.state.total or 1)
            if self.ended or time.monotonic() - began > PATIENCE_S:
                raise RuntimeError(f"the indexer does not get there: {self.state}")
            await asyncio.sleep(_SAMPLE_S)
        return time.monotonic() - began

    async def finished(self, progress: Callable[[int, int], None]) -> float:
        """Wait for its end, with `once`; seconds it took."""
        began = time.monotonic()
        while not self.ended:
            self.sample()
            if self.state is not None:
                progress(self.state.done, self.state.total or 1)
            await asyncio.sleep(_SAMPLE_S / 4)
        self._thread.join(5.0)
        return time.monotonic() - began

    def kill(self) -> None:
        """End the process as a power cut would; its children end with it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process is not None and self._process.poll() is not None

    def sample(self) -> None:
        """Look at the memory."""
        assert self._process is not None
        rss = 0
        with contextlib.suppress(psutil.Error):
            me = psutil.Process(self._process.pid)
            for process in (me, *me.children(recursive=True)):
                rss += process.memory_info().rss
        self.peak_rss = max(self.peak_rss, rss)
