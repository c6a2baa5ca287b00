"""A piece of some lines of a file."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.surroundings import Piece, PieceKind, Tier


def piece(
    kind: PieceKind,
    path: str,
    lines: tuple[int, int],
    text: str,
    *,
    tier: Tier,
    importance: float,
    name: str = "",
    distance: int = 0,
) -> Iterator[Piece]:
    """One piece, none of a blank text. `importance` counts up to 1."""
    if text.strip():
        yield Piece(
            tier=tier,
            kind=kind,
            path=path,
            text=text,
            name=name,
            start_line=lines[0],
            end_line=lines[1],
            importance=min(1.0, importance),
            distance=distance,
        )
