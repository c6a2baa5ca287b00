"""P2: the types and functions that the text near the cursor names, of each only the part referred to.

    name → the file's imports → definitions there → outline of a type, head of a function
         ↘ nothing imported: an edge of the graph, the same folder, or there is only one

A name that many files define is only followed where one of these backs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from daemon.context.condense import MOST_MEMBERS, brief, named
from daemon.context.focus import MOST_NAMES, Focus
from daemon.context.oneline import WORD
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
_BY_IMPORT, _BY_PACKAGE, _BY_EDGE, _ALONE = 1.0, 0.9, 0.8, 0.6
_MAIN = 0.6
"""Weight from which on a type is told in full; of others names must do."""
_FEW_MEMBERS = 4
_OF_TYPE = 0.9
"""Backing of a member whose type is referenced itself."""
_SECOND = 0.15
"""Weight of a type named by a definition that was found, as a part of that one's."""
_MOST = 18
"""Definitions that become pieces."""
_MOST_SECOND = 6
_MOST_BASES = 4
"""Words behind a type's name that may be types it is derived from."""
_MODULE = 0.8
"""Importance of a file imported as a whole, as a part of its name's weight."""
_KINDS = {"type": 0.9, "function": 0.9, "method": 0.8, "constructor": 0.6, "macro": 0.7, "constant": 0.6}
_PACKAGES = ("__init__.", "index.", "mod.", "lib.")


@dataclass(frozen=True)
class Found:
    """A definition, how much its name counts times how well it is backed, and its distance in steps."""

    place: Place
    weight: float
    distance: int = 1


@dataclass
class Referenced:
    """Definitions that belong to a cursor, by (path, number), and files imported as a whole by path."""

    definitions: dict[tuple[str, int], Found]
    modules: dict[str, float]

    def add(self, found: Found) -> None:
        """Remember, the heavier weight wins."""
        key = found.place.path, found.place.number
        known = self.definitions.get(key)
        if known is None or known.weight < found.weight:
            self.definitions[key] = found


def resolve(focus: Focus, view: View) -> Referenced:
    """What the names near the cursor mean."""
    found = Referenced({}, {})
    imported = imported_from(view)
    external = {n for n, paths in imported.items() if not any(paths)}
    own = {symbol.name for symbol in view.own() if symbol.parent < 0}
    names = [n for n in focus.weights if n not in external and n not in own]
    taken = [n for n in names if n in imported][:MOST_NAMES]
    for name in taken:
        _follow(name, focus.weights[name], imported[name], view, found)
    others = [n for n in names if n not in imported][: MOST_NAMES // 2]
    edges = view.edges()
    types = {(p, n) for p, n in found.definitions}
    for name in others:
        for place, backing in _backed(name, view, edges, types)[:2]:
            found.add(Found(place, focus.weights[name] * backing))
    _second(found, view, edges)
    return found


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


def imported_from(view: View) -> dict[str, list[str]]:
    """Imported name → files it may come from, empty strings for what is outside the root."""
    known: dict[str, list[str]] = {}
    for item, target in view.imports():
        last = item.module.replace("\\", ".").replace("/", ".").replace("::", ".").rpartition(".")[2]
        for name in item.names or (last,):
            known.setdefault(name.rpartition(".")[2], []).append(target)
    return known


def _follow(name: str, weight: float, targets: list[str], view: View, found: Referenced) -> None:
    """An imported name: its definition in the file it is imported from, or where that one has it from."""
    ranked = []
    places = [p for p in view.definitions(name) if p.symbol.parent < 0]
    for place in places:
        backing = _import_backing(place.path, targets, view)
        if not backing and len(places) == 1:
            backing = _ALONE
        if backing:
            ranked.append((backing, place))
    if ranked:
        best = max(backing for backing, _ in ranked)
        for backing, place in ranked[:3]:
            if backing == best:
                found.add(Found(place, weight * backing))
        return
    for target in targets:
        folder, _, file = target.rpartition("/")
        if file.split(".", 1)[0] == name or folder.rpartition("/")[2] == name:
            found.modules[target] = max(weight, found.modules.get(target, 0.0))


def _import_backing(path: str, targets: Iterable[str], view: View) -> float:
    best = 0.0
    for target in targets:
        folder, _, file = target.rpartition("/")
        if path == target:
            best = _BY_IMPORT
        elif file.startswith(_PACKAGES) and path.startswith(f"{folder}/" if folder else ""):
            best = max(best, _BY_PACKAGE)
    return best or (_BY_EDGE if path in view.edges() else 0.0)


def _backed(
    name: str, view: View, edges: Mapping[str, float], types: set[tuple[str, int]]
) -> list[tuple[Place, float]]:
    """Definitions of a name that is not imported, with how well each is backed, the best first."""
    places = view.definitions(name)
    folder = view.path.rpartition("/")[0]
    ranked = []
    for place in places:
        if (place.path, place.symbol.parent) in types:
            ranked.append((place, _OF_TYPE))
        elif place.symbol.kind in VALUES and place.symbol.parent >= 0:
            continue  # a field's name alone says little about whose it is
        elif place.path in edges:
            ranked.append((place, _BY_EDGE))
        elif len(places) == 1 or (place.path.rpartition("/")[0] == folder and place.symbol.kind in TYPES):
            ranked.append((place, _ALONE))
    ranked.sort(key=lambda r: -r[1])
    return ranked


def _second(found: Referenced, view: View, edges: Mapping[str, float]) -> None:
    """Types that the signatures of what was found name: what a call returns, what a parameter takes."""
    wanted: dict[str, Found] = {}
    known = {f.place.symbol.name for f in found.definitions.values()}
    for one in sorted(found.definitions.values(), key=lambda f: -f.weight):
        signature = one.place.symbol.signature
        for word in WORD.findall(signature[signature.find("(") + 1 :]):
            if word[:1].isupper() and word not in known:
                wanted.setdefault(word, one)
    for word, source in list(wanted.items())[:_MOST_SECOND]:
        places = [p for p in view.definitions(word) if p.symbol.kind in TYPES or p.symbol.kind == "type"]
        for place in places:
            if place.path == source.place.path or place.path in edges or len(places) == 1:
                found.add(Found(place, source.weight * _SECOND, source.distance + 1))
                break


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
        also = _inherited(place, view)
        return _piece(one, brief(outline, focus.text, most, comment=focus.comment, also=also), "outline")
    return _piece(one, headline(place.symbol, None, place.path), "definition")


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
