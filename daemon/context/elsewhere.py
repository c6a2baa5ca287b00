"""The far parts of the own file that resemble what stands around the cursor.

    names near the cursor → every place that holds one → stretches that hold many rare ones

In a long file most of what the next line needs stands in the file itself, above or below the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from daemon.context.focus import Focus
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


def pieces(focus: Focus) -> Iterator[Piece]:
    """The best stretches of the own file outside the window, apart from each other."""
    hits = _hits(focus)
    scores = _scores(hits)
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


def _hits(focus: Focus) -> dict[int, list[str]]:
    """Line outside the window → names near the cursor that stand in it."""
    text, (first, last) = focus.text, focus.shown
    found: dict[int, list[str]] = {}
    for name in list(focus.weights)[:_NAMES]:
        at, line, seen = text.find(name), 0, 0
        places: list[int] = []
        while at >= 0 and len(places) <= _PLACES:
            line += text.count("\n", seen, at)
            if not first <= line < last:
                places.append(line)
            seen = text.find("\n", at)
            at = text.find(name, seen) if seen >= 0 else -1
        if len(places) <= _PLACES:
            for line in places:
                found.setdefault(line, []).append(name)
    return found


def _scores(hits: dict[int, list[str]]) -> dict[int, float]:
    """Line → rarities of the different names in the stretch that begins there; of the best lines only."""
    counts = Counter(name for names in hits.values() for name in names)
    rough = {line: sum(1.0 / (2.0 + counts[name]) for name in names) for line, names in hits.items()}
    rough = {line: sum(rough.get(line + i, 0.0) for i in range(_HEIGHT)) for line in hits}
    best = sorted(rough, key=lambda line: (-rough[line], line))[:_LOOKED]
    stretches = {line: {n for i in range(_HEIGHT) for n in hits.get(line + i, ())} for line in best}
    return {line: sum(1.0 / (2.0 + counts[n]) for n in names) for line, names in stretches.items()}


def _stretch(focus: Focus, line: int) -> tuple[int, int]:
    """Lines shown for a stretch that begins at `line`, never into the window."""
    start, end = max(0, line - _ABOVE), min(len(focus.lines), line + _HEIGHT + _BELOW)
    if line < focus.shown[0]:
        return start, min(end, focus.shown[0])
    return max(start, focus.shown[1]), end
