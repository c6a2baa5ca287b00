"""The far parts of the own file that resemble what stands around the cursor.

    names near the cursor → every place that holds one → stretches that hold many rare ones

In a long file most of what the next line needs stands in the file itself, above or below the window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from daemon.context.focus import Focus
from daemon.context.oneline import import_lines
from daemon.context.view import dedent
from daemon.surroundings import Piece

_NAMES = 18
_PLACES = 40
"""A name that stands more often is no clue."""
_HEIGHT = 4
"""Lines of a stretch that are compared."""
_ABOVE, _BELOW = 2, 3
"""Lines shown around it."""
_LOOKED = 24
"""Stretches that are compared in full."""
_MOST = 5
_LEAST = 0.02
"""Least score of a stretch: one name that stands nowhere else in 50 places."""
_FULL = 0.4
"""A stretch with this score could not be more alike."""
Lines = npt.NDArray[np.int64]


def pieces(focus: Focus) -> Iterator[Piece]:
    """The best stretches of the own file outside the window, apart from each other."""
    scores = _scores(_hits(focus), len(focus.lines))
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


def _hits(focus: Focus) -> list[Lines]:
    """Of each name near the cursor that is a clue: the lines outside the window that hold it."""
    text, (first, last) = focus.text, focus.shown
    imports = import_lines(focus.lines)
    lengths = np.fromiter(map(len, focus.lines), np.int64, len(focus.lines))
    ends: list[int] = np.cumsum(lengths + 1).tolist()
    found = []
    for name in list(focus.weights)[:_NAMES]:
        lines: list[int] = []
        at = text.find(name)
        while at >= 0 and len(lines) <= _PLACES:
            line = bisect_right(ends, at)
            if first <= line < last:
                line = min(last, len(ends)) - 1
            elif line not in imports:
                lines.append(line)
            at = text.find(name, ends[line])
        if 0 < len(lines) <= _PLACES:
            found.append(np.array(lines))
    return found


def _scores(hits: Sequence[Lines], height: int) -> dict[int, float]:
    """Line → rarities of the different names in the stretch that begins there; of the best lines only."""
    rough = np.zeros(height + _HEIGHT)
    for lines in hits:
        rough[lines] += 1.0 / (2.0 + len(lines))
    places = np.flatnonzero(rough)
    whole = sum(rough[places + i] for i in range(_HEIGHT))
    best = places[np.argsort(-whole, kind="stable")[:_LOOKED]] if len(places) else places
    held = [(set(lines.tolist()), 1.0 / (2.0 + len(lines))) for lines in hits]
    return {
        line: sum(rarity for lines, rarity in held if not lines.isdisjoint(range(line, line + _HEIGHT)))
        for line in best.tolist()
    }


def _stretch(focus: Focus, line: int) -> tuple[int, int]:
    """Lines shown for a stretch that begins at `line`, never into the window."""
    start, end = max(0, line - _ABOVE), min(len(focus.lines), line + _HEIGHT + _BELOW)
    if line < focus.shown[0]:
        return start, min(end, focus.shown[0])
    return max(start, focus.shown[1]), end
