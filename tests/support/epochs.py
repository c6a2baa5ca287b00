"""Pieces, cursors and epochs of a made-up file."""

from dataclasses import replace
from typing import Any

import msgspec

from daemon.context.epoch import Epochs, Wanted
from daemon.context.written import Near
from daemon.surroundings import Piece, Scope, Surroundings


def count(text: str) -> int:
    return len(text.split())


def piece(name: str, /, rows: int = 4, path: str = "lib.py", **more: object) -> Piece:
    """Three words a row; with its path and its separator 3 · rows + 2 tokens."""
    text = "\n".join(f"{name} row {n}" for n in range(rows))
    made = Piece(tier="P2", kind="definition", path=path, name=name, text=text, importance=0.5)
    return msgspec.structs.replace(made, **more)


def own(name: str, /, **more: object) -> Piece:
    return piece(name, **{"path": "main.py", "kind": "text", "tier": "P3", "name": "", **more})  # type: ignore[arg-type]


def at(line: int = 0, path: str = "main.py", *chain: str) -> Surroundings:
    scopes = tuple(
        Scope(kind="function", name=name, signature=name, start_line=0, end_line=9, start_byte=0, end_byte=9)
        for name in chain
    )
    return Surroundings(path=path, root="/r", line=line, chain=scopes)


def beside(*rows: str, line: str = "being written", below: tuple[str, ...] = ()) -> Near:
    """Rows above the cursor's line, that line, and rows below."""
    return Near((*rows, line, *below), (*rows, *below))


def want(*pieces: Piece, room: int = 1000, **more: Any) -> Wanted:
    return replace(Wanted(pieces=pieces, room=room, found=pieces), **more)


def begun(*pieces: Piece, **more: Any) -> Epochs:
    epochs = Epochs(count)
    first = epochs.after(at(), want(*pieces, **more))
    assert first is not None
    epochs.adopt(at(), first)
    return epochs


def lines(piece: Piece) -> list[str]:
    return piece.text.split("\n")
