"""One symbol as a line of its own language: its head, shortened where long, and what the grammar wants after it.

How each language is written stands in languages/<name>/outline.toml.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources

import msgspec

from indexer.records import Import, Symbol

TYPES = frozenset(("class", "interface", "struct", "enum", "trait"))
HOLDERS = TYPES | {"namespace", "module"}
CALLABLES = frozenset(("function", "method", "constructor"))
LONG = 150
"""Characters beyond which a head is shortened."""
_DEEP = 24
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`|[()\[\]{},]|->|=>')
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_SAFE = re.compile(r"[^\W\d][\w.$]*")


class Style(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """outline.toml. `{}` in a template stands for the text, `{name}` for the name, `{names}` for names."""

    names: tuple[str, ...]
    """Languages written like this."""
    comment: str
    """What begins a comment to the end of the line."""
    doc: str = ""
    """Template of a documentation line; the comment sign and the text when empty."""
    doc_inside: bool = False
    """Documentation is the first thing in a body (Python)."""
    indent: str = "    "
    open: str = " {"
    """After the head of a type that has members to show."""
    close: str = "}"
    empty: str = " {}"
    """After the head of a type that has none to show."""
    bare: str = ""
    """Instead, where the source has no body either (`struct Unit;`); `empty` when empty."""
    closes: str = "}"
    """What a body ends with in the source."""
    ends: Mapping[str, str] = {}
    """After a member's head, by its kind."""
    contract_ends: Mapping[str, str] = {}
    """The same inside an interface or trait, and for kinds named `kind:parent kind`."""
    last_member: str = ""
    """Replaces the comma after the last of an enumeration's values when other members follow."""
    values_before: bool = False
    """An enumeration's values come first and need `last_member` behind them."""
    calls: str = ""
    """Regular expression: a property whose head matches is written like a method."""
    detached: str = ""
    """Template of what surrounds members defined outside of their type (`impl {name} {{`)."""
    decorator: str = ""
    """Regular expression of the lines above a head that are kept."""
    heads: tuple[str, ...] = ()
    """Regular expressions, with the flag MULTILINE; the first match of each stands at the top of a file."""
    prologue: str = ""
    """First line of every outline (`<?php`)."""
    file_doc: str = ""
    """Regular expression over a file's beginning: group `doc` is its documentation."""
    import_module: str = ""
    """Template of an import of a whole module; no imports are shown when empty."""
    import_names: str = ""
    """Template of an import of names, `import_module` when empty."""
    import_wild: str = ""
    """Template of an import of everything in a module."""
    import_quoted: str = r"[^\s\"'`\\]+"
    """Regular expression: a module that does not match it in whole is not shown."""
    relative: str = ""
    """What one leading dot of a relative import is."""
    keep_value: int = 0
    """Longest value of a constant that is shown, in characters."""
    value: str = ""
    """What stands for a longer value, with its operator."""


@functools.cache
def styles() -> Mapping[str, Style]:
    """Every language's style by the language's name."""
    found: dict[str, Style] = {}
    for folder in resources.files("indexer.languages").iterdir():
        file = folder.joinpath("outline.toml")
        if folder.is_dir() and file.is_file():
            style = msgspec.toml.decode(file.read_bytes(), type=Style)
            found |= dict.fromkeys(style.names, style)
    return found


@functools.cache
def pattern(text: str) -> re.Pattern[str]:
    """A compiled regular expression of a style."""
    return re.compile(text, re.MULTILINE)


def head(symbol: Symbol, source: bytes, style: Style) -> str:
    """A symbol's head without a body, on one line except for decorators; empty when it cannot be told."""
    text = symbol.signature
    span = symbol.span
    if style.keep_value and symbol.kind in ("constant", "variable", "field", "property", "member"):
        whole = source[span.start_byte : min(span.end_byte, span.start_byte + 200)]
        if len(whole) <= style.keep_value + len(text) and b"\n" not in whole:
            kept = whole.decode("utf-8", "replace").rstrip(" \t\r,;")
            text = kept if kept.startswith(text) else text
        elif span.end_byte - span.start_byte > len(text.encode()):
            text += style.value
    if len(text) > LONG:
        text = shorten(text)
    if style.decorator and text and span.start_byte < symbol.name_start:
        above = source[span.start_byte : symbol.name_start].decode("utf-8", "replace")
        lines = [m[0].strip() for m in pattern(style.decorator).finditer(above)]
        text = "\n".join((*lines, text))
    return text


def shorten(text: str) -> str:
    """Cut at a comma near LONG characters, brackets closed, return type kept; empty when there is no place."""
    stack: list[str] = []
    cut, depth, closers, tail = 0, 0, "", ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in _CLOSING:
            stack.append(_CLOSING[token])
            if len(stack) > _DEEP:
                return ""
        elif stack and token == stack[-1]:
            stack.pop()
            if cut and depth and len(stack) == depth - 1 and not tail:
                tail = text[match.start() :]
        elif token == "," and match.start() <= LONG:
            cut, depth, closers, tail = match.start(), len(stack), "".join(reversed(stack)), ""
    if not cut:
        return text if not stack and len(text) < 2 * LONG else ""
    ending = tail if depth == 1 and not stack and len(tail) < LONG // 2 else closers
    return text[:cut].rstrip(" *,/") + ending


def end(symbol: Symbol, text: str, parent: str, style: Style) -> str:
    """What the grammar wants after a head that stands in a `parent` (kind, empty at the top)."""
    kind = symbol.kind
    if style.calls and kind in ("property", "field", "variable", "constant") and pattern(style.calls).search(text):
        kind = "method"
    special = style.contract_ends.get(f"{kind}:{parent}")
    if special is None and parent in ("interface", "trait"):
        special = style.contract_ends.get(kind)
    return style.ends.get(kind, "") if special is None else special


def doc(text: str, style: Style) -> str:
    """A documentation line; empty for an empty text."""
    text = " ".join(text.split()).replace("?>", "").rstrip("\\ ")
    if not text:
        return ""
    if not style.doc:
        return f"{style.comment} {text}"
    return style.doc.replace("{}", text.replace('"""', "'''").replace("\\", "/").rstrip('"'))


def imports(found: tuple[Import, ...], style: Style) -> list[str]:
    """Import lines, each module once, names joined, in order of appearance."""
    if not style.import_module:
        return []
    merged: dict[str, dict[str, None]] = {}
    for one in found:
        name = style.relative * one.level + one.module
        if name and pattern(style.import_quoted).fullmatch(name):
            merged.setdefault(name, {}).update(dict.fromkeys(one.names))
    lines = []
    for name, taken in merged.items():
        names = [n for n in taken if _SAFE.fullmatch(n)]
        template = style.import_module
        if "*" in taken and style.import_wild:
            template = style.import_wild
        elif names and style.import_names:
            template = style.import_names
        lines.append(template.replace("{}", name).replace("{names}", ", ".join(names[:8])))
    return list(dict.fromkeys(lines))
