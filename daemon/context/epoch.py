"""Epochs: the stable part of prompts stays what it is while a person works in one place.

Chosen per file and enclosing scope. Inside an epoch pieces are only appended, so everything evaluated before
stays evaluated; another epoch begins in idle time, when too little of the old one still matters. Ranking may
change with every keystroke; the prompt may not.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence

import msgspec

from daemon.surroundings import Lost, Piece, Stable, Surroundings

_KEEP = 32
"""Files whose epochs are remembered."""
_STALE = 0.4
"""Share of an epoch's tokens that no longer matter from which on it is given up."""
NEAR = 30
"""Lines by which a piece of the file itself may have moved since it was chosen."""

_TELLING = 3
"""Lines in a row by which a piece is recognised."""

Count = Callable[[str], int]
Key = tuple[str, str]


class Epochs:
    """The epoch of every file that was worked in lately. `count` gives tokens of a text."""

    def __init__(self, count: Count, keep: int = _KEEP) -> None:
        self._count = count
        self._keep = keep
        self._files: OrderedDict[Key, Stable] = OrderedDict()
        self._last = 0

    def current(self, around: Surroundings, near: Sequence[str] = ()) -> Stable:
        """The epoch of the cursor's file, whichever scope it was chosen for: it stays until idle time.

        A piece of the file itself that would now show the text being written ends it there. `near`: the lines
        around the cursor, stripped, where line numbers do not tell.
        """
        stable = self._files.get(_key(around))
        if stable is None:
            return Stable(path=around.path, scope=around.scope, reason="nothing chosen yet")
        for place, piece in enumerate(stable.pieces):
            if piece.path == around.path and _holds(piece, around, near):
                cut = f"{stable.reason}; cut before {piece.source}, which is being written"
                return msgspec.structs.replace(stable, pieces=stable.pieces[:place], reason=cut)
        return stable

    def after(
        self,
        around: Surroundings,
        pieces: Sequence[Piece],
        lost: Sequence[Lost],
        room: int,
        *,
        changed: Collection[str] = (),
        near: Sequence[str] = (),
    ) -> Stable | None:
        """What should follow the current epoch, given what would be chosen now, in `room` tokens.

        `changed` are paths whose text is another since the epoch was chosen: what an epoch shows of them must
        be what they hold now. None when the current epoch is good enough. Used once it is adopted.
        """
        shown = self.current(around, near)
        wanted = [p for p in pieces if not (p.path == around.path and _holds(p, around, near))]
        if not shown.pieces:
            return self._new(around, wanted, lost, "first epoch") if wanted else None
        kept = [piece for piece in shown.pieces if piece in wanted]
        if why := self._over(around, kept, wanted, changed):
            return self._new(around, [*kept, *(p for p in wanted if p not in kept)], lost, why)
        new, left = [], room - sum(map(self._tokens, shown.pieces))
        for piece in wanted:
            if piece not in kept and not _older(piece, shown.pieces) and self._tokens(piece) <= left:
                left -= self._tokens(piece)
                new.append(piece)
        if not new:
            return None
        reason = f"epoch {shown.epoch}, {len(new)} appended"
        return msgspec.structs.replace(
            shown, scope=around.scope, pieces=(*shown.pieces, *new), lost=tuple(lost), reason=reason
        )

    def _over(
        self, around: Surroundings, kept: Sequence[Piece], wanted: Sequence[Piece], changed: Collection[str]
    ) -> str:
        """Why the epoch is over; empty when it is not."""
        old = self._files[_key(around)].pieces
        gone = [piece for piece in old if piece not in kept]
        for piece in gone:
            own = piece.path == around.path  # changes with every keystroke, and is no less true for that
            if piece.path in changed or (not own and _older(piece, wanted)):
                return f"{piece.source} has changed"
        total = sum(map(self._tokens, old))
        stale = sum(map(self._tokens, gone))
        return f"{stale} of {total} tokens no longer matter" if stale > _STALE * total else ""

    def adopt(self, around: Surroundings, stable: Stable) -> None:
        """`stable` is evaluated: the next request in this file uses it."""
        self._files[_key(around)] = stable
        self._files.move_to_end(_key(around))
        while len(self._files) > self._keep:
            self._files.popitem(last=False)

    def _new(self, around: Surroundings, pieces: Sequence[Piece], lost: Sequence[Lost], why: str) -> Stable:
        self._last += 1
        return Stable(
            epoch=self._last, path=around.path, scope=around.scope, pieces=tuple(pieces), lost=tuple(lost),
            reason=f"epoch {self._last}: {why}",
        )  # fmt: skip

    def _tokens(self, piece: Piece) -> int:
        return self._count(piece.text)


def _key(around: Surroundings) -> Key:
    return around.root, around.path


def _holds(piece: Piece, around: Surroundings, near: Sequence[str]) -> bool:
    """Whether a piece of the cursor's file shows the definition that the cursor is in, or lines near it."""
    if piece.kind in ("outline", "enclosing"):
        return False
    named = bool(piece.name) and any(scope.name == piece.name.split(".")[-1] for scope in around.chain)
    if near:
        rows = [bare for row in piece.text.split("\n") if (bare := row.strip())][:_TELLING]
        return named or any(near[at : at + len(rows)] == rows for at in range(len(near) - len(rows) + 1))
    return named or piece.start_line - NEAR <= around.line < piece.end_line + NEAR


def _older(piece: Piece, wanted: Sequence[Piece]) -> bool:
    """Whether `wanted` holds a text of the same thing: two versions of one definition would contradict."""
    return any((p.path, p.kind, p.name) == (piece.path, piece.kind, piece.name) and p.name for p in wanted)
