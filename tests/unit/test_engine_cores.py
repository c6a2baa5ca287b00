"""Cores as Linux describes them, what is worth measuring on them, and which measurement is believed."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from daemon.engine import cores
from daemon.engine.cores import Choice, Machine

TWINS = {core: f"{core // 2}" if core < 4 else f"{core}" for core in range(8)}
LAPTOP = Machine(((0, 1, 2, 3), (4, 5, 6, 7)), TWINS)
"""Two fast cores with two threads each, four slow ones."""


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def described(root: Path, name: str, values: dict[int, str]) -> Path:
    for core, value in values.items():
        write(root, f"sys/devices/system/cpu/cpu{core}/{name}", value + "\n")
    return root


def test_cores_of_a_kind_may_differ_a_little() -> None:
    assert cores.kinds({0: 5200, 1: 5300, 2: 3900, 3: 3900, 4: 2500}) == ((0, 1), (2, 3), (4,))
    assert cores.kinds({0: 1, 3: 1}) == ((0, 3),)


@pytest.mark.parametrize("name", ["cpu_capacity", "cpufreq/cpuinfo_max_freq"])
def test_kinds_are_read_of_usable_cores_alone(tmp_path: Path, name: str) -> None:
    usable = sorted(cores.machine().twins)
    speeds = dict.fromkeys(usable, "400") | {usable[0]: "1024"}
    root = described(tmp_path, name, speeds | {max(usable) + 1: "9000"})
    found = cores.machine(root)
    assert found.kinds[0] == (usable[0],)
    assert sorted(core for kind in found.kinds for core in kind) == usable


def test_nothing_said_means_all_alike(tmp_path: Path) -> None:
    found = cores.machine(described(tmp_path, "cpu_capacity", {0: "unknown"}))
    assert found.kinds == (tuple(sorted(cores.machine().twins)),)
    assert math.isinf(found.quota)


@pytest.mark.parametrize(
    ("group", "file", "text", "expected"),
    [
        ("0::/a/b\n", "sys/fs/cgroup/a/cpu.max", "150000 100000", 1.5),
        ("0::/elsewhere\n", "sys/fs/cgroup/cpu.max", "200000 100000", 2.0),
        ("0::/a\n", "sys/fs/cgroup/a/cpu.max", "max 100000", math.inf),
        ("3:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "300000", 3.0),
        ("3:cpuset:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "300000", math.inf),
        ("3:cpu:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1", math.inf),
        ("rubbish\n", "sys/fs/cgroup/cpu.max", "rubbish", math.inf),
    ],
)
def test_quota_of_any_group_above(tmp_path: Path, group: str, file: str, text: str, expected: float) -> None:
    write(tmp_path, "proc/self/cgroup", group)
    write(tmp_path, file, text)
    write(tmp_path, "sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000")
    assert cores.quota(tmp_path) == expected


def test_what_is_worth_measuring() -> None:
    fast = (0, 1, 2, 3)
    assert cores.candidates(LAPTOP) == [Choice(8), Choice(4, fast), Choice(2, fast), Choice(6), Choice(4)]
    assert cores.candidates(LAPTOP._replace(quota=1.5)) == [Choice(2), Choice(2, fast)]
    alike = Machine(((0, 1),), {0: "0", 1: "1"})
    assert cores.candidates(alike) == [Choice(2), Choice(1)]
    assert cores.candidates(alike._replace(quota=0.5)) == [Choice(1)]


def test_cores_are_kept_only_where_that_is_clearly_faster() -> None:
    fast = Choice(4, (0, 1, 2, 3))
    chosen, why = cores.best([(Choice(8), 20.0), (fast, 12.0), (Choice(4), 15.0)])
    assert chosen == fast
    assert why.startswith("measured: 4 threads kept on cores 0-3 12.0 ms (8 threads on any core 20.0")
    assert cores.best([(Choice(8), 20.0), (fast, 14.7), (Choice(4), 15.0)])[0] == Choice(4)
    assert cores.best([(Choice(1), 3.0)]) == (Choice(1), "measured: 1 thread on any core 3.0 ms")


def test_a_process_moves_to_its_cores_with_all_threads_or_stays() -> None:
    before = sorted(cores.machine().twins)
    assert not cores.keep_on(())
    assert not cores.keep_on((100_000,))
    assert sorted(cores.machine().twins) == before
    moved = cores.keep_on(before[:1])
    assert moved == hasattr(os, "sched_setaffinity")
    if moved:
        threads = [int(task.name) for task in Path("/proc/self/task").iterdir()]
        kept = [os.sched_getaffinity(thread) for thread in threads]
        assert cores.keep_on(before)
        assert kept == [{before[0]}] * len(threads)


def test_spans() -> None:
    assert cores.spans((8, 0, 1, 2, 3, 5)) == "0-3,5,8"
