"""What stands around the cursor: by the tree where there is a sound one, by the lines where there is none.

Only the path from the root to the cursor is looked at: one query over a few bytes, whose captures the same
code reads that makes the index's symbols.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec
import numpy as np

from daemon.context import lines, nearby
from daemon.context.imported import imported
from daemon.context.oneline import indent_of
from daemon.documents.document import Document
from daemon.surroundings import Scope, Surroundings, Zone
from indexer.definitions import Definitions
from indexer.errors import ParseBudgetExceeded
from indexer.languages import registry
from indexer.languages.registry import Language
from indexer.nesting import Range
from indexer.records import Symbol
from indexer.syntax import Limits, Node, Tree, captures, path_at

_BUDGET_S: Final = 0.01
_FEW: Final = 200
"""Lines above that tell all but what encloses a place."""
_SCOPES: Final = frozenset((
    "module", "namespace", "class", "interface", "struct", "enum", "trait", "type", "function", "method",
    "constructor", "property", "macro",
))  # fmt: skip
_NO_STRING: Final = frozenset((
    "interpolation", "template_substitution", "string_interpolation", "interpolated_expression",
    "command_substitution", "expansion", "simple_expansion", "process_substitution",
))  # fmt: skip
_STRING: Final = re.compile(r"string|^char|regex|heredoc_(?:body|content)|nowdoc")
_TYPE: Final = re.compile(
    r"(?:^|_)type$|^type_(?:identifier|annotation|arguments?|argument_list|parameters?|parameter_list"
    r"|descriptor|list|projection)$"
)
_NAME: Final = re.compile(r"(?:^|_)identifier$|^name$|^identifiers$")


def around(document: Document) -> Surroundings:
    """Where the cursor of a document stands, and a few names near it. Without a cursor its end is taken."""
    language = registry.find(document.language)
    text, source, offset = document.text, document.source, _offset(document)
    byte = offset if len(source) == len(text) else len(text[:offset].encode("utf-8", "replace"))
    line = text.count("\n", 0, offset)
    if document.tree is None or language is None:
        where = lines.place(text, offset, line, language)
        chain, zone, node, broken = lines.chain(where), lines.zone(where, language), "", language is not None
    else:
        where = lines.place(text, offset, line, language, _FEW)
        view = _View(document.tree, source, byte, language, where)
        chain, zone, node, broken = view.chain, view.zone, view.node, view.broken
        if broken:
            chain = _deeper(chain, document, offset, line, language)
            zone = lines.zone(where, language) if zone == "code" else zone
    return Surroundings(
        path=document.relative or document.path,
        root=document.root,
        language=document.language,
        zone=zone,
        node=node,
        chain=chain,
        indent=where.indent,
        names=nearby.names(text, offset, language, nearby.FEW),
        imports=imported(document, byte, language),
        broken=broken,
        line=line,
    )


def named(seen: Surroundings, document: Document) -> Surroundings:
    """With all names that are of use; a keystroke needs only the nearest."""
    found = nearby.names(document.text, _offset(document), registry.find(document.language))
    return msgspec.structs.replace(seen, names=found)


def _offset(document: Document) -> int:
    return document.offset if document.offset >= 0 else len(document.text)


def _deeper(
    chain: tuple[Scope, ...], document: Document, offset: int, line: int, language: Language
) -> tuple[Scope, ...]:
    """With the definitions that lines show and a broken tree does not."""
    text, first = document.text, chain[0].start_byte if chain else 0
    # What encloses the outermost may be lost as well.
    if not chain or document.source.rfind(b"\n", 0, first) + 1 != first:
        shown = lines.chain(lines.place(text, offset, line, language))
        return chain if len(chain) >= len(shown) else shown
    inner = chain[-1]
    shown = lines.chain(lines.place(text, offset, line, language, line - inner.start_line))
    return (*chain, *(s for s in shown if s.start_line > inner.start_line and s.name != inner.name))


class _View:
    """What a tree says of a byte."""

    def __init__(self, tree: Tree, source: bytes, byte: int, language: Language, where: lines.Place) -> None:
        self._source, self._byte, self._language, self._where = source, byte, language, where
        near = source[max(0, byte - 4096) : byte]
        self._anchor = max(0, byte - len(near) + len(near.rstrip()) - 1)
        """The last byte before the cursor that is not white space."""
        self._path = path_at(tree, max(0, byte - 1))
        behind = path_at(tree, self._anchor) if self._anchor < byte - 1 else self._path
        self.broken = _broken(self._path) or _broken(behind)
        inside = path_at(tree, byte) if where.head[-1:].isspace() or not where.head else self._path
        self.node = next((node.type for node in reversed(inside) if node.is_named), "")
        self._spans = self._captured(tree)
        self.chain = self._chain()
        self.zone: Zone = self._zone()

    def _captured(self, tree: Tree) -> dict[str, list[Range]]:
        """Capture name → ranges. A query over a few bytes leaves out what a match has elsewhere: names and
        bodies of enclosing definitions are asked of their nodes."""
        try:
            found = self._query(tree.root_node, self._anchor, self._byte + 1)
            for name in [name for name in found if name.startswith(("definition.", "container"))]:
                for node in found[name]:
                    if node.start_byte <= self._byte and node.end_byte > self._anchor:
                        self._complete(node, name, found)
        except ParseBudgetExceeded:
            self.broken = True
            return {}
        return {name: list({node.byte_range: None for node in nodes}) for name, nodes in found.items()}

    def _query(self, node: Node, start: int, end: int) -> dict[str, list[Node]]:
        limits = Limits(budget_s=_BUDGET_S, start_byte=start, end_byte=end)
        found = captures(node, self._language.scope_query(), limits)
        return {name: nodes for name, nodes in found.items() if name[0] != "_"}

    def _complete(self, node: Node, kind: str, found: dict[str, list[Node]]) -> None:
        if kind == "container":
            owner = node.child_by_field_name("type") or node.child_by_field_name("name")
            found.setdefault("scope", []).extend([owner] if owner is not None else [])
            return
        body = node.child_by_field_name("body")
        if body is not None:
            found.setdefault("body", []).append(body)
        name = node.child_by_field_name("name")
        names = [name] if name is not None and not name.named_child_count else []
        if not names:
            end = min(self._byte, body.start_byte if body is not None else node.end_byte) + 1
            header = self._query(node, node.start_byte, end)
            found.setdefault("body", []).extend(header.get("body", ()))
            names = header.get("name", [])
        found.setdefault("name", []).extend(names)

    def _chain(self) -> tuple[Scope, ...]:
        if not any(name.startswith(("definition", "container")) for name in self._spans):
            return ()
        newlines = cast(Sequence[int], np.flatnonzero(np.frombuffer(self._source, np.uint8) == 10))
        definitions = Definitions(self._source, newlines, self._language)
        definitions.read(self._spans)
        found = [
            _reaching(scope(symbol), self._byte, self._where.line)
            for symbol, (start, end) in zip(definitions.symbols, definitions.ranges, strict=True)
            if symbol.kind in _SCOPES and self._inside(start, end)
        ]
        found += _containers(self._source, newlines, self._spans, self._byte)
        found.sort(key=lambda one: (one.start_byte, -one.end_byte))
        return tuple(found)

    def _inside(self, start: int, end: int) -> bool:
        """Whether the cursor is within. A block by indentation ends with its last statement: a line that is
        indented like its lines still belongs to it."""
        if start < self._byte < end:
            return True
        if not self._language.facts.symbols.ends_before_comments or not start <= self._anchor <= self._byte:
            return False
        if end < self._anchor + 1 or end > self._byte:
            return False
        begin = self._source.rfind(b"\n", 0, start) + 1
        margin = self._source[begin:start].decode("utf-8", "replace")
        here = self._where.indent if not self._where.head.strip() else indent_of(self._where.head + ".")
        same = b"\n" not in self._source[self._anchor : self._byte]
        return here > indent_of(margin + ".") or (same and start >= begin)

    def _zone(self) -> Zone:
        byte, found = self._byte, "code"
        for node in reversed(self._path):
            kind = node.type
            if kind in _NO_STRING and byte < node.end_byte:
                break
            if "comment" in kind and node.start_byte < byte and self._in_comment(node):
                return "comment"
            if _STRING.search(kind) and node.start_byte < byte < node.end_byte:
                found = "string"
                break
        for start, end in self._spans.get("import", ()):
            if start < byte < end or (byte == end and self._source[end - 1] not in b";\n"):
                return "import"
        if found == "string":
            return "string"
        return "type" if self._is_type() else "code"

    def _in_comment(self, node: Node) -> bool:
        if self._byte < node.end_byte:
            return True
        text = self._source[node.start_byte : node.end_byte].rstrip()
        closing = self._language.facts.block_comment[1:]
        line_end = self._source[node.end_byte - 1 : node.end_byte] == b"\n"
        return (
            self._byte == node.end_byte
            and not line_end
            and not text.endswith(tuple(c.encode() for c in closing))
        )

    def _is_type(self) -> bool:
        own = set(self._spans.get("name", ()))
        for node in reversed(self._path):
            if node.byte_range in own:
                return False
            if _TYPE.search(node.type):
                return node.start_byte < self._byte
            if node.is_named and not _NAME.search(node.type):
                return False
        return False


def _broken(path: Sequence[Node]) -> bool:
    """Whether the smallest node of several lines on a path, or its child on the path, holds an error."""
    if any(node.is_error or node.is_missing for node in path):
        return True
    wide = [node for node in path[1:] if node.start_point[0] < node.end_point[0]]
    return (wide[-1] if wide else path[-1]).has_error


def scope(symbol: Symbol) -> Scope:
    """A definition as what encloses a cursor."""
    span = symbol.span
    return Scope(
        kind=symbol.kind,
        name=symbol.name,
        signature=symbol.signature,
        start_line=span.start_line,
        end_line=span.end_line,
        start_byte=span.start_byte,
        end_byte=span.end_byte,
    )


def _reaching(found: Scope, byte: int, line: int) -> Scope:
    """A block by indentation goes on to the cursor."""
    return msgspec.structs.replace(
        found, end_line=max(found.end_line, line + 1), end_byte=max(found.end_byte, byte)
    )


def _containers(
    source: bytes, newlines: Sequence[int], spans: Mapping[str, Sequence[Range]], byte: int
) -> list[Scope]:
    """Blocks that add to a type from outside (`impl`, `extension`), which are no symbols of their own."""
    found = []
    for start, end in spans.get("container", ()):
        owner = min((at for at in spans.get("scope", ()) if start <= at[0] < end), default=None)
        if owner is None or not start < byte < end:
            continue
        header = source[start : min(end, start + 400)].split(b"{")[0].decode("utf-8", "replace")
        found.append(
            Scope(
                kind="class",
                name=source[owner[0] : owner[1]].split(b"<")[0].decode("utf-8", "replace").strip(),
                signature=" ".join(header.split()),
                start_line=int(np.searchsorted(newlines, start)),
                end_line=int(np.searchsorted(newlines, end - 1)) + 1,
                start_byte=start,
                end_byte=end,
            )
        )
    return found
