"""The pieces of P2: a type in outline, what is short in whole, else a head, each in its own language."""

from __future__ import annotations

import re

from daemon.context.condense import MOST_MEMBERS, brief, named
from daemon.context.focus import Focus
from daemon.context.oneline import WORD
from daemon.context.referenced import Found, Referenced
from daemon.context.view import View
from daemon.surroundings import Piece, PieceKind
from indexer import render
from indexer.answers import Place
from indexer.languages import registry
from indexer.records import Symbol
from indexer.render import CALLABLES, TYPES, VALUES, Style

SHORT = 12
"""Lines of a definition that is shown in whole."""
_HEAVY = 0.3
"""Weight from which on the text of a short definition is worth reading."""
_MAIN = 0.6
"""Weight from which on a type is told in full; of others names must do."""
_FEW_MEMBERS = 4
_MOST = 18
"""Definitions that become pieces."""
_MOST_BASES = 4
"""Words behind a type's name that may be types it is derived from."""
_MODULE = 0.8
"""Importance of a file imported as a whole, as a part of its name's weight."""
_KINDS = {"type": 0.9, "function": 0.9, "method": 0.8, "constructor": 0.6, "macro": 0.7, "constant": 0.6}
_MORE = re.compile(r" \d+ more$", re.MULTILINE)


def pieces(focus: Focus, view: View, found: Referenced) -> list[Piece]:
    """The definitions and outlines as text."""
    made = []
    members: dict[tuple[str, int], list[Found]] = {}
    heaviest = sorted(found.definitions.values(), key=lambda f: (-f.weight, f.place.path, f.place.number))
    for one in heaviest[:_MOST]:
        path = one.place.path
        parent = one.place.symbol.parent
        if parent >= 0 and (path, parent) in found.definitions and _outlined(one.place, view):
            continue
        if parent >= 0:
            members.setdefault((path, parent), []).append(one)
        else:
            made.append(_definition(one, focus, view))
    made += [_members(path, parent, group, view) for (path, parent), group in members.items()]
    for path, weight in found.modules.items():
        made.append(_module(path, weight, focus, view))
    return [piece for piece in made if piece is not None]


def _importance(symbol: Symbol, weight: float) -> float:
    kind = 1.0 if symbol.kind in TYPES else _KINDS.get(symbol.kind, 0.5)
    return min(1.0, weight * kind * (1.0 if symbol.exported else 0.8))


def _piece(one: Found, text: str, kind: PieceKind) -> Piece | None:
    symbol = one.place.symbol
    if not text:
        return None
    return Piece(
        tier="P2",
        kind=kind,
        path=one.place.path,
        text=text,
        name=symbol.qualified,
        start_line=symbol.span.start_line,
        end_line=symbol.span.end_line,
        importance=_importance(symbol, one.weight),
        distance=one.distance,
    )


def _definition(one: Found, focus: Focus, view: View) -> Piece | None:
    """A definition at the top of a file: a type's outline, what is short in whole, else its head."""
    place, span = one.place, one.place.symbol.span
    if span.end_line - span.start_line <= SHORT and one.weight >= _HEAVY:
        text = view.cut(place.path, span.start_line, span.end_line)
        if text:
            return _piece(one, text, "definition")
    outline = view.outline(place.path, place.number) if place.symbol.kind not in CALLABLES else ""
    if outline:
        most = MOST_MEMBERS if one.weight >= _MAIN else _FEW_MEMBERS
        also = [*_untold(place, outline, view), *_inherited(place, view)]
        return _piece(one, brief(outline, focus.text, most, comment=focus.comment, also=also), "outline")
    return _piece(one, headline(place.symbol, None, place.path), "definition")


def _untold(place: Place, outline: str, view: View) -> list[str]:
    """Names of the members that an outline only counts."""
    if not _MORE.search(outline):
        return []
    return [s.name for s in view.symbols(place.path) if s.parent == place.number]


def bases(head: str, name: str) -> list[str]:
    """Words behind the name of the type that `head` declares: among them the types it is derived from."""
    return [word for word in WORD.findall(head[head.find(name) + len(name) :]) if len(word) > 2]


def _inherited(place: Place, view: View, steps: int = 2) -> list[str]:
    """Names of the members that a type has from the types it is derived from."""
    found: list[str] = []
    for base in bases(place.symbol.signature, place.symbol.name)[:_MOST_BASES] if steps else ():
        for other in view.definitions(base)[:1]:
            if other.symbol.kind in TYPES and base != place.symbol.name:
                found += named(view.outline(other.path, other.number))
                found += _inherited(other, view, steps - 1)
    return found


def _outlined(place: Place, view: View) -> bool:
    """Whether its type's outline shows a member."""
    return place.symbol.name in WORD.findall(view.outline(place.path, place.symbol.parent))


def _members(path: str, number: int, group: list[Found], view: View) -> Piece | None:
    """Some members of one type below its head."""
    symbols = view.symbols(path)
    if not 0 <= number < len(symbols):
        return None
    parent = symbols[number]
    group.sort(key=lambda f: f.place.number)
    style = _style(path)
    lines = [headline(one.place.symbol, parent, path) for one in group]
    pad = style.indent if style else "    "
    body = "\n".join(pad + line.replace("\n", f"\n{pad}") for line in lines if line)
    if not body:
        return None
    head = (render.head(parent, b"", style) + style.open) if style else parent.signature
    text = f"{head}\n{body}" + (f"\n{style.close}" if style and style.close else "")
    best = max(group, key=lambda f: f.weight)
    return _piece(best, text, "definition")


def headline(symbol: Symbol, parent: Symbol | None, path: str) -> str:
    """A definition without its body, in its own language, its documentation's first sentence with it."""
    style = _style(path)
    if style is None:
        return symbol.signature
    head = render.head(symbol, b"", style)
    ending = render.end(symbol, head, parent.kind if parent else "", b"", style)
    doc = render.doc(symbol.doc, style)
    head = head or symbol.signature
    ending = "" if ending is None or "{head}" in ending or symbol.kind in VALUES else ending
    if doc and style.doc_inside and ending.endswith(style.empty):
        return f"{head}{ending.removesuffix(style.empty)}{style.open} {doc}"
    return f"{doc}\n{head}{ending}" if doc and not style.doc_inside else f"{head}{ending}"


def _style(path: str) -> Style | None:
    language = registry.language_for(path, b"")
    return render.styles().get(language.name) if language else None


def _module(path: str, weight: float, focus: Focus, view: View) -> Piece | None:
    text = brief(view.outline(path, -1), focus.text, comment=focus.comment)
    if not text:
        return None
    importance = min(1.0, weight * _MODULE)
    return Piece(tier="P2", kind="outline", path=path, text=text, importance=importance, distance=1)
