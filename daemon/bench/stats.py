"""The arithmetic of measurements: percentiles, ratios, confidence intervals, similarity. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""
FEW = 5
"""Questions that must have waited as long before a time is said to be exceeded: where half are answered in
less, chance leaves five once in 32 times."""


class Wait(NamedTuple):
    """How long a question stood and its answer took, in ms; None: it was not answered while it stood."""

    stood: float
    after: float | None


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which `share` (0–1) of `values` lie, linearly interpolated; NaN when there are none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def answered_within(waits: Iterable[Wait], share: float) -> tuple[float, bool]:
    """(the time within which `share` of questions are answered, True), or (a time that it exceeds, False).

    A question that was taken back says only that its answer would have taken longer than it stood: the
    product-limit estimate of Kaplan and Meier (JASA 53, 1958), right where nothing that is measured decides
    when questions are taken back. Where too few were answered, the time is the longest that FEW waited.
    """
    ends = sorted((w.stood if w.after is None else w.after, w.after is None) for w in waits)
    unanswered = 1.0
    for place, (time, taken_back) in enumerate(ends):
        if not taken_back:
            unanswered *= 1.0 - 1.0 / (len(ends) - place)
            if unanswered <= 1.0 - share + 1e-9:
                return time, True
    return ends[-FEW][0] if len(ends) >= FEW else 0.0, False


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; NaN when there are none."""
    return sum(values) / len(values) if values else math.nan


def ratio(above: float, below: float) -> float:
    """`above` ÷ `below`; NaN where that is undefined."""
    return above / below if below else math.nan


def wilson(hits: int, total: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for a share of `hits` in `total`; (0, 1) when nothing was tried."""
    if total == 0:
        return 0.0, 1.0
    share = hits / total
    centre = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def bootstrap(values: Sequence[float], seed: int = 1) -> tuple[float, float]:
    """95 % percentile interval of the mean over 2,000 resamples; of paired differences when given those.
    (NaN, NaN) when there are none."""
    if not values:
        return math.nan, math.nan
    drawn = np.random.default_rng(seed).integers(0, len(values), (2000, len(values)))
    means = np.asarray(values, float)[drawn].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def mcnemar(first: int, second: int) -> float:
    """Exact two-sided p of McNemar's test: `first` tasks only one side solved, `second` only the other."""
    total, few = first + second, min(first, second)
    return min(1.0, 2.0 * float(sum(math.comb(total, k) for k in range(few + 1))) / float(2**total))


def levenshtein(left: str, right: str) -> int:
    """Fewest insertions, deletions and replacements of one character that turn `left` into `right`."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def similarity(left: str, right: str) -> float:
    """1 − Levenshtein distance ÷ length of the longer text; two empty texts are alike."""
    longest = max(len(left), len(right))
    return 1.0 - levenshtein(left, right) / longest if longest else 1.0


def common_prefix(left: str, right: str) -> int:
    """Number of leading characters that agree."""
    for place, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return place
    return min(len(left), len(right))


def first_line(text: str) -> str:
    """The first line that is not blank, without trailing white space; "" when there is none."""
    return next((line.rstrip() for line in text.splitlines() if line.strip()), "")
