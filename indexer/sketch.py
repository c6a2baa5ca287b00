"""What an outline can show of a file: its symbols as a tree of items with head, ending and rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from indexer import render
from indexer.records import ParsedFile, Symbol
from indexer.render import CALLABLES, HOLDERS, VALUES, Style

DEEPEST = 5
"""Types nested deeper are not shown."""
GROUP = 6
"""So many members of one rank of each type come before any further ones."""
HOLDER, CONSTRUCTOR, IMPORT, PUBLIC, DATA, SPECIAL, DOC, PRIVATE = range(8)
"""Ranks: what is lower is left out later."""


@dataclass(slots=True)
class Item:
    """One symbol as it may be shown. `index` is negative for a stand-in of a type of another file."""

    index: int
    symbol: Symbol
    head: str
    end: str
    rank: int
    depth: int
    group: int = 0
    doc: str = ""
    detached: bool = False
    children: list[Item] = field(default_factory=list)


def sketch(source: bytes, parsed: ParsedFile, style: Style) -> tuple[list[Item], list[Item]]:
    """Symbols at the top, and all that can be shown. What stands inside a function never is."""
    roots: list[Item] = []
    items: dict[int, Item] = {}
    seen: set[tuple[int, str]] = set()
    symbols = parsed.symbols
    early = [i for i, s in enumerate(symbols) if s.parent < i]
    late = [i for i, s in enumerate(symbols) if s.parent >= i]
    for index in (*early, *late):
        symbol = symbols[index]
        parent = items.get(symbol.parent)
        detached = parent is not None and symbol.span.start_byte >= parent.symbol.span.end_byte
        if parent and detached and parent.symbol.kind not in HOLDERS:
            parent, detached = None, False  # a table of functions (Lua)
        elif symbol.parent >= 0 and not _holds(parent, symbol, style):
            continue
        if style.hidden and render.pattern(style.hidden).fullmatch(symbol.name):
            continue
        text = render.head(symbol, source, style)
        ending = render.end(
            symbol, text, parent.symbol.kind if parent and not detached else "", source, style
        )
        siblings = parent.children if parent else roots
        if not text or ending is None or (symbol.parent, text) in seen or _alias(text, siblings, style):
            continue
        if "{head}" in ending:
            text, ending = ending.replace("{head}", text), ""
        seen.add((symbol.parent, text))
        item = Item(index, symbol, text, ending, rank(symbol, parent), parent.depth + 1 if parent else 0)
        item.doc = render.doc(symbol.doc, style)
        item.detached = detached
        if parent is None and style.detached and "." in symbol.qualified:
            parent = _stranger(symbol, roots, style)
        (parent.children if parent else roots).append(item)
        items[index] = item
    _group(roots)
    return roots, [items[i] for i in sorted(items)]


def _alias(text: str, siblings: Sequence[Item], style: Style) -> bool:
    """Whether a head only names the type before it once more: then that type tells it."""
    match = render.pattern(style.alias).match(text) if style.alias else None
    if match is None or not siblings or siblings[-1].symbol.kind not in HOLDERS:
        return False
    last = siblings[-1]
    own = f" {last.symbol.name};"
    last.end = f" {match[1]};" if last.end == own else f"{last.end[:-1]}, {match[1]};"
    return True


def rank(symbol: Symbol, parent: Item | None) -> int:
    """How early a symbol is left out; never before the type that holds it."""
    if not symbol.exported:
        own = PRIVATE
    elif symbol.kind in HOLDERS:
        own = HOLDER
    elif symbol.kind == "constructor":
        own = CONSTRUCTOR
    elif symbol.name.startswith("__"):
        own = SPECIAL
    else:
        own = PUBLIC if symbol.kind in CALLABLES or symbol.kind in ("property", "member") else DATA
    return own if parent is None else max(own, parent.rank)


def _holds(parent: Item | None, symbol: Symbol, style: Style) -> bool:
    """Whether a symbol is a member to show: neither in a function nor told by a head (`record P(int x)`)."""
    if parent is None or parent.depth >= DEEPEST:
        return False
    if parent.symbol.kind not in HOLDERS and not (parent.symbol.kind == "type" and style.type_open):
        return False
    if symbol.kind not in VALUES:
        return True
    last = parent.children[-1] if parent.children else parent
    inside = last.symbol.kind == "constructor" and symbol.name_start < last.symbol.span.end_byte
    return symbol.signature not in (last if inside else parent).symbol.signature


def _stranger(symbol: Symbol, roots: list[Item], style: Style) -> Item:
    """What stands for a type of another file that gets members here (`impl`, `extension`)."""
    scope = symbol.qualified.rpartition(".")[0]
    last = roots[-1] if roots else None
    if last is None or last.index >= 0 or last.symbol.qualified != scope:
        kind = msgspec.structs.replace(symbol, kind="namespace", name=scope, qualified=scope, doc="")
        head = style.detached.replace("{name}", scope.rpartition(".")[2]).removesuffix(style.open)
        last = Item(-1 - len(roots), kind, head, "", rank(symbol, None), 0)
        roots.append(last)
    return last


def _group(items: Sequence[Item]) -> None:
    """Number the members of each rank, so that no type is told in full before another begins."""
    counts = [0] * (PRIVATE + 1)
    for item in items:
        item.group = counts[item.rank] // GROUP
        counts[item.rank] += 1
        if item.children:
            _group(item.children)
