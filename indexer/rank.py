"""Pure scores: how much a file means to another, to the whole root, and how lately it changed.

The idea of ranking definitions by who refers to them is aider's (repomap.py); the walk is PageRank (Brin and
Page 1998) by power iteration.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

IMPORT_WEIGHT = 2.0
DAMPING = 0.85
HALF_LIFE_S = 86_400.0
_TEST = re.compile(r"(^|/)(tests?|__tests__|specs?)/|(^|/)(test_|conftest\.)|[._-](test|spec)\.")


def weight(imports: int, uses: int) -> float:
    """Weight of the edge between two files: imports count fully, uses by their square root (as in aider)."""
    return IMPORT_WEIGHT * imports + math.sqrt(uses)


def nearness(path: str, other: str) -> float:
    """1 in the same directory, less with each step through the tree, above 0. Paths use `/`."""
    return near_folders(path.rpartition("/")[0], other.rpartition("/")[0])


def is_test(path: str) -> bool:
    """Whether a file is a test, by its name."""
    return _TEST.search(path) is not None


@functools.lru_cache(maxsize=4096)
def near_folders(folder: str, other: str) -> float:
    """`nearness` of the files of two folders."""
    here, there = (name.split("/") if name else [] for name in (folder, other))
    common = 0
    for a, b in zip(here, there, strict=False):
        if a != b:
            break
        common += 1
    return 1.0 / (1 + len(here) + len(there) - 2 * common)


def recency(age_s: float) -> float:
    """1 for now, halved every HALF_LIFE_S seconds; times in the future count as now."""
    return float(0.5 ** (max(0.0, age_s) / HALF_LIFE_S))


def relevance(edge: float, near: float, importance: float, recent: float = 0.0) -> float:
    """One number from the parts, each 0 to 1 but `edge` (a weight): the edge leads, the rest breaks ties."""
    return 1.0 - math.exp(-edge / 4) + 0.5 * near + 0.25 * importance + 0.25 * recent


def importance(
    edges: Iterable[tuple[int, int, float]], start: Mapping[int, float] | None = None, rounds: int = 20
) -> dict[int, float]:
    """File id → importance, the largest being 1. Edges are (from, to, weight); weight flows to what is
    referred to. `start` are the files to return to (personalised), all alike when absent."""
    rows = list(edges)
    ids = sorted({i for a, b, _ in rows for i in (a, b)})
    if not ids:
        return {}
    place = {file: i for i, file in enumerate(ids)}
    source = np.array([place[a] for a, _, _ in rows])
    target = np.array([place[b] for _, b, _ in rows])
    out = np.array([w for _, _, w in rows], dtype=np.float64)
    total = np.bincount(source, weights=out, minlength=len(ids))
    share = out / np.maximum(total[source], 1e-12)
    home = np.array([1.0 if start is None else start.get(i, 0.0) for i in ids])
    home = home / home.sum() if home.sum() > 0 else np.full(len(ids), 1 / len(ids))
    score = home.copy()
    for _ in range(rounds):
        flow = np.bincount(target, weights=score[source] * share, minlength=len(ids))
        lost = score[total == 0].sum()
        score = (1 - DAMPING) * home + DAMPING * (flow + lost * home)
    top = float(score.max())
    return {file: float(s) / top for file, s in zip(ids, score, strict=True)}


def rarity(counts: Sequence[int], total: int) -> list[float]:
    """Weight of words found in `counts` of `total` documents: inverse document frequency (Robertson 2004)."""
    return [math.log(1 + (max(total, n) - n + 0.5) / (n + 0.5)) for n in counts]
