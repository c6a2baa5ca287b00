"""Which cores there are, how many threads are worth trying on which of them, and what measured best.

Cores differ in kind on hybrid processors: a row then takes as long as the slowest core needs for its share,
and fewer threads on the fast ones may be quicker. Linux says how fast each core is; elsewhere all are alike.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/")
_ALIKE = 0.9
"""Cores of one kind differ by less: favoured ones boost a few percent higher."""
_CLEARLY = 0.95
"""Threads are kept on some cores only where that takes at most this share of the best time anywhere."""


class Choice(NamedTuple):
    """So many threads, kept on these cores; empty: on any."""

    threads: int
    cores: tuple[int, ...] = ()

    def __str__(self) -> str:
        where = f"kept on cores {spans(self.cores)}" if self.cores else "on any core"
        return f"{self.threads} thread{'s' * (self.threads != 1)} {where}"


class Machine(NamedTuple):
    """Usable cores by kind, the fastest first; `twins` names for each one the physical core that it is part
    of; `quota` is how many may be busy at once, infinite where nothing says so."""

    kinds: tuple[tuple[int, ...], ...]
    twins: dict[int, str]
    quota: float = math.inf

    def counts(self, cores: Sequence[int]) -> set[int]:
        """Threads that fill these cores: each of them, or each physical one once."""
        return {self.capped(len(cores)), self.capped(len({self.twins[core] for core in cores}))}

    def capped(self, threads: int) -> int:
        """No more than the quota lets run at once."""
        return max(1, threads if math.isinf(self.quota) else min(threads, math.ceil(self.quota)))


def machine(root: Path = ROOT) -> Machine:
    """What this process may use."""
    if hasattr(os, "sched_getaffinity"):
        usable = sorted(os.sched_getaffinity(0))
    else:
        usable = list(range(os.cpu_count() or 1))
    speeds = _speeds(root, usable)
    twins = {core: _said(root, core, "topology/core_cpus_list") or str(core) for core in usable}
    return Machine(kinds(speeds), twins, quota(root))


def kinds(speeds: dict[int, int]) -> tuple[tuple[int, ...], ...]:
    """Cores grouped by speed, the fastest first; a core is of another kind when it is clearly slower than the
    fastest of the kind before."""
    groups: list[list[int]] = []
    fastest = 0
    for core in sorted(speeds, key=lambda core: (-speeds[core], core)):
        if not groups or speeds[core] < fastest * _ALIKE:
            groups.append([])
            fastest = speeds[core]
        groups[-1].append(core)
    return tuple(tuple(sorted(group)) for group in groups)


def _speeds(root: Path, usable: Sequence[int]) -> dict[int, int]:
    """By capacity where the kernel tells them apart, else by their highest frequency, else all alike."""
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        said = [_said(root, core, name) for core in usable]
        if all(text.isdecimal() for text in said) and len(set(said)) > 1:
            return {core: int(text) for core, text in zip(usable, said, strict=True)}
    return dict.fromkeys(usable, 1)


def _said(root: Path, core: int, name: str) -> str:
    return _text(root / "sys/devices/system/cpu" / f"cpu{core}" / name)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def quota(root: Path = ROOT) -> float:
    """Cores' worth of time that the control groups of this process grant, infinite without a limit."""
    found = [math.inf]
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0":
            found += [_share(*_text(at / "cpu.max").split()) for at in _up(root / "sys/fs/cgroup", path)]
        elif "cpu" in controllers.split(","):
            for at in _up(root / "sys/fs/cgroup/cpu", path):
                found.append(_share(_text(at / "cpu.cfs_quota_us"), _text(at / "cpu.cfs_period_us")))
    return min(found)


def _up(top: Path, path: str) -> Iterator[Path]:
    """A control group and those it is in; a container may see only the topmost."""
    at = top / path.lstrip("/")
    yield from (at, *(parent for parent in at.parents if parent.is_relative_to(top)))


def _share(granted: str = "", period: str = "", *_: str) -> float:
    if granted.isdecimal() and period.isdecimal() and int(period):
        return int(granted) / int(period) or math.inf
    return math.inf


def candidates(found: Machine) -> list[Choice]:
    """What is worth measuring, the most promising first: all cores, the faster kinds alone, fewer threads."""
    every = [core for kind in found.kinds for core in kind]
    most = len(every)
    counts = found.counts(every) | {found.capped(most * 3 // 4), found.capped(most // 2)}
    free = [Choice(n) for n in sorted(counts, reverse=True)]
    kept = []
    for end in range(1, len(found.kinds)):
        fast = tuple(sorted(core for kind in found.kinds[:end] for core in kind))
        kept += [Choice(n, fast) for n in sorted(found.counts(fast), reverse=True)]
    return [free[0], *kept, *free[1:]]


def best(measured: Sequence[tuple[Choice, float]]) -> tuple[Choice, str]:
    """The choice with the least milliseconds, and why. Threads stay free unless to keep them is clearly
    quicker: what else runs there may move on."""
    choice, least = min(measured, key=lambda one: one[1])
    free = [one for one in measured if not one[0].cores]
    if choice.cores and free:
        anywhere, ms = min(free, key=lambda one: one[1])
        if least > ms * _CLEARLY:
            choice, least = anywhere, ms
    others = [f"{other} {ms:.1f}" for other, ms in measured if other != choice]
    return choice, f"measured: {choice} {least:.1f} ms" + (f" ({', '.join(others)})" if others else "")


def keep_on(cores: Sequence[int]) -> bool:
    """Let every thread of this process, and those to come, run on these cores alone. False, and nothing has
    changed, where there are none or the system refuses."""
    if not cores:
        return False
    try:
        threads = [int(task.name) for task in Path("/proc/self/task").iterdir()]
        os.sched_setaffinity(0, cores)
    except (OSError, AttributeError, ValueError):
        return False
    for thread in threads:
        with suppress(OSError):  # it has ended meanwhile
            os.sched_setaffinity(thread, cores)
    return True


def spans(cores: Sequence[int]) -> str:
    """As Linux writes them: 0-3,8."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and runs[-1][1] == core - 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
