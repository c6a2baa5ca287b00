"""What is shown of the cursor's own file: what of it is being written, and what is there no more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from daemon.context.budget import rows
from daemon.context.condense import head
from daemon.detection import PLACEHOLDER
from daemon.surroundings import Piece, Surroundings

_VERBATIM = ("text", "recent", "accepted")
"""Kinds that show lines as they are."""
_RUN = 3
"""Lines in a row by which a piece is recognised."""


class Near(NamedTuple):
    """What stands around the cursor, as `rows` of it."""

    rows: Sequence[str] = ()
    beside: Sequence[str] = ()
    """Without the cursor's own line, which may be another already than a piece shows."""


NOWHERE = Near()


def gone(pieces: Iterable[Piece], around: Surroundings, text: str | None) -> list[Piece]:
    """Pieces of the cursor's file with lines that it has no more."""
    own = [p for p in pieces if p.path == around.path and p.kind in _VERBATIM]
    if text is None or not own:
        return []
    lines = set(map(str.strip, text.split("\n")))

    def there(row: str, piece: Piece) -> bool:
        return row in (text if piece.kind == "accepted" else lines) or PLACEHOLDER in row

    return [p for p in own if not all(there(row, p) for row in rows(p.text))]


def holds(piece: Piece, around: Surroundings, near: Near) -> bool:
    """Whether a piece of the cursor's file shows lines near the cursor, as these are now or were before the
    cursor's own was edited: where they stood when the piece was chosen tells nothing once something is
    written above them. The heads of what is being written may be shown."""
    if piece.path != around.path or piece.kind == "outline":
        return False
    own = rows(piece.text)
    if piece.kind == "enclosing":
        lines = piece.text.split("\n")
        own = [row for row in rows("\n".join(lines[head(lines) :])) if not row.endswith(" ...")]
        told = set(own)  # it is condensed: what stands between its lines near the cursor tells nothing
        near = Near(*([row for row in some if row in told] for some in near))
    size, fewer = min(_RUN, len(own)), min(_RUN, len(own) - 1)
    if size > 1 and not _runs(own, size).isdisjoint(_runs(near.rows, size) | _runs(near.beside, size)):
        return True
    return fewer > 1 and not _gapped(own, fewer).isdisjoint(_runs(near.beside, fewer))


def _runs(lines: Sequence[str], size: int) -> set[tuple[str, ...]]:
    """So many different lines in a row: what repeats itself stands in many places."""
    return {run for run in zip(*(lines[at:] for at in range(size)), strict=False) if len(set(run)) == size}


def _gapped(lines: Sequence[str], size: int) -> set[tuple[str, ...]]:
    """Runs of so many lines with one more between them."""
    longer = list(zip(*(lines[at:] for at in range(size + 1)), strict=False))
    without = {(*run[:at], *run[at + 1 :]) for run in longer for at in range(1, size)}
    return {run for run in without if len(set(run)) == size}
