"""Everything that could stand beside a cursor, tier by tier, as pieces that say where they are from.

    Surroundings + text + shown lines → Focus ─┬→ P1 enclosing definitions, condensed
    index, unsaved buffers            → View  ─┼→ P2 referenced ─→ P3 related
    history, extras                           ─┴→ P4 past

Nothing here chooses: budget.py does. No piece holds a line that the window shows, none is of a denied file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from daemon.context import definitions, elsewhere, past, referenced, related
from daemon.context.condense import brief, condense
from daemon.context.focus import Focus, focus
from daemon.context.oneline import IMPORT, import_lines
from daemon.context.pieces import piece
from daemon.context.view import Overlay, View, dedent
from daemon.documents.document import Region
from daemon.nouns import Extra
from daemon.readers import Finder
from daemon.surroundings import Piece, Scope, Surroundings
from indexer.deny import denied
from indexer.errors import IndexDamaged
from indexer.records import Symbol
from indexer.render import CALLABLES

_ENCLOSING, _TYPE, _IMPORTS, _FILE = 1.0, 0.8, 0.3, 0.5
"""Importance of the enclosing function, the type around it, and the rest of the file."""
_BODY = " :{;}"
"""What may stand at the end of a head."""
_LONGEST, _MOST = 400, 200
"""Lines of the enclosing function that are condensed, and of the result: more than its share of a prompt
holds. Where a brace is missing, a function seems to go on to the end of its file."""


class Tiers:
    """Candidates for any cursor. Reads the indexes through `readers`; `overlay` has the unsaved buffers. May
    be called from any thread."""

    def __init__(self, readers: Finder, overlay: Overlay) -> None:
        self._readers = readers
        self._overlay = overlay

    def candidates(
        self,
        around: Surroundings,
        text: str,
        shown: tuple[int, int],
        history: Sequence[Region] = (),
        extras: Sequence[Extra] = (),
    ) -> tuple[Piece, ...]:
        """Pieces in no particular order, the same for the same input. `text` is the file (or the window that
        a client sent), `shown` the lines of it that the prompt shows anyway, end exclusive. `history` is
        of this root. Without an index, or when it is damaged, what needs it is missing."""
        aim = focus(around, text, shown)
        view, made = self._view(around), []
        if view is not None and not denied(around.path):
            try:
                with view.together():
                    if not around.imports:
                        aim = focus(around, text, shown, referenced.imported_from(view))
                    made += self._indexed(aim, view)
            except IndexDamaged:
                view = None
        if view is None:
            made += _enclosing(aim)
        made += past.pieces(history, extras, aim)
        recency = past.recencies(history)
        recency.pop(around.path, None)  # whoever asks is there: that says nothing of its parts
        return tuple(_dated(p, recency) for p in made)

    def _view(self, around: Surroundings) -> View | None:
        if not around.root or not around.path:
            return None
        found = self._readers.find(str(PurePath(around.root) / around.path))
        if found is None:
            return None
        here = str(found.root), found.path
        return View(found.reader, *here, self._overlay.overlay(here))

    @staticmethod
    def _indexed(aim: Focus, view: View) -> list[Piece]:
        found = referenced.resolve(aim, view)
        return [
            *_enclosing(aim),
            *_own(aim, view),
            *elsewhere.pieces(aim),
            *definitions.pieces(aim, view, found),
            *related.pieces(aim, view, found),
        ]


def _dated(piece: Piece, recency: dict[str, float]) -> Piece:
    if piece.tier == "P4" or piece.path not in recency:
        return piece
    return msgspec.structs.replace(piece, recency=recency[piece.path])


def _enclosing(aim: Focus) -> Iterator[Piece]:
    """The enclosing function, condensed, as far as the window does not show it."""
    scope = aim.callable
    if scope is None:
        return
    for start, end in ((scope.start_line, min(scope.end_line, aim.shown[0])),
                       (max(scope.start_line, aim.shown[1]), scope.end_line)):  # fmt: skip
        rows = aim.lines[start : min(end, start + _LONGEST)]
        text = dedent(condense(rows, aim.weights, aim.comment, _MOST))
        own, name = aim.around.path, scope.name
        yield from piece("enclosing", own, (start, end), text, tier="P1", importance=_ENCLOSING, name=name)


def _own(aim: Focus, view: View) -> Iterator[Piece]:
    """The type around the cursor, and the file, in outline, without what the window shows."""
    path, holder, first = aim.around.path, aim.holder, max(0, aim.shown[0])
    taken = "\n".join(aim.lines[n] for n in sorted(import_lines(aim.lines)) if n < first)
    yield from piece("outline", path, (0, first), taken, tier="P2", importance=_IMPORTS, name="imports")
    number = _number(view.own(), holder) if holder else -1
    if holder and number >= 0 and (text := _told(aim, view.outline(path, number))):
        head, name = holder.start_line, holder.name
        yield from piece("outline", path, (head, head), text, tier="P2", importance=_TYPE, name=name)
    else:
        text = _told(aim, view.outline(path, -1))
        yield from piece("outline", path, (0, 0), text, tier="P2", importance=_FILE)


def _number(symbols: Sequence[Symbol], scope: Scope) -> int:
    """A scope's number among the file's symbols; of several with its name the nearest."""
    same = [i for i, s in enumerate(symbols) if s.name == scope.name and s.kind not in CALLABLES]
    return min(same, key=lambda i: abs(symbols[i].span.start_line - scope.start_line), default=-1)


def _told(aim: Focus, outline: str) -> str:
    return brief(_unseen(aim, outline), aim.text, comment=aim.comment)


def _unseen(aim: Focus, outline: str) -> str:
    """An outline without the lines that the window shows; empty when that leaves no more than heads."""
    if not outline:
        return ""
    seen = {_bare(line) for line in aim.lines[max(0, aim.shown[0]) : aim.shown[1]]}
    kept = [line for line in outline.split("\n") if _bare(line) not in seen and not IMPORT.match(line)]
    told = [line for line in kept if _bare(line)]
    return dedent("\n".join(kept)) if len(told) > 1 else ""


def _bare(line: str) -> str:
    """A line without what stands for a body."""
    text = line.partition(' """')[0].strip()
    return text.removesuffix("...").rstrip(_BODY)
