"""Captured spans → Symbols: nesting, kinds, qualified names, signatures, documentation, visibility.

The captures of one query come unordered; sorted by start they are walked once with a stack, which tells what
lies in what without asking the tree. The meaning of each capture is in languages/__init__.py.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from indexer.docs import Comments, docstring
from indexer.languages.registry import Exports, Language
from indexer.nesting import Definition, Range, nest
from indexer.records import Span, Symbol, SymbolKind

CLASS_LIKE: Final = frozenset(("class", "interface", "struct", "enum", "trait", "type"))
"""Kinds whose functions are methods."""
_CODE: Final = frozenset(("function", "method", "constructor"))
_VALUES: Final = frozenset(("variable", "constant", "field"))
MAX_SIGNATURE = 400
MAX_NAME = 200
_LONG_VALUE = 60
_COLON = ord(":")
"""Before a symbol literal that names something (Ruby's `attr_reader :size`)."""
_OUTSIDE = "outside"
"""Access of a member that stands outside its type: the type's own sections do not speak of it."""
_WORD = re.compile(r"[#@]?\w+")
_GENERIC = re.compile(r"[<\[(].*", re.DOTALL)


class Definitions:
    """The definitions of one file. `symbols` in order of their starts; symbol i encloses `ranges[i]`."""

    def __init__(self, source: bytes, newlines: Sequence[int], language: Language) -> None:
        self.symbols: list[Symbol] = []
        self.ranges: list[Range] = []
        self._source = source
        self._newlines = newlines
        self._facts = language.facts
        self._marker = _line_comment(language.line_comment)
        self._by_name: dict[str, int] = {}
        self._values: set[tuple[int, str]] = set()
        self._tails: dict[int, int] = {}
        exports = language.facts.exports
        self._needs_words = exports.rule == "words" or bool(exports.private_words)
        public = [word.encode() for word in exports.public_words]
        words = b"|".join(map(re.escape, public))
        self._open_file = exports.all_when_unmarked and not (
            any(word in source for word in public) and re.search(rb"\b(?:%b)\b" % words, source)
        )
        self._leads: list[Range] = []

    def read(self, spans: Mapping[str, Sequence[Range]]) -> None:
        """Build the symbols from capture name → ranges."""
        exported = {self._text(r).strip("\"'") for r in spans.get("exported", ())}
        self._open_file = self._open_file and not exported
        rules, above = self._facts.symbols, spans.get("comment", ())
        # A comment's node may hold a carriage return at its end.
        tails = above if rules.ends_before_comments else ()
        self._tails = {self._without_blanks(start, end): start for start, end in tails}
        self._leads = sorted(spans.get("lead", ()))
        comments = Comments(self._source, self._newlines, () if rules.doc == "string" else above, self._leads)
        places: dict[int, int] = {}
        for number, item in enumerate(nest(self._source, spans)):
            parent = places[item.parent] if item.parent >= 0 else -1
            places[number] = parent
            if item.kind == "field" and parent >= 0 and self.symbols[parent].kind in _CODE:
                parent = self.symbols[parent].parent
            scope = self._scope(item)
            owner = self._by_name.get(scope.rsplit(".", 1)[-1], -1) if scope else -1
            if owner >= 0 and (parent < 0 or self.symbols[owner].parent == parent):
                parent, scope = owner, ""
                item.access = item.access or _OUTSIDE
            start, comment = comments.above(item.start)
            doc = docstring(self._source[item.doc[0] : item.doc[1]]) if item.doc else comment
            first = len(self.symbols)
            for name in item.names:
                listed = bool(exported) and self._text(name) in exported
                self._add(item, name, parent=parent, scope=scope, start=start, doc=doc, listed=listed)
            if len(self.symbols) > first:
                places[number] = first

    def _add(
        self, item: Definition, name_at: Range, *, parent: int, scope: str, start: int, doc: str, listed: bool
    ) -> None:
        while name_at[1] - name_at[0] > 1 and self._source[name_at[0]] in b"\"'`":
            name_at = (name_at[0] + 1, name_at[1] - 1)
        if name_at[1] - name_at[0] > 1 and self._source[name_at[0]] == _COLON:
            name_at = (name_at[0] + 1, name_at[1])
        name = self._text(name_at)[:MAX_NAME]
        above = self.symbols[parent] if parent >= 0 else None
        kind = self._kind(item, name, above, scope)
        if not name or (kind in _VALUES and (parent, name) in self._values):
            return
        if above is not None and above.kind in _CODE and kind in self._facts.symbols.drop_local:
            return
        if kind in _VALUES:
            self._values.add((parent, name))
        words = self._words(item, name_at[0]) if self._needs_words else []
        marked = self._open_file or listed or _any(self._facts.exports.public_words, words)
        front = ".".join(filter(None, (above.qualified if above is not None else "", scope)))
        self._by_name.setdefault(name, len(self.symbols))
        self.ranges.append((start if item.first else item.node_start, item.node_end))
        self.symbols.append(
            Symbol(
                kind=kind,
                name=name,
                qualified=(f"{front}.{name}" if front else name).replace("::", "."),
                span=self._span(start, item.end),
                name_start=name_at[0],
                name_end=name_at[1],
                parent=parent,
                signature=self._signature(item),
                doc=doc,
                exported=visible(
                    self._facts.exports, name, words=words, marked=marked, access=item.access, above=above
                ),
            )
        )

    def _kind(self, item: Definition, name: str, above: Symbol | None, scope: str) -> SymbolKind:
        kind, rules = item.kind, self._facts.symbols
        member = bool(scope) or (above is not None and above.kind in CLASS_LIKE)
        if kind == "function" and member:
            kind = "method"
        owner = scope.rsplit(".", 1)[-1] or (above.name if above is not None else "")
        if kind == "method" and (
            name in rules.constructors or (rules.class_named_constructor and name == owner)
        ):
            return "constructor"
        if kind == "variable":
            if rules.upper_constants and name.isupper():
                return "constant"
            return "field" if member else kind
        return kind

    def _words(self, item: Definition, end: int) -> list[str]:
        text = self._before(item, end)
        for unheard in self._facts.exports.unheard:
            text = text.replace(unheard, " ")
        return _WORD.findall(text)

    def _span(self, start: int, end: int) -> Span:
        """From `start` to `end`, without comments and blanks at the end where those do not belong to it."""
        if self._facts.symbols.ends_before_comments:
            end = self._without_blanks(start, end)
        while (begin := self._tails.get(end)) is not None:
            end = self._without_blanks(start, begin)
        return Span(
            start_byte=start,
            end_byte=end,
            start_line=bisect_left(self._newlines, start),
            end_line=bisect_left(self._newlines, max(start, end - 1)) + 1,
        )

    def _without_blanks(self, start: int, end: int) -> int:
        while end > start and self._source[end - 1] in b" \t\r\n\f\\":
            end -= 1
        return end

    def _scope(self, item: Definition) -> str:
        if item.scope is None:
            return ""
        text = _GENERIC.sub("", self._text(item.scope)).strip("*& \t\r\n")
        return re.sub(r"\s*(?:::|\.|\\)\s*", ".", text).strip(".")[:MAX_NAME]

    def _signature(self, item: Definition) -> str:
        end = item.body[0] if item.body else item.node_end
        if item.value and item.value[0] < end and not (item.body and item.body[0] < item.value[1]):
            value = self._source[item.value[0] : item.value[1]]
            if len(value) > _LONG_VALUE or b"\n" in value:
                end = item.value[0]
        text = self._before(item, max(end, item.node_start))
        if item.names[0][0] > end:
            text += " " + self._text(item.names[0])
        if "\n" in text and self._marker is not None:
            text = self._marker.sub("", text)
        return " ".join(text.split()).removesuffix("=>").rstrip(" :={;,")[:MAX_SIGNATURE].rstrip()

    def _before(self, item: Definition, end: int) -> str:
        """The definition's own text up to `end`, after that of the wraps around it."""
        own = self._cut(item.node_start, end)
        if item.prefix:
            own = b" ".join([*(self._cut(a, b) for a, b in item.prefix), own])
        return own.decode("utf-8", "replace")

    def _cut(self, start: int, end: int) -> bytes:
        """The source between two places without the leads there (decorators, annotations)."""
        end = min(end, start + 8 * MAX_SIGNATURE)
        at = bisect_left(self._leads, (start, start))
        if at == len(self._leads) or self._leads[at][0] >= end:
            return self._source[start:end]
        parts = []
        while at < len(self._leads) and self._leads[at][0] < end:
            parts.append(self._source[start : self._leads[at][0]])
            start = max(start, self._leads[at][1])
            at += 1
        return b" ".join([*parts, self._source[start:end]])

    def _text(self, at: Range) -> str:
        return self._source[at[0] : min(at[1], at[0] + 4 * MAX_NAME)].decode("utf-8", "replace")


def visible(
    rules: Exports, name: str, *, words: Sequence[str], marked: bool, access: str, above: Symbol | None
) -> bool:
    """Whether other files can see a definition. `words` stand before its name, `access` is the section's."""
    if (rules.private_prefix and name.startswith(rules.private_prefix)) or _any(rules.private_words, words):
        return False
    if above is not None:
        if not above.exported or above.kind in _CODE:
            return False
        if access and access != _OUTSIDE:
            return access not in rules.private_words
        if above.kind in rules.closed_kinds and access != _OUTSIDE:
            return marked
        if (rules.members == "follow" and above.kind in CLASS_LIKE) or above.kind in rules.open_kinds:
            return True
    if rules.rule == "underscore":
        return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))
    if rules.rule == "capital":
        return name[:1].isupper()
    return marked or rules.rule == "all"


def _any(wanted: Sequence[str], words: Sequence[str]) -> bool:
    return any(word in words for word in wanted)


def _line_comment(marker: str) -> re.Pattern[str] | None:
    return re.compile(rf"(?m)(?:^|(?<=\s)){re.escape(marker)}.*$") if marker else None
