"""Outlines: what a file or a type offers, as pseudo-code of its own language that its grammar accepts.

    ParsedFile + source → sketch: items with ranks → the most useful ones within a budget → text, parsed once

A line costs its bytes without blanks: close to tokens for code, and cheap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from indexer import render, syntax
from indexer.docs import first_sentence
from indexer.errors import NestingTooDeep, ParseBudgetExceeded
from indexer.languages.registry import Language
from indexer.records import Outline, ParsedFile
from indexer.render import HOLDERS, TYPES, Style
from indexer.sketch import CONSTRUCTOR, DATA, DOC, GROUP, HOLDER, IMPORT, PRIVATE, Item, sketch

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
SUMMARISED = TYPES | {"type"}
_BLANKS = b" \t\r\n\f"
_PARSE_S = 0.5
_Top = Sequence[tuple[int, str]]
"""Lines above all symbols, with their ranks."""


def outline(
    source: bytes, parsed: ParsedFile, language: Language, only: int | None = None
) -> tuple[Outline, ...]:
    """The file's outline, then one of each type with at least MEMBERS members; all parse without error.
    `only`: the one of this symbol, or -1 for the file's.

    Empty when the language has no outline.toml. Equal input gives equal output. Costs about 20 µs per symbol.
    """
    style = render.styles().get(language.name)
    if style is None:
        return ()
    roots, items = sketch(source, parsed, style)
    found = []
    if only is None or only < 0:
        budget = min(FILE_CAP, max(FLOOR, _weight(source) * SHARE))
        text = _text(source, roots, _top(source, parsed, style), budget, language)
        found += [Outline(text=text)] if text else []
    for item in items if only is None else (i for i in items if i.index == only):
        if item.symbol.kind in SUMMARISED and len(item.children) >= MEMBERS:
            spans = [i.symbol.span for i in (item, *(c for c in item.children if c.detached))]
            own = sum(_weight(source[s.start_byte : s.end_byte]) for s in spans)
            text = _text(source, [item], [], min(TYPE_CAP, max(FLOOR, own * SHARE)), language)
            found += [Outline(text=text, symbol=item.index)] if text else []
    return tuple(found)


def parses(text: str, language: Language) -> bool:
    """Whether text is free of error nodes in the language's grammar."""
    try:
        return not syntax.parse(text.encode("utf-8", "replace"), language, _PARSE_S).root_node.has_error
    except (ParseBudgetExceeded, NestingTooDeep):
        return False


def _weight(source: bytes) -> int:
    return len(source.translate(None, _BLANKS))


def _top(source: bytes, parsed: ParsedFile, style: Style) -> list[tuple[int, str]]:
    """Package clause, the file's documentation, imports."""
    start = source[:8192].decode("utf-8", "replace")
    found = [render.pattern(head).search(start) for head in style.heads]
    lines = [(HOLDER, match[0].strip()) for match in found if match]
    match = render.pattern(style.file_doc).search(start) if style.file_doc else None
    if match and (text := render.doc(first_sentence([match["doc"]]), style)):
        lines.insert(0, (CONSTRUCTOR, text))
    imports = render.imports(parsed.imports, style)
    return lines + [(IMPORT if i < GROUP else DATA, line) for i, line in enumerate(imports)]


def _text(source: bytes, roots: Sequence[Item], top: _Top, budget: float, language: Language) -> str:
    """What fits into the budget and parses."""
    lines, shown, documented = _select(roots, top, budget)
    writer = _Writer(source, render.styles()[language.name], documented)
    head = [line for i, (_, line) in enumerate(top) if i in lines]
    text = writer.text(head, roots, shown)
    if not parses(text, language):
        # Rare: code that only makes sense where it stood (preprocessor lines). Keep what is sound.
        head = head if parses(writer.text(head, [], set()), language) else []
        good = {index for root in roots for index in _sound(root, (), shown, writer, language)}
        text = writer.text(head, roots, good)
        if not parses(text, language):
            return ""
    return text


def _sound(
    item: Item, above: tuple[Item, ...], shown: set[int], writer: _Writer, language: Language
) -> Iterator[int]:
    """Each shown item that parses when it stands alone in the items `above`, with a plain head if need be."""
    if item.index not in shown:
        return
    chain = (*above, item)
    alone = {i.index for i in chain}
    sound = parses(writer.text([], chain[:1], alone), language)
    head = render.plain(item.symbol, render.styles()[language.name])
    if not sound and head:
        item.head = head
        sound = parses(writer.text([], chain[:1], alone), language)
    if sound:
        yield item.index
        for child in item.children:
            yield from _sound(child, chain, shown, writer, language)


