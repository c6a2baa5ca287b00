"""Captured spans → definitions with what belongs to each, by one walk over them in order of their starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from indexer.records import SymbolKind

Range = tuple[int, int]
_WRAP, _PLAIN, _CONTAINER, _BODY, _VALUE, _DEFINITION, _NAME, _DOC, _SCOPE, _ACCESS = range(10)
"""In this order when spans are equal: what may be outside comes first; a body may be one definition."""
_AREAS: Final = frozenset((_WRAP, _PLAIN, _CONTAINER, _DEFINITION))
_TAGS: Final = {
    "wrap": _WRAP, "wrap.plain": _PLAIN, "container": _CONTAINER, "name": _NAME, "body": _BODY,
    "value": _VALUE, "doc": _DOC, "scope": _SCOPE, "access": _ACCESS,
}  # fmt: skip
_KINDS: Final[tuple[SymbolKind, ...]] = get_args(SymbolKind)


class Definition:
    """One captured definition. `start`, `end` include the wraps around it, the node_ ones do not."""

    __slots__ = (
        "access", "body", "doc", "end", "first", "kind", "names", "node_end", "node_start", "parent",
        "prefix", "scope", "start", "value",
    )  # fmt: skip

    def __init__(self, kind: SymbolKind, start: int, end: int) -> None:
        self.kind: SymbolKind = kind
        self.start = self.node_start = start
        self.end = self.node_end = end
        self.first = True
        """Nothing of its wraps belongs to an earlier definition."""
        self.parent = -1
        """Number of the enclosing definition among those of the file."""
        self.names: list[Range] = []
        self.body: Range | None = None
        self.value: Range | None = None
        self.doc: Range | None = None
        self.scope: Range | None = None
        self.prefix: tuple[Range, ...] = ()
        """Text of the wraps that belongs before the signature."""
        self.access = ""


class _Area:
    """Something with an inside: a wrap, a container, a definition."""

    __slots__ = (
        "access",
        "definition",
        "end",
        "first",
        "inner",
        "number",
        "outside",
        "prefix",
        "scope",
        "start",
        "tag",
    )

    def __init__(self, tag: int, start: int, end: int) -> None:
        self.tag = tag
        self.start, self.end = start, end
        self.outside: Range = (start, end)
        self.prefix: tuple[Range, ...] = ()
        self.first = True
        self.inner = -1
        self.number = -1
        self.access = ""
        self.scope: Range | None = None
        self.definition: Definition | None = None


def nest(source: bytes, spans: Mapping[str, Sequence[Range]]) -> list[Definition]:
    """Definitions in order of their starts, outer before inner, from capture name → ranges."""
    found: list[Definition] = []
    stack: list[_Area] = []
    for start, negative_end, tag, kind in _events(spans):
        while stack and stack[-1].end <= start:
            stack.pop()
        if tag in _AREAS:
            area = _enter(source, stack[-1] if stack else None, tag, (start, -negative_end))
            if tag == _DEFINITION:
                area.definition = _define(area, stack, _KINDS[kind])
                area.number = len(found)
                found.append(area.definition)
            stack.append(area)
        elif stack:
            _attach(source, stack, tag, (start, -negative_end))
    return found


def _events(spans: Mapping[str, Sequence[Range]]) -> list[tuple[int, int, int, int]]:
    events = [(s, -e, tag, 0) for name, tag in _TAGS.items() for s, e in spans.get(name, ())]
    kinds: dict[Range, int] = {}
    for number in range(len(_KINDS) - 1, -1, -1):
        for at in spans.get(f"definition.{_KINDS[number]}", ()):
            kinds[at] = number
    events += [(s, -e, _DEFINITION, number) for (s, e), number in kinds.items()]
    events.sort()
    return events


def _enter(source: bytes, outer: _Area | None, tag: int, at: Range) -> _Area:
    start = at[0]
    area = _Area(tag, *at)
    if outer is None or outer.tag > _PLAIN:
        return area
    if outer.inner < 0:
        outer.inner = start
    if source[outer.start : outer.inner].rstrip().endswith(b"("):
        return area
    area.first = outer.first and outer.inner == start
    area.outside = outer.outside
    area.prefix = outer.prefix
    if outer.tag == _WRAP and outer.inner > outer.start:
        area.prefix = (*outer.prefix, (outer.start, outer.inner))
    return area


def _define(area: _Area, stack: Sequence[_Area], kind: SymbolKind) -> Definition:
    made = Definition(kind, area.start, area.end)
    made.start, made.end = area.outside
    made.first, made.prefix = area.first, area.prefix
    for outer in reversed(stack):
        if outer.tag == _CONTAINER and made.scope is None:
            made.scope = outer.scope
            made.access = made.access or outer.access
        elif outer.tag == _DEFINITION:
            made.parent = outer.number
            made.access = made.access or outer.access
            break
    return made


def _attach(source: bytes, stack: Sequence[_Area], tag: int, at: Range) -> None:
    area = next((a for a in reversed(stack) if a.tag > _PLAIN), stack[-1])
    definition = area.definition
    if tag == _SCOPE and definition is None:
        area.scope = at
    elif tag == _ACCESS:
        area.access = source[at[0] : at[1]].decode("utf-8", "replace").strip(" :\t\r\n")
    elif definition is None:
        return
    elif tag == _NAME:
        definition.names.append(at)
    elif tag == _BODY:
        definition.body = definition.body or at
    elif tag == _VALUE:
        definition.value = definition.value or at
    elif tag == _DOC:
        definition.doc = definition.doc or at
    else:
        definition.scope = at
