"""P3: what other files do that resembles what is done here.

the enclosing function ─→ its callers, its namesakes in sibling types, functions with such a signature
names near the cursor  ─→ a few lines around their uses, far parts of the own file included
lines above the cursor ─→ stretches that hold the same rare words, with what follows there
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from daemon.context.definitions import bases
from daemon.context.focus import Focus
from daemon.context.oneline import WORD
from daemon.context.pieces import piece
from daemon.context.referenced import Referenced
from daemon.context.view import View, dedent
from daemon.surroundings import Piece, PieceKind
from indexer import rank, similarity
from indexer.answers import Place, Use

_ABOVE, _BELOW = 2, 3
"""Lines shown around a use."""
_USE = 0.7
"""Importance of a use, as a part of its name's weight."""
_USES = 2
_NAMES = 4
"""Names whose uses are looked for."""
_KIN = 6
_BODY = 16
"""Lines shown of a sibling or of a similar function."""
_QUERY, _BEFORE, _AFTER = 8, 2, 7
"""Lines above the cursor that are searched for; lines shown before and after where the best match ends."""
_SEARCHED = 4
_LIKENESS = 0.15
"""Least share of words in common."""


def pieces(focus: Focus, view: View, found: Referenced) -> list[Piece]:
    """All candidates of the tier. The heaviest names come first in each kind."""
    names = _names(found)
    made = [*_callers(focus, view), *_siblings(focus, view), *_similar(focus, view), *_texts(focus, view)]
    for name, weight in names:
        for use in view.uses(name, _USES):
            made += _use(use, weight, view)
    return made


def _names(found: Referenced) -> list[tuple[str, float]]:
    """Names whose uses are worth showing: what was resolved, the heaviest first."""
    weights: dict[str, float] = {}
    for one in found.definitions.values():
        name = one.place.symbol.name
        if one.distance == 1:
            weights[name] = max(weights.get(name, 0.0), one.weight)
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return ordered[:_NAMES]


def _callers(focus: Focus, view: View) -> Iterator[Piece]:
    scope = focus.callable
    if scope is not None and not scope.name.startswith("__"):
        for use in view.uses(scope.name, _USES):
            if use.reference.role == "call":
                yield from _use(use, 0.5, view)


def _use(use: Use, weight: float, view: View) -> Iterator[Piece]:
    """Some lines around a use, not beyond the definition that holds it."""
    line, inside = use.reference.line, use.inside
    start, end = line - _ABOVE, line + _BELOW
    if inside is not None:
        start, end = max(start, inside.span.start_line), min(end, inside.span.end_line)
    text = view.cut(use.path, start, end)
    if use.reference.name not in text:
        return
    role = 1.0 if use.reference.role == "call" else 0.7
    importance = _USE * weight * role * (0.6 + 0.4 * rank.nearness(view.path, use.path))
    lines, name = (max(0, start), end), use.reference.name
    yield from _piece("caller", use.path, lines, text, view, importance=importance, name=name)


def _siblings(focus: Focus, view: View) -> Iterator[Piece]:
    """Functions of the same name in types of the same base, or beside this file."""
    scope, holder = focus.callable, focus.holder
    if scope is None or holder is None:
        return
    places = [p for p in view.definitions(scope.name) if p.symbol.parent >= 0]
    derived = bases(holder.signature, holder.name)[:2] if places else []
    kin = {u.path for base in derived for u in view.uses(base, _KIN) if u.reference.role in ("base", "type")}
    folder = view.path.rpartition("/")[0]
    shown = 0
    for place in sorted(places, key=lambda p: (p.path not in kin, p.path, p.number)):
        related = 0.9 if place.path in kin else 0.5 if place.path.rpartition("/")[0] == folder else 0.0
        if related and shown < _USES:
            shown += 1
            yield from _body(place, related, "sibling", view)


def _similar(focus: Focus, view: View) -> Iterator[Piece]:
    scope = focus.callable
    bands = similarity.query_bands(scope.signature) if scope else b""
    for place in view.similar(bands, _USES) if bands else ():
        if place.score >= 0.25:
            yield from _body(place, 0.9 * place.score, "similar", view)


def _body(place: Place, importance: float, kind: PieceKind, view: View) -> Iterator[Piece]:
    span = place.symbol.span
    end = min(span.end_line, span.start_line + _BODY)
    text = view.cut(place.path, span.start_line, end)
    lines, name = (span.start_line, end), place.symbol.qualified
    yield from _piece(kind, place.path, lines, text, view, importance=importance, name=name)


def _texts(focus: Focus, view: View) -> Iterator[Piece]:
    """Where else lines like those above the cursor stand, and how they go on there."""
    line = focus.around.line
    near = [text for text in focus.lines[max(0, line - _QUERY) : line + 1] if text.strip()]
    words = _words(near)
    if len(words) < 4:
        return
    query = " ".join(reversed([word for text in near for word in WORD.findall(text)]))
    for snippet in view.search(query, _SEARCHED):
        rows = snippet.text.split("\n")
        place, likeness = _best(rows, words, len(near))
        if likeness < _LIKENESS:
            continue
        start, end = max(0, place - _BEFORE), min(len(rows), place + _AFTER)
        text = dedent("\n".join(rows[start:end]))
        at = snippet.start_line + start
        lines = at, at + end - start
        yield from _piece("text", snippet.path, lines, text, view, importance=2 * likeness)


def _best(rows: Sequence[str], words: set[str], height: int) -> tuple[int, float]:
    """Line behind the stretch of `height` lines that shares most words, and how alike it is: words in common
    by all words, those of the stretch counted once a line (a cheap Jaccard index)."""
    each = [set(WORD.findall(row)) for row in rows]
    sizes = list(accumulate((len(found) for found in each), initial=0))
    common = [found & words for found in each]
    best, likeness = 0, 0.0
    for end in range(1, len(rows) + 1):
        start = max(0, end - height)
        if not common[end - 1]:
            continue
        shared = len(set().union(*common[start:end]))
        share = shared / (len(words) + sizes[end] - sizes[start] - shared)
        if share > likeness:
            best, likeness = end, share
    return best, likeness


def _words(rows: Iterable[str]) -> set[str]:
    return {word for row in rows for word in WORD.findall(row)}


def _piece(
    kind: PieceKind,
    path: str,
    lines: tuple[int, int],
    text: str,
    view: View,
    *,
    importance: float,
    name: str = "",
) -> Iterator[Piece]:
    distance = 1 if path in view.edges() else 2
    return piece(kind, path, lines, text, tier="P3", importance=importance, name=name, distance=distance)