def _select(roots: Sequence[Item], top: _Top, budget: float) -> tuple[set[int], set[int], set[int]]:
    """Which lines of the top, which symbols, and whose documentation are shown."""
    entries = [(rank, i // GROUP, len(line) + 1, 0, i) for i, (rank, line) in enumerate(top)]
    for item in _walk(roots):
        entries.append((item.rank, item.group, len(item.head) + len(item.end) + 2, 1, item.index))
        if item.doc:
            rank = CONSTRUCTOR if item.rank == HOLDER else max(DOC, item.rank)
            entries.append((rank, item.group, len(item.doc), 2, item.index))
    chosen: tuple[set[int], set[int], set[int]] = (set(), set(), set())
    if top and sum(entry[2] for entry in entries) > LEAN:
        public = [entry for entry in entries if entry[0] != PRIVATE]
        entries = public if len(public) > len(top) + MEMBERS else entries
    if sum(entry[2] for entry in entries) > budget:
        entries.sort(key=lambda e: (e[0], e[1]))
    for _, _, cost, what, index in entries:
        if cost <= budget:
            budget -= cost
            chosen[what].add(index)
    return chosen


def _walk(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        yield from _walk(item.children)


class _Writer:
    """Lines of the shown symbols."""

    def __init__(self, source: bytes, style: Style, documented: set[int]) -> None:
        self._source, self._style, self._documented = source, style, documented
        self._shown: set[int] = set()
        self._out: list[str] = []

    def text(self, head: Sequence[str], roots: Sequence[Item], shown: set[int]) -> str:
        """`head`, then the symbols in `shown` (indices) below `roots`; empty when there is neither."""
        self._shown, self._out = shown, list(head)
        self._members(roots, "")
        if not head and not shown:
            return ""
        prologue = [self._style.prologue] if self._style.prologue else []
        return "\n".join((*prologue, *self._out, ""))

    def _members(self, items: Sequence[Item], pad: str) -> None:
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

    def _values(self, values: Sequence[Item], pad: str, followed: bool) -> None:
        text = " ".join(item.head + item.end for item in values)
        if followed and self._style.last_member:
            text = text.removesuffix(",") + self._style.last_member
        if text:
            self._out.append(pad + text)

    def _one(self, item: Item, pad: str) -> None:
        style = self._style
        doc = item.doc if item.index in self._documented else ""
        if doc and not style.doc_inside:
            self._out.append(pad + doc)
        head = item.head.replace("\n", f"\n{pad}")
        if item.symbol.kind in HOLDERS or item.children:
            self._holder(item, head, doc if style.doc_inside else "", pad)
        elif doc and style.doc_inside and item.end.endswith(style.empty):
            self._out.append(f"{pad}{head}{item.end.removesuffix(style.empty)}{style.open} {doc}")
        else:
            self._out.append(pad + head + item.end)

    def _holder(self, item: Item, head: str, doc: str, pad: str) -> None:
        style = self._style
        inner = [c for c in item.children if not c.detached]
        outer = [c for c in item.children if c.detached and c.index in self._shown]
        alias = item.symbol.kind == "type"
        if doc or any(c.index in self._shown for c in inner):
            self._out.append(pad + head + (style.type_open if alias else style.open))
            if doc:
                self._out.append(pad + style.indent + doc)
            self._members(inner, pad + style.indent)
            close = style.type_close if alias else style.close and style.close + item.end
            self._out += [pad + close] if close else []
        else:
            self._out.append(pad + head + self._nothing(item))
        if outer:
            opening = style.detached.replace("{name}", item.symbol.name)
            self._out += [pad + opening] if opening else []
            self._members(outer, pad + style.indent if opening else pad)
            self._out += [pad + style.close] if opening else []

    def _nothing(self, item: Item) -> str:
        """What stands for the body of a type of which no member is shown."""
        style, end = self._style, item.symbol.span.end_byte
        closes = style.closes.encode()
        if item.symbol.kind == "type":
            return item.end
        if style.bare is not None and self._source[end - len(closes) : end] != closes:
            return style.bare
        return style.empty + item.end
