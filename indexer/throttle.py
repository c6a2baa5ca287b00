"""How much of the machine the indexer may use now: priorities, a share of a core while busy, battery."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from indexer.battery import on_battery
from indexer.frames import Battery

_NICE = 10
_GROUP_NICE = 19
"""Of a whole session, which does nothing but this: the least weight that there is."""
_BURST_S = 0.25
"""CPU seconds that may be spent at once after a rest."""
_LOOK_S = 10.0
_TICK_S = 0.001
"""A shorter wait is none: it may be too small to move a clock."""


def lower_priority() -> None:
    """Behind everything else on this machine, for this process and the children it starts."""
    me = psutil.Process()
    with contextlib.suppress(psutil.Error, OSError, ValueError):
        if sys.platform == "win32":
            me.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            os.nice(max(0, _NICE - os.nice(0)))
    with contextlib.suppress(psutil.Error, OSError, ValueError, AttributeError):
        if sys.platform == "win32":
            me.ionice(psutil.IOPRIO_LOW)
        elif sys.platform == "linux":
            me.ionice(psutil.IOPRIO_CLASS_BE, 7)
    _lower_session()


def _lower_session() -> None:
    """Linux divides time among sessions first (sched(7), autogroup): inside a session of its own a process is
    as nice as it likes, and another session's is not helped by it. The kernel takes one such wish of an
    ordinary user per 100 ms, whoever made the last one (EAGAIN)."""
    if sys.platform != "linux" or os.getsid(0) != os.getpid():
        return
    with contextlib.suppress(OSError):  # this kernel, or its settings, has none
        for _ in range(10):
            try:
                Path("/proc/self/autogroup").write_text(str(_GROUP_NICE), encoding="ascii")
                return
            except BlockingIOError:
                time.sleep(0.1)


class Throttle:
    """A bucket of CPU seconds that fills at `share` per second while completions run; else without bound."""

    def __init__(
        self,
        share: float,
        battery: Battery,
        clock: Callable[[], float] = time.monotonic,
        battery_now: Callable[[], bool] = on_battery,
    ) -> None:
        self.busy = False
        self._share = share
        self._battery = battery
        self._clock = clock
        self._battery_now = battery_now
        self._level = _BURST_S
        self._filled = clock()
        self._looked = -_LOOK_S
        self._deferred = False

    def spend(self, cpu_s: float) -> None:
        """CPU seconds were used, by this process or a child."""
        if self.busy:
            self._fill()
            self._level -= cpu_s

    def wait_s(self) -> float:
        """Seconds until the next piece of work may begin; 0 when it may now."""
        if not self.busy:
            return 0.0
        self._fill()
        wait = -self._level / self._share
        return wait if wait > _TICK_S else 0.0

    def set_busy(self, running: bool) -> None:
        """Completions began or ended."""
        if running and not self.busy:
            self._level, self._filled = _BURST_S, self._clock()
        self.busy = running

    def deferred(self) -> bool:
        """Whether the first walk has to wait for the mains; changes are taken in all the same."""
        now = self._clock()
        if self._battery == "defer" and now - self._looked >= _LOOK_S:
            self._looked, self._deferred = now, self._battery_now()
        return self._deferred

    def why(self) -> str:
        """For people; empty when nothing is slowed."""
        if self.busy:
            return f"completions run: at most {self._share:.0%} of one core"
        return "on battery: only changes are taken in" if self._deferred else ""

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(_BURST_S, self._level + (now - self._filled) * self._share)
        self._filled = now
