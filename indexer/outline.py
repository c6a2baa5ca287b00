"""Outlines: what a file or a type offers, as pseudo-code of its own language that its grammar accepts.

    ParsedFile + source → lines, each with a rank and a cost → the most useful ones within a budget → text

A line costs its bytes without blanks: close to tokens for code, and cheap. Ranks: lower is kept longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from indexer import render
from indexer.records import Outline, ParsedFile, Symbol
from indexer.render import CALLABLES, HOLDERS, TYPES, VALUES, Style

SHARE = 0.17
"""Part of what is summarised that an outline may take, in bytes without blanks."""
FLOOR = 240
"""Bytes that every outline may take."""
LEAN = 1500
"""Bytes beyond which the outline of a file leaves out what is private."""
FILE_CAP = 6000
TYPE_CAP = 3000
MEMBERS = 3
"""A type with fewer members has no outline of its own."""
DEEPEST = 5
"""Types nested deeper are not shown."""
GROUP = 6
"""So many members of one rank of each type come before any further ones."""
_BLANKS = b" \t\r\n\f"
_HOLDER, _CONSTRUCTOR, _IMPORT, _PUBLIC, _DATA, _SPECIAL, _DOC, _PRIVATE = range(8)


class Named(Protocol):
    """What is needed of a Language."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


@dataclass(slots=True)
class _Item:
    """One symbol as it may be shown."""

    index: int
    symbol: Symbol
    head: str
    end: str
    rank: int
    depth: int
    group: int = 0
    doc: str = ""
    detached: bool = False
    children: list[_Item] = field(default_factory=list)


def outline(source: bytes, parsed: ParsedFile, language: Named) -> tuple[Outline, ...]:
    """The file's outline, then one of each type with at least MEMBERS members. Empty without a known style.

    Costs about 20 µs per symbol. Equal input gives equal output.
    """
    style = render.styles().get(language.name)
    if style is None:
        return ()
    roots, items = _items(source, parsed, style)
    top = _top(source, parsed, style)
    weight = _weight(source)
    text = _write(source, roots, top, min(FILE_CAP, max(FLOOR, weight * SHARE)), style)
    found = [Outline(text=text)] if text else []
    for item in items:
        if item.symbol.kind in TYPES and len(item.children) >= MEMBERS:
            own = _weight(source[item.symbol.span.start_byte : item.symbol.span.end_byte])
            text = _write(source, [item], [], min(TYPE_CAP, max(FLOOR, own * SHARE)), style)
            found.append(Outline(text=text, symbol=item.index))
    return tuple(found)


def _weight(source: bytes) -> int:
    return len(source.translate(None, _BLANKS))


def _rank(symbol: Symbol, parent: _Item | None) -> int:
    """How early a symbol is left out; never before the type that holds it."""
    if not symbol.exported:
        own = _PRIVATE
    elif symbol.kind in HOLDERS:
        own = _HOLDER
    elif symbol.kind == "constructor":
        own = _CONSTRUCTOR
    elif symbol.name.startswith("__"):
        own = _SPECIAL
    else:
        own = _PUBLIC if symbol.kind in CALLABLES or symbol.kind in ("property", "member") else _DATA
    return own if parent is None else max(own, parent.rank)


