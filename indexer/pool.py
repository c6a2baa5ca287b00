"""Parsing children of the indexer, each held by one thread: batches out, rows back, in order.

A child that dies or does not answer within its time loses only the file it was on: the file gets a second
try in a fresh child when it died, and is skipped as `budget` when that dies too or when it took too long.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO

import psutil

from indexer import make
from indexer.frames import Batch, FromChild, Made, Ready, Setup, Source, Task, pack

_log = logging.getLogger(__name__)
_AHEAD = 4
"""A child with fewer tasks than this before it is sent the next batch."""
_PIPE = 1 << 20
_START_S = 30.0
_MAX_QUICK_DEATHS = 3
_BATCH = 8
_LOOK_S = 0.1
_PATIENCE = 20.0
"""So many times its time, and a child is given up whatever the reason."""


class Pool:
    """`size` children. `done` is called on the pool's threads with every Made."""

    def __init__(self, setup: Setup, size: int, done: Callable[[Made], None], hard_s: float = 0.0) -> None:
        self.setup = setup
        self.hard_s = hard_s or 5.0 + 3.0 * setup.budget_s
        self.note = ""
        """Why tokens are not counted; empty when they are."""
        self.broken = ""
        """Why no child can be started; empty when they can."""
        self._done = done
        self._tasks: deque[Task] = deque()
        self._retried: set[tuple[str, str]] = set()
        self._ready = threading.Condition()
        self._closing = threading.Event()
        self.hands = [_Hand(self, number) for number in range(size)]
        self._overseer = threading.Thread(target=self._oversee, daemon=True, name="overseer")
        for hand in self.hands:
            hand.thread.start()
        self._overseer.start()

    def give(self, tasks: Sequence[Task], urgent: bool = False) -> None:
        """Queue tasks; urgent ones come first."""
        with self._ready:
            if urgent:
                self._tasks.extendleft(reversed(tasks))
            else:
                self._tasks.extend(tasks)
            self._ready.notify_all()

    def waiting(self) -> int:
        """Tasks that no child has yet."""
        return len(self._tasks)

    def pids(self) -> list[int]:
        """Of the running children."""
        return [hand.process.pid for hand in self.hands if hand.process and hand.process.poll() is None]

    def close(self) -> None:
        """End all children; what they had is lost."""
        self._closing.set()
        with self._ready:
            self._tasks.clear()
            self._ready.notify_all()
        for hand in self.hands:
            hand.kill()
        for hand in self.hands:
            hand.thread.join(5.0)

    def take(self, wait: bool) -> list[Task]:
        """For a hand: its next batch; empty when there is none (or, when it waits, at the end)."""
        with self._ready:
            while wait and not self._tasks and not self._closing.is_set():
                self._ready.wait()
            fair = max(1, min(_BATCH, len(self._tasks) // max(1, len(self.hands))))
            return [self._tasks.popleft() for _ in range(min(fair, len(self._tasks)))]

    def finish(self, made: Made) -> None:
        """For a hand: one task is done."""
        self._retried.discard((made.root, made.path))
        self._done(made)

    def lost(self, tasks: Sequence[Task], slow: bool) -> None:
        """For a hand: its child ended while on the first of `tasks`."""
        if self._closing.is_set() or not tasks:
            return
        first, rest = tasks[0], list(tasks[1:])
        key = (first.root, first.path)
        if slow or key in self._retried:
            _log.warning("a file of %s is skipped: its parse %s", first.root, "hung" if slow else "crashed")
            self.finish(make.skipped(first, self.setup))
        else:
            self._retried.add(key)
            rest.insert(0, first)
        self.give(rest, urgent=True)

    def rest(self, seconds: float) -> None:
        """For a hand: wait, but not beyond the end."""
        self._closing.wait(seconds)

    @property
    def closing(self) -> bool:
        """Whether close() was called."""
        return self._closing.is_set()

    def _oversee(self) -> None:
        while not self._closing.wait(_LOOK_S):
            now = time.monotonic()
            for hand in self.hands:
                if hand.deadline and now > hand.deadline and hand.overdue(self.hard_s, now):
                    hand.slow = True
                    hand.kill()


class _Hand:
    """One child and the thread that holds it."""

    def __init__(self, pool: Pool, number: int) -> None:
        self.pool = pool
        self.process: subprocess.Popen[bytes] | None = None
        self.deadline = 0.0
        self.slow = False
        self.thread = threading.Thread(target=self._live, daemon=True, name=f"hand-{number}")
        self._quick = 0
        self._began = 0.0
        self._cpu = 0.0

    def overdue(self, hard_s: float, now: float) -> bool:
        """Whether the time was the child's own. A busy machine gives it no turn, but more time."""
        if now - self._began > _PATIENCE * hard_s:
            return True
        cpu = _cpu_of(self.process)
        if cpu - self._cpu >= 0.5 * hard_s or cpu < 0:
            return True
        self.deadline = now + hard_s
        return False

    def expect(self, seconds: float) -> None:
        """The child has `seconds` from now."""
        self._began = time.monotonic()
        self.deadline = self._began + seconds

    def kill(self) -> None:
        """End the child at once."""
        if self.process is not None:
            with contextlib.suppress(OSError):
                self.process.kill()

    def _live(self) -> None:
        while not self.pool.closing:
            tasks = self.pool.take(wait=True)
            if tasks:
                self._serve(deque(tasks))

    def _serve(self, ahead: deque[Task]) -> None:
        """One child's life."""
        self.slow = False
        try:
            source = self._start()
        except (OSError, ValueError) as error:
            source = None
            _log.error("a parsing child cannot be run: %s", error)
        if source is None:
            self._quick += 1
            self.pool.give(list(ahead), urgent=True)
            if self._quick >= _MAX_QUICK_DEATHS and not self.pool.closing:
                self.pool.broken = "parsing children end as soon as they are started"
            self.pool.rest(min(30.0, 0.5 * self._quick))
            return
        self._quick, self.pool.broken = 0, ""
        with contextlib.suppress(OSError, ValueError):
            self._exchange(source, ahead)
        self.deadline = 0.0
        self.kill()
        self._reap()
        self.pool.lost(list(ahead), self.slow)

    def _start(self) -> Source[FromChild] | None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-m", "indexer", "--crew"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        _widen(self.process.stdout)
        self.expect(_START_S)
        self._write(pack(self.pool.setup))
        source: Source[FromChild] = Source(self.process.stdout, FromChild)
        ready = source.read()
        if not isinstance(ready, Ready):
            self.kill()
            self._reap()
            return None
        self.pool.note, self._cpu = ready.note, _cpu_of(self.process)
        return source

    def _exchange(self, source: Source[FromChild], ahead: deque[Task]) -> None:
        """Send what is in `ahead`, then go on: keep some tasks before the child, take what comes back."""
        unsent = list(ahead)
        while True:
            if unsent:
                self._write(pack(Batch(tasks=tuple(unsent))))
            if not ahead:
                self.deadline = 0.0
                unsent = self.pool.take(wait=True)
                if not unsent:
                    return
                ahead.extend(unsent)
                continue
            self.expect(self.pool.hard_s)
            made = source.read()
            if not isinstance(made, Made):
                return
            ahead.popleft()
            self._cpu += made.cpu_s
            self.pool.finish(made)
            unsent = self.pool.take(wait=False) if len(ahead) < _AHEAD else []
            ahead.extend(unsent)

    def _write(self, data: bytes) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _reap(self) -> None:
        if self.process is None:
            return
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _widen(pipe: IO[bytes]) -> None:
    """Room for several files' rows, so that a child works on while the writer is busy."""
    if sys.platform == "linux":
        import fcntl  # noqa: PLC0415 - not everywhere

        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _cpu_of(process: subprocess.Popen[bytes] | None) -> float:
    """CPU seconds of a child so far; -1 when it is gone."""
    try:
        times = psutil.Process(process.pid).cpu_times() if process else None
        return times.user + times.system if times else -1.0
    except psutil.Error:
        return -1.0
