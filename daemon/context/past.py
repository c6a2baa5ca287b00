"""P4: what the user did lately, and what the client sends along with a request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daemon.context.focus import MOST_NAMES, Focus
from daemon.context.oneline import WORD
from daemon.context.view import dedent
from daemon.documents.document import Region, RegionKind
from daemon.nouns import Extra
from daemon.surroundings import Piece, PieceKind
from indexer.deny import denied

HALF_LIFE_S = 300.0
"""An event so much older than the newest one counts half."""
_MOST = 24
_LONGEST = 24
"""Lines of one event that are shown."""
_MOST_SENT = 8_000
"""Characters of what a client sends that are looked at."""
_WORTH: dict[RegionKind, tuple[PieceKind, float]] = {
    "edited": ("recent", 0.7),
    "visited": ("recent", 0.4),
    "accepted": ("accepted", 0.6),
}
_SENT: dict[str, tuple[PieceKind, float]] = {
    "diagnostic": ("diagnostic", 0.9),
    "clipboard": ("clipboard", 0.8),
}


def recencies(history: Sequence[Region]) -> dict[str, float]:
    """Path → 1 for the file of the newest event, less for older ones. By the events alone: no clock."""
    newest = max((e.when for e in history), default=0.0)
    found: dict[str, float] = {}
    for event in history:
        found[event.relative] = max(found.get(event.relative, 0.0), _fresh(event, newest))
    return found


def pieces(history: Sequence[Region], extras: Sequence[Extra], aim: Focus) -> Iterator[Piece]:
    """Candidates of the tier; of the own file only what the window does not show."""
    path = aim.around.path
    newest = max((e.when for e in history), default=0.0)
    for event in sorted(history, key=lambda e: -e.when)[:_MOST]:
        overlaps = event.relative == path and aim.visible(event.start_line, event.end_line)
        if overlaps or denied(event.relative) or not event.text.strip():
            continue
        kind, importance = _WORTH[event.kind]
        lines = event.text.strip("\n").split("\n")[:_LONGEST]
        kin = _kinship(lines, aim) if event.kind == "visited" else 1.0
        yield Piece(
            tier="P4",
            kind=kind,
            path=event.relative,
            text=dedent("\n".join(lines)),
            start_line=event.start_line,
            end_line=event.start_line + len(lines),
            importance=importance * kin,
            recency=_fresh(event, newest) * kin,
        )
    for extra in extras:
        if extra.kind in _SENT and extra.text.strip() and not denied(extra.filename):
            kind, importance = _SENT[extra.kind]
            text = dedent(extra.text[:_MOST_SENT])
            yield Piece(
                tier="P4", kind=kind, path=extra.filename, text=text, importance=importance, recency=1.0
            )


def _kinship(lines: Sequence[str], aim: Focus) -> float:
    """How much of what a cursor is about stands in some lines, 0 to 1: people pass through many places."""
    names = {name for line in lines for name in WORD.findall(line)}
    near = list(aim.weights.items())[:MOST_NAMES]
    held = sum(weight for name, weight in near if name in names)
    return held / sum(weight for _, weight in near) if near else 0.0


def _fresh(event: Region, newest: float) -> float:
    return float(0.5 ** (max(0.0, newest - event.when) / HALF_LIFE_S))