def _items(source: bytes, parsed: ParsedFile, style: Style) -> tuple[list[_Item], list[_Item]]:
    """Symbols at the top, and all that can be shown. What stands inside a function never is."""
    roots: list[_Item] = []
    items: dict[int, _Item] = {}
    seen: set[tuple[int, str]] = set()
    symbols = parsed.symbols
    early = [i for i, s in enumerate(symbols) if s.parent < i]
    late = [i for i, s in enumerate(symbols) if s.parent >= i]
    for index in (*early, *late):
        symbol = symbols[index]
        parent = items.get(symbol.parent)
        if parent and parent.symbol.kind in VALUES and symbol.span.start_byte >= parent.symbol.span.end_byte:
            parent = None  # a table of functions (Lua)
        elif symbol.parent >= 0 and not _holds(parent, symbol):
            continue
        if style.hidden and render.pattern(style.hidden).fullmatch(symbol.name):
            continue
        text = render.head(symbol, source, style)
        ending = render.end(symbol, text, parent.symbol.kind if parent else "", source, style)
        if not text or ending is None or (symbol.parent, text) in seen:
            continue
        seen.add((symbol.parent, text))
        item = _Item(index, symbol, text, ending, _rank(symbol, parent), parent.depth + 1 if parent else 0)
        item.doc = render.doc(symbol.doc, style)
        item.detached = parent is not None and symbol.span.start_byte >= parent.symbol.span.end_byte
        if parent is None and style.detached and "." in symbol.qualified:
            parent = _stranger(symbol, roots, style)
        (parent.children if parent else roots).append(item)
        items[index] = item
    _group(roots)
    return roots, [items[i] for i in sorted(items)]


def _holds(parent: _Item | None, symbol: Symbol) -> bool:
    """Whether a symbol is a member to show: neither in a function nor told by a head (`record P(int x)`)."""
    if parent is None or parent.symbol.kind not in HOLDERS or parent.depth >= DEEPEST:
        return False
    if symbol.kind not in VALUES:
        return True
    last = parent.children[-1] if parent.children else parent
    inside = last.symbol.kind == "constructor" and symbol.name_start < last.symbol.span.end_byte
    return symbol.signature not in (last if inside else parent).symbol.signature


def _stranger(symbol: Symbol, roots: list[_Item], style: Style) -> _Item:
    """What stands for a type of another file that gets members here (`impl`, `extension`)."""
    scope = symbol.qualified.rpartition(".")[0]
    last = roots[-1] if roots else None
    if last is None or last.index >= 0 or last.symbol.qualified != scope:
        kind = msgspec.structs.replace(symbol, kind="namespace", name=scope, qualified=scope, doc="")
        head = style.detached.replace("{name}", scope.rpartition(".")[2]).removesuffix(style.open)
        rank = _rank(symbol, None)
        last = _Item(-1 - len(roots), kind, head, "", rank, 0)
        roots.append(last)
    return last


def _group(items: Sequence[_Item]) -> None:
    """Number the members of each rank, so that no type is told in full before another begins."""
    counts = [0] * (_PRIVATE + 1)
    for item in items:
        item.group = counts[item.rank] // GROUP
        counts[item.rank] += 1
        if item.children:
            _group(item.children)


def _top(source: bytes, parsed: ParsedFile, style: Style) -> list[tuple[int, str]]:
    """Lines above all symbols, with their ranks: package clause, the file's documentation, imports."""
    start = source[:8192].decode("utf-8", "replace")
    found = [render.pattern(head).search(start) for head in style.heads]
    lines = [(_HOLDER, match[0].strip()) for match in found if match]
    match = render.pattern(style.file_doc).search(start) if style.file_doc else None
    if match and (text := render.doc(match["doc"][:200], style)):
        lines.insert(0, (_CONSTRUCTOR, text))
    found_imports = render.imports(parsed.imports, style)
    lines += [(_IMPORT if i < GROUP else _DATA, line) for i, line in enumerate(found_imports)]
    return lines


def _write(
    source: bytes, roots: Sequence[_Item], top: Sequence[tuple[int, str]], budget: float, style: Style
) -> str:
    """The text of what fits into the budget."""
    lines, shown, documented = _select(roots, top, budget)
    out = [style.prologue] if style.prologue else []
    out += [line for i, (_, line) in enumerate(top) if i in lines]
    writer = _Writer(source, style, shown, documented, out)
    writer.members(roots, "")
    text = "\n".join(out)
    return f"{text}\n" if shown or lines else ""


