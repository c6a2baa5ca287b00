"""What a cursor is about: the names near it, how much each counts, and what the window shows already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from daemon.context.oneline import WORD
from daemon.surroundings import Scope, Surroundings
from indexer.languages import registry
from indexer.render import CALLABLES

MOST_NAMES = 20
"""Names that are looked up."""
_SHORTEST = 3
"""A shorter name says too little to be looked up, unless it is imported."""
_FADING = 10.0
"""Names nearer by so many places count about twice as much."""
_SIGNED = 0.7
"""Least weight of a name in the enclosing signature."""
_IMPORTED = 0.15
"""Least weight of an imported name: the file uses it somewhere."""
_MOST_IMPORTED = 64


@dataclass(frozen=True)
class Focus:
    """One cursor. Made by `focus`."""

    around: Surroundings
    text: str
    """The whole text of the file, or as much of it as is known."""
    lines: Sequence[str]
    shown: tuple[int, int]
    """Lines that the prompt's window shows, end exclusive."""
    weights: Mapping[str, float]
    """Name → 0 to 1, the heaviest first."""

    @property
    def comment(self) -> str:
        """What begins a comment in this language."""
        found = registry.find(self.around.language)
        return (found.line_comment if found else "") or "#"

    @property
    def callable(self) -> Scope | None:
        """The innermost function around the cursor."""
        return next((s for s in reversed(self.around.chain) if s.kind in CALLABLES), None)

    @property
    def holder(self) -> Scope | None:
        """The innermost type around the cursor."""
        return next((s for s in reversed(self.around.chain) if s.kind not in CALLABLES), None)

    def visible(self, start: int, end: int) -> bool:
        """Whether any of these lines of the own file is in the window."""
        return start < self.shown[1] and end > self.shown[0]


def focus(around: Surroundings, text: str, shown: tuple[int, int], indexed: Iterable[str] = ()) -> Focus:
    """Weigh the names: by how near they stand, in the enclosing signatures, and by their imports. A name that
    is imported and nowhere used yet is very likely what is about to be written. `indexed`: names that the
    file imported when it was indexed, should the text not tell."""
    weights = {name: 1.0 / (1.0 + place / _FADING) for place, name in enumerate(around.names)}
    weights = {name: weight for name, weight in weights.items() if len(name) >= _SHORTEST}
    for scope in around.chain[-2:]:
        _raise(weights, WORD.findall(scope.signature), _SIGNED)
    imported = tuple(around.imports or indexed)[:_MOST_IMPORTED]
    _raise(weights, imported, _IMPORTED)
    _raise(weights, (name for name in imported if _unused(name, text)), 1.0)
    own = {scope.name for scope in around.chain}
    ordered = sorted((n for n in weights if n not in own), key=lambda n: (-weights[n], n))
    return Focus(around, text, text.split("\n"), shown, {name: weights[name] for name in ordered})


def _raise(weights: dict[str, float], names: Iterable[str], least: float) -> None:
    for name in names:
        weights[name] = max(weights.get(name, 0.0), least)


def _unused(name: str, text: str) -> bool:
    """Whether a name stands in a text only once."""
    found = at = 0
    while (at := text.find(name, at)) >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(name) : at + len(name) + 1]
        found += not (before.isalnum() or before == "_" or after.isalnum() or after == "_")
        if found > 1:
            return False
        at += len(name)
    return True
