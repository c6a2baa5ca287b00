"""What evaluation costs here: threads, pp(n) and V(k), measured for about a second with the loaded model."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterable

import numpy as np

from daemon.engine.binding import Context, Part

_PREFILL = (1, 16, 32, 64, 128)
_VERIFY = (1, 2, 3, 4, 5, 8)
_BUDGET_S = 1.0
_ALWAYS = 3
"""Slice sizes that are measured even on a machine too slow or too busy for the budget."""


def thread_candidates(cores: int) -> list[int]:
    """Thread counts worth trying: all cores, and fewer where hyper-threads or small cores may hurt."""
    return sorted({max(1, cores), max(1, cores * 3 // 4), max(1, cores // 2)}, reverse=True)


def usable_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def choose_threads(context: Context, cores: int) -> int:
    """The thread count with the best time for a small slice and a single row together."""
    costs = {}
    for threads in thread_candidates(cores):
        context.set_threads(threads)
        costs[threads] = _time(context, 16, 1) + 4 * _time(context, 1, 1)
    best = min(costs, key=costs.__getitem__)
    context.set_threads(best)
    return best


def measure(context: Context) -> tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]:
    """(prefill, verify): pairs of rows in one decode and milliseconds; sequence 0 must be empty."""
    began = time.perf_counter()
    prefill: list[tuple[int, float]] = []
    for rows in _PREFILL:
        if rows > context.batch or (len(prefill) >= _ALWAYS and time.perf_counter() - began > _BUDGET_S):
            break
        prefill.append((rows, _time(context, rows, 1)))
    verify = tuple((k, _time(context, k, k)) for k in _VERIFY if k <= context.max_outputs)
    return tuple(prefill), verify


def slice_for(prefill: tuple[tuple[int, float], ...], target_ms: float, batch: int) -> int:
    """The largest measured slice that stays near `target_ms`; at least 16 rows, for decent throughput."""
    fitting = [rows for rows, ms in prefill if ms <= target_ms * 1.25]
    largest = max(fitting, default=16)
    if prefill and largest == prefill[-1][0]:
        rows, ms = prefill[-1]
        largest = int(rows * target_ms / ms) if ms else batch
    return max(16, min(largest, batch))


def _time(context: Context, rows: int, outputs: int) -> float:
    """Milliseconds of the quicker of two decodes of `rows` tokens behind a short prefix."""
    tokens = np.arange(100, 100 + rows, dtype=np.int32) % context.model.n_vocab
    best = float("inf")
    for _ in range(2):
        began = time.perf_counter()
        context.decode(Part(tokens, 0, 0, outputs))
        best = min(best, (time.perf_counter() - began) * 1000.0)
        context.cut(0, 0)
    return best


class RowCosts:
    """Milliseconds of a decode by its number of rows, at most `most`: between the measured points linear,
    beyond the last proportional, and never less for more rows."""

    def __init__(self, points: Iterable[tuple[int, float]], most: int) -> None:
        known = dict(sorted(points)) or {1: 1.0, 64: 8.0}
        rows = np.arange(most + 1)
        last = max(known)
        table = np.interp(rows, list(known), list(known.values()))
        table[rows > last] = known[last] / last * rows[rows > last]
        table[0] = 0.0
        self._ms: list[float] = np.maximum.accumulate(table).tolist()

    def ms(self, rows: int) -> float:
        """Of one decode."""
        return self._ms[min(rows, len(self._ms) - 1)]

    def within(self, ms: float) -> int:
        """The most rows that take at most `ms`."""
        return bisect_right(self._ms, ms + 1e-9) - 1
