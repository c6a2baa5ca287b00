"""The far parts of the own file that resemble what stands around the cursor.

    names near the cursor → every place that holds one → stretches that hold many rare ones

In a long file most of what the next line needs stands in the file itself, above or below the window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from daemon.context.focus import Focus
from daemon.context.view import dedent
from daemon.surroundings import Piece

_NAMES = 24
_PLACES = 64
"""A name that stands more often is no clue."""
_HEIGHT = 4
"""Lines of a stretch that are compared."""
_ABOVE, _BELOW = 2, 3
"""Lines shown around it."""
_MOST = 5
_LEAST = 0.02
"""Least score of a stretch: one name that stands nowhere else in 50 places."""
_FULL = 0.4
"""A stretch with this score could not be more alike."""


def pieces(focus: Focus) -> Iterator[Piece]:
    """The best stretches of the own file outside the window, apart from each other."""
    hits = _hits(focus)
    weights = _rarity(hits)
    scores = {
        line: sum(weights[name] for name in set().union(*(hits.get(line + i, ()) for i in range(_HEIGHT))))
        for line in hits
    }
    taken: list[tuple[int, int]] = []
    for line in sorted(scores, key=lambda n: (-scores[n], abs(n - focus.around.line))):
        start, end = _stretch(focus, line)
        if scores[line] < _LEAST or len(taken) >= _MOST:
            return
        if any(start < b and end > a for a, b in taken):
            continue
        taken.append((start, end))
        text = dedent("\n".join(focus.lines[start:end]))
        if text:
            yield Piece(
                tier="P3",
                kind="text",
                path=focus.around.path,
                text=text,
                start_line=start,
                end_line=end,
                importance=min(1.0, scores[line] / _FULL),
                distance=1,
            )


def _hits(focus: Focus) -> dict[int, set[str]]:
    """Line outside the window → names near the cursor that stand in it."""
    starts = list(accumulate((len(line) + 1 for line in focus.lines), initial=0))
    found: dict[int, set[str]] = {}
    for name in list(focus.weights)[:_NAMES]:
        at = focus.text.find(name)
        places: list[int] = []
        while at >= 0 and len(places) <= _PLACES:
            line = bisect_right(starts, at) - 1
            if not focus.shown[0] <= line < focus.shown[1]:
                places.append(line)
            at = focus.text.find(name, starts[line + 1])
        if len(places) <= _PLACES:
            for line in places:
                found.setdefault(line, set()).add(name)
    return found


def _rarity(hits: dict[int, set[str]]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for names in hits.values():
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return {name: 1.0 / (2.0 + count) for name, count in counts.items()}


def _stretch(focus: Focus, line: int) -> tuple[int, int]:
    """Lines shown for a stretch that begins at `line`, never into the window."""
    start, end = max(0, line - _ABOVE), min(len(focus.lines), line + _HEIGHT + _BELOW)
    if line < focus.shown[0]:
        return start, min(end, focus.shown[0])
    return max(start, focus.shown[1]), end