def _select(
    roots: Sequence[_Item], top: Sequence[tuple[int, str]], budget: float
) -> tuple[set[int], set[int], set[int]]:
    """Which lines of the top, which symbols, and whose documentation are shown."""
    entries = [(rank, i // GROUP, len(line) + 1, 0, i) for i, (rank, line) in enumerate(top)]
    for item in _walk(roots):
        entries.append((item.rank, item.group, len(item.head) + len(item.end) + 2, 1, item.index))
        if item.doc:
            rank = _CONSTRUCTOR if item.rank == _HOLDER else max(_DOC, item.rank)
            entries.append((rank, item.group, len(item.doc), 2, item.index))
    chosen: tuple[set[int], set[int], set[int]] = (set(), set(), set())
    if top and sum(entry[2] for entry in entries) > LEAN:
        public = [entry for entry in entries if entry[0] != _PRIVATE]
        entries = public if len(public) > len(top) + MEMBERS else entries
    if sum(entry[2] for entry in entries) > budget:
        entries.sort(key=lambda e: (e[0], e[1]))
    for _, _, cost, what, index in entries:
        if cost <= budget:
            budget -= cost
            chosen[what].add(index)
    return chosen


def _walk(items: Iterable[_Item]) -> Iterable[_Item]:
    for item in items:
        yield item
        yield from _walk(item.children)


class _Writer:
    """Appends lines of the shown symbols."""

    def __init__(
        self, source: bytes, style: Style, shown: set[int], documented: set[int], out: list[str]
    ) -> None:
        self._style, self._shown, self._documented, self._out = style, shown, documented, out
        self._source = source

    def members(self, items: Sequence[_Item], pad: str) -> None:
        """Symbols of one level, values of enumerations side by side, and how many are missing."""
        shown = [item for item in items if item.index in self._shown]
        values = [item for item in shown if item.symbol.kind == "member" and item.end == ","]
        if values or (self._style.last_member and items and items[0].symbol.kind == "member"):
            self._values(values, pad, len(values) < len(shown))
        for item in shown:
            if item.symbol.kind != "member" or item.end != ",":
                self._one(item, pad)
        if len(shown) < len(items):
            self._out.append(f"{pad}{self._style.comment} {len(items) - len(shown)} more")

    def _values(self, values: Sequence[_Item], pad: str, followed: bool) -> None:
        text = " ".join(item.head + item.end for item in values)
        if followed and self._style.last_member:
            text = text.removesuffix(",") + self._style.last_member
        if text:
            self._out.append(pad + text)

    def _one(self, item: _Item, pad: str) -> None:
        style = self._style
        doc = item.doc if item.index in self._documented else ""
        if doc and not style.doc_inside:
            self._out.append(pad + doc)
        head = item.head.replace("\n", f"\n{pad}")
        if item.symbol.kind not in HOLDERS:
            inside = doc and style.doc_inside and item.end.endswith(style.empty)
            ending = item.end.removesuffix(style.empty) + f"{style.open} {doc}" if inside else item.end
            self._out.append(pad + head + ending)
            return
        self._holder(item, head, doc if style.doc_inside else "", pad)

    def _holder(self, item: _Item, head: str, doc: str, pad: str) -> None:
        style = self._style
        inner = [c for c in item.children if not c.detached]
        outer = [c for c in item.children if c.detached and c.index in self._shown]
        if doc or any(c.index in self._shown for c in inner):
            self._out.append(pad + head + style.open)
            if doc:
                self._out.append(pad + style.indent + doc)
            self.members(inner, pad + style.indent)
            if style.close:
                self._out.append(pad + style.close + item.end)
        else:
            span = item.symbol.span
            body = self._source[span.end_byte - len(style.closes) : span.end_byte].decode("utf-8", "replace")
            self._out.append(
                pad + head + (style.empty if body == style.closes else style.bare or style.empty)
            )
        if outer:
            self._outer(item, outer, pad)

    def _outer(self, item: _Item, outer: Sequence[_Item], pad: str) -> None:
        opening = self._style.detached.replace("{name}", item.symbol.name)
        if opening:
            self._out.append(pad + opening)
        self.members(outer, pad + self._style.indent if opening else pad)
        if opening:
            self._out.append(pad + self._style.close)
