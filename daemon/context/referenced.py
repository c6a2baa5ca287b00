"""P2: the types and functions that the text near the cursor names, of each only the part referred to.

    name → the file's imports → definitions there → outline of a type, head of a function
         ↘ nothing imported: an edge of the graph, the same folder, or there is only one

A name that many files define is only followed where one of these backs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from daemon.context.focus import MOST_NAMES, Focus
from daemon.context.oneline import WORD
from daemon.context.view import View
from indexer import rank
from indexer.answers import Place
from indexer.render import TYPES, VALUES

_BY_IMPORT, _BY_PACKAGE, _BY_EDGE, _ALONE = 1.0, 0.9, 0.8, 0.6
_OF_TYPE = 0.9
"""Backing of a member whose type is referenced itself."""
_SECOND = 0.15
"""Weight of a type named by a definition that was found, as a part of that one's."""
_MOST_SECOND = 6
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
    own = rank.is_test(view.path)
    places = [p for p in view.definitions(name) if own or not rank.is_test(p.path)]
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
