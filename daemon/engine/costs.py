"""What evaluation costs here: threads, pp(n) and V(k), measured for about a second with the loaded model."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from daemon.engine import cores
from daemon.engine.binding import Context, Part

_PREFILL = (1, 16, 32, 64, 128)
_VERIFY = (1, 2, 3, 4, 5, 8)
_BUDGET_S = 1.0
_ALWAYS = 3
"""Slice sizes that are measured even on a machine too slow or too busy for the budget."""


def choose_threads(
    context: Context, found: cores.Machine, *, keep: Callable[[Sequence[int]], bool] = cores.keep_on
) -> tuple[cores.Choice, str]:
    """The threads with the best time for a small slice and a single row together, where they run, and why.

    The context has them then, and the process is kept on their cores by `keep`. Sequence 0 must be empty.
    """
    everywhere = [core for kind in found.kinds for core in kind]
    began = time.perf_counter()
    measured: list[tuple[cores.Choice, float]] = []
    for choice in cores.candidates(found):
        if len(measured) >= _ALWAYS and time.perf_counter() - began > _BUDGET_S:
            break
        if not choice.cores or keep(choice.cores):
            context.set_threads(choice.threads)
            measured.append((choice, both_ms(context)))
        if choice.cores:
            keep(everywhere)
    chosen, why = cores.best(measured)
    if chosen.cores:
        keep(chosen.cores)
    context.set_threads(chosen.threads)
    return chosen, why


def usable_threads() -> int:
    """One for each core that this process may use at once."""
    found = cores.machine()
    return found.capped(sum(map(len, found.kinds)))


def behind_ms(context: Context, filled: int) -> float:
    """Milliseconds of the quicker of two single rows behind `filled` positions, where what the cache holds
    counts; sequence 0 must be empty, and is again."""
    filled = min(filled, context.cells - 2)
    for at in range(0, filled, context.batch):
        context.decode(Part(np.zeros(min(context.batch, filled - at), np.int32), at, 0, 0))
    best = float("inf")
    for _ in range(2):
        context.decode(Part(np.zeros(1, np.int32), filled, 0, 1))
        best = min(best, context.last_s * 1000.0)
        context.cut(0, filled)
    context.cut(0, 0)
    return best


def both_ms(context: Context) -> float:
    """Of a small slice and four single rows; sequence 0 must be empty."""
    return decode_ms(context, 16, 1) + 4 * decode_ms(context, 1, 1)


def measure(context: Context) -> tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]:
    """(prefill, verify): pairs of rows in one decode and milliseconds; sequence 0 must be empty."""
    began = time.perf_counter()
    prefill: list[tuple[int, float]] = []
    for rows in _PREFILL:
        if rows > context.batch or (len(prefill) >= _ALWAYS and time.perf_counter() - began > _BUDGET_S):
            break
        prefill.append((rows, decode_ms(context, rows, 1)))
    verify = [(k, decode_ms(context, k, k)) for k in _VERIFY if k <= context.max_outputs]
    return undisturbed(prefill), undisturbed(verify)


def undisturbed(measured: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """Pairs of rows and milliseconds where no fewer rows take longer: those were disturbed."""
    least, found = float("inf"), []
    for rows, ms in sorted(measured, reverse=True):
        least = min(least, ms)
        found.append((rows, least))
    return tuple(reversed(found))


def slice_for(prefill: tuple[tuple[int, float], ...], target_ms: float, batch: int) -> int:
    """The largest measured slice that stays near `target_ms`; at least 16 rows, for decent throughput."""
    fitting = [rows for rows, ms in prefill if ms <= target_ms * 1.25]
    largest = max(fitting, default=16)
    if prefill and largest == prefill[-1][0]:
        rows, ms = prefill[-1]
        largest = int(rows * target_ms / ms) if ms else batch
    return max(16, min(largest, batch))


def decode_ms(context: Context, rows: int, outputs: int) -> float:
    """Milliseconds of the quicker of two decodes of `rows` tokens; sequence 0 must be empty."""
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
