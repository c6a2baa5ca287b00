"""The indexer's loop: what comes in, what is due, what the children may do next, what is written.

    Begin, Roots, Busy, Touch ⇢ inbox ─┐
    hints, scans, rows ────────── wake ─┴→ turn(): tend roots → write → feed children → say State

One thread owns all stores. Changes that a person just made go before a first walk.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from indexer import report, statefile
from indexer.frames import Ask, Begin, Busy, End, Made, Plan, Roots, RootSpec, Setup, State, ToIndexer, Touch
from indexer.keeping import TIDY_S
from indexer.pool import Pool
from indexer.root import Root
from indexer.throttle import Throttle

_log = logging.getLogger(__name__)
_AHEAD = 16
"""Tasks that wait in the pool for each child."""
_STATE_S = 0.5
_IDLE_S = 1.0
_QUICK_S = 0.05


class Worker:
    """All roots of one Begin. `send` takes every State; it may be called on the worker's thread only."""

    def __init__(self, begin: Begin, send: Callable[[State], None]) -> None:
        self._plan = begin.plan
        self._once = begin.once
        self._send = send
        self._wake = threading.Event()
        self._inbox: queue.SimpleQueue[ToIndexer] = queue.SimpleQueue()
        self._made: queue.SimpleQueue[Made] = queue.SimpleQueue()
        self._throttle = Throttle(begin.plan.busy_share, "run" if begin.once else begin.plan.battery)
        self._roots: dict[str, Root] = {}
        self._pool: Pool | None = None
        self._ended = False
        self._said: State | None = None
        self._said_at = 0.0
        self._asked = False
        self._set_roots(begin.roots)

    def post(self, message: ToIndexer) -> None:
        """Any thread: a message for the worker."""
        self._inbox.put(message)
        self._wake.set()

    def run(self) -> None:
        """Until End, or with `once` until everything is complete."""
        try:
            while not self._ended:
                pause = self.turn()
                if self._once and all(root.finished() for root in self._roots.values()):
                    break
                self._wake.wait(pause)
                self._wake.clear()
        finally:
            self._close()

    def turn(self) -> float:
        """Do everything that is due; how many seconds it may be left alone."""
        began = time.thread_time()
        self._take_messages()
        now = time.monotonic()
        for root in self._roots.values():
            root.tend(now)
            root.keeper.hold(self._throttle.busy)
        self._take_made()
        for root in self._roots.values():
            if root.keeper.due(now, root.quiet()):
                root.keeper.write(now)
            root.finish_walk(now)
        pause = self._feed()
        if not self._throttle.wait_s():
            pause = min(pause, self._settle(now))
        self._throttle.spend(time.thread_time() - began)
        self._say(now)
        return pause

    def _take_messages(self) -> None:
        while not self._inbox.empty():
            message = self._inbox.get_nowait()
            if isinstance(message, End):
                self._ended = True
            elif isinstance(message, Busy):
                self._throttle.set_busy(message.running)
            elif isinstance(message, Ask):
                self._asked = True
            elif isinstance(message, Touch):
                self._touch(message.paths)
            elif isinstance(message, Roots):
                if message.vocabulary != self._plan.vocabulary:
                    self._plan = _with_vocabulary(self._plan, message.vocabulary)
                    self._restart()
                self._set_roots(message.roots)

    def _touch(self, paths: Iterable[str]) -> None:
        for root in self._roots.values():
            inside = {os.path.relpath(path, root.path).replace(os.sep, "/") for path in paths}
            root.touch({path for path in inside if not path.startswith("../")})

    def _set_roots(self, specs: Iterable[RootSpec]) -> None:
        wanted = {spec.path: spec for spec in specs}
        for path, root in list(self._roots.items()):
            if wanted.get(path) != root.spec:
                self._roots.pop(path).close()
        for path, spec in wanted.items():
            if path not in self._roots:
                self._roots[path] = Root(spec, self._plan, self._wake.set, watching=not self._once)

    def _restart(self) -> None:
        """With another vocabulary everything is opened again."""
        for root in self._roots.values():
            root.close()
        self._roots.clear()
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _take_made(self) -> None:
        while not self._made.empty():
            made = self._made.get_nowait()
            self._throttle.spend(made.cpu_s)
            if (root := self._roots.get(made.root)) is not None:
                root.accept(made)

    def _feed(self) -> float:
        """Give the children what they may do now; seconds until more can be given."""
        waiting = any(len(root.changes) > root.changes.flying for root in self._roots.values())
        if waiting and self._pool is None:
            self._pool = self._start_pool()
        wait = self._throttle.wait_s()
        deferred = self._throttle.deferred()
        for urgent in (True, False):
            for root in self._roots.values():
                if root.ready() and not wait and (urgent or not deferred):
                    self._feed_from(root, urgent)
        if any(root.keeper.pending or root.restless() for root in self._roots.values()):
            return _QUICK_S
        return min(_IDLE_S, wait) if waiting and wait else _IDLE_S

    def _settle(self, now: float) -> float:
        """Idle work of roots that have nothing else to do; seconds until there is more of it."""
        for root in self._roots.values():
            if root.settled() and root.keeper.unsettled:
                root.keeper.settle(now, 0.0 if self._once else TIDY_S)
                return 0.0 if root.keeper.busy_settling else _QUICK_S
        return _IDLE_S

    def _feed_from(self, root: Root, urgent: bool) -> None:
        pool = self._pool
        if pool is None:
            return
        if self._throttle.busy:
            flying = sum(r.changes.flying for r in self._roots.values())
            room = 1 if not flying and not self._throttle.wait_s() else 0
        else:
            room = 4 * _AHEAD if urgent else _AHEAD * len(pool.hands) - pool.waiting()
        if room > 0 and (tasks := root.take(room, urgent)):
            pool.give(tasks, urgent)

    def _start_pool(self) -> Pool:
        plan = self._plan
        setup = Setup(
            vocabulary=plan.vocabulary,
            budget_s=plan.budget_ms / 1000,
            max_file_bytes=plan.max_file_kb * 1024,
            max_line=plan.max_line,
        )
        return Pool(setup, plan.workers or _cores(), self._done)

    def _done(self, made: Made) -> None:
        self._made.put(made)
        self._wake.set()

    def _say(self, now: float) -> None:
        if not self._asked and now - self._said_at < _STATE_S:
            return
        states = tuple(
            report.root_state(root, self._pool, self._throttle.deferred()) for root in self._roots.values()
        )
        self._said_at = now
        plain = State(roots=states, pid=os.getpid(), throttled=self._throttle.why())
        if self._asked or plain != self._said:
            self._asked, self._said = False, plain
            self._send(report.with_costs(plain, self._pool))
            for root, state in zip(self._roots.values(), states, strict=True):
                if not root.keeper.holding.foreign:
                    statefile.save(Path(root.spec.folder), state)

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.close()
        for root in self._roots.values():
            root.keeper.flush()
        self._asked = True
        self._say(time.monotonic())
        for root in self._roots.values():
            root.close()


def _with_vocabulary(plan: Plan, vocabulary: str) -> Plan:
    fields = {name: getattr(plan, name) for name in Plan.__struct_fields__}
    return Plan(**{**fields, "vocabulary": vocabulary})


def _cores() -> int:
    """Parsing children: on two cores as well two, because the writer is busy for a third of the time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    return max(1, min(3, cores // 2 + 1))
