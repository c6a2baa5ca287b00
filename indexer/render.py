"""One symbol as a line of its own language: its head, shortened where long, and what its grammar wants after.

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
VALUES = frozenset(("property", "field", "variable", "constant", "member"))
CALLABLES = frozenset(("function", "method", "constructor"))
LONG = 150
"""Characters beyond which a head is shortened."""
NAMES = 8
"""Most names on one line of imports."""
_DEEP = 24
_PIECE = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|->|=>|[()\[\]{},]|(?<=\w)<(?![\s=<])|>""")
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSERS = frozenset(_CLOSING.values())
_REMARK = re.compile(r"/\*.*?(?:\*/ ?|$)")
_ANGLE = re.compile(r"(?<=\w<) (?=\w)|,(?= >)")
_CUT = 395
"""A signature this long may lack its end (records.Symbol)."""
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
    bare: str | None = None
    """Instead, where the source has no body either (`struct Unit;`)."""
    closes: str = "}"
    """What a body ends with in the source."""
    plain: Mapping[str, str] = {}
    """Template of a type's head by its `{name}`, by kind: where its own cannot be used."""
    heads_match: str = ""
    """Regular expression that the head of a type or namespace must match; else it is written `plain`."""
    whole: Mapping[str, str] = {}
    """Template of the whole head by `{name}`, by kind."""
    type_open: str = ""
    """As `open`, for a type alias with members to show; aliases have none when empty."""
    type_close: str = ""
    """As `close`, for a type alias."""
    starts: Mapping[str, str] = {}
    """Before a member's head, by its kind."""
    ends: Mapping[str, str] = {}
    """After a member's head, by its kind."""
    rules: tuple[tuple[str, str], ...] = ()
    """Exceptions from `ends`: a regular expression over `<kind of parent> <kind> <head>` and the ending, `-`
    leaves the symbol out, `{head}` in it puts the head there. The first that matches counts; at the top of a
    file the parent's kind is empty."""
    alias: str = ""
    """Regular expression: a head that only gives another name (group 1) to the type before it (`typedef`)."""
    last_member: str = ""
    """Instead of the comma behind an enumeration's last value when other members follow."""
    noise: str = ""
    """Regular expression: what is taken out of heads."""
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
    import_each: str = ""
    """Template of an import of one `{name}`, a line for each."""
    import_names: str = ""
    """Template of an import of names, `import_module` when empty."""
    import_wild: str = ""
    """Template of an import of everything in a module."""
    modules: str = r"[^\s\"'`\\]+"
    """Regular expression: a module that does not match it in whole is not shown."""
    relative: str = ""
    """What one leading dot of a relative import is."""
    import_join: str = ""
    """Between whole modules named by one import; each has its own line when empty."""
    own: str = ""
    """What stands before a member's name where it is defined in a method (`self.`)."""
    hidden: str = ""
    """Regular expression: names that say nothing about what a file offers."""
    value: str = ""
    """What stands for a value left out of a signature, with its operator, where there must be one."""


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
    span = symbol.span
    if symbol.kind in style.whole:
        return style.whole[symbol.kind].replace("{name}", symbol.name)
    text = symbol.signature
    if style.comment == "//":
        if "/*" in text:
            text = _REMARK.sub("", text).rstrip(" =:")
        if "< " in text or ", >" in text:
            text = _ANGLE.sub("", text)
    if style.noise:
        text = pattern(style.noise).sub("", text)
    if "\\ " in text:
        text = text.replace(" \\ ", " ")  # a joined continuation line
    if "( " in text:
        text = text.replace("( ", "(").replace(", )", ")")
    if style.own and text.startswith(style.own):
        text = text[len(style.own) :]
    if len(text) > LONG or len(symbol.signature) >= _CUT:
        start = max(0, text.find(symbol.name))
        start = max(start, text.find("(", start)) if symbol.kind in CALLABLES else start
        text = shorten(text, start, len(symbol.signature) >= _CUT)
    if symbol.kind in HOLDERS and (symbol.name not in text or not pattern(style.heads_match).search(text)):
        text = plain(symbol, style)
    text = style.starts.get(symbol.kind, "") + text if text else ""
    if style.decorator and text and span.start_byte < symbol.name_start:
        above = source[span.start_byte : symbol.name_start].decode("utf-8", "replace")
        lines = [m[0].strip() for m in pattern(style.decorator).finditer(above)]
        text = "\n".join((*lines, text))
    return text


def plain(symbol: Symbol, style: Style) -> str:
    """The shortest head of a type or namespace; empty when the language has none for its kind."""
    return style.plain.get(symbol.kind, "").replace("{name}", symbol.name)


def shorten(text: str, start: int, cut_off: bool) -> str:
    """Cut at a comma behind `start` and near LONG characters, brackets closed, return type kept if short.

    `cut_off` tells that the text already lacks its end. Empty when there is no place to cut.
    """
    stack: list[str] = []
    cut, depth, closers, tail = 0, 0, "", ""
    limit = max(LONG, start + LONG // 2)
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece in _CLOSING:
            stack.append(_CLOSING[piece])
            if len(stack) > _DEEP:
                return ""
        elif piece in _CLOSERS:
            _pop(stack, piece)
            if cut and depth and len(stack) == depth - 1 and not tail:
                tail = text[match.start() :]
        elif piece == "," and start < match.start() <= limit:
            cut, depth, closers, tail = match.start(), len(stack), "".join(reversed(stack)), ""
    whole = not stack and not cut_off
    if whole and (len(text) <= limit or not cut):
        return text if len(text) <= 2 * limit else ""
    if not cut:
        return ""
    ending = tail if depth == 1 and whole and len(tail) < LONG // 2 else closers
    return text[:cut].rstrip(" *,/") + ending


def _pop(stack: list[str], closer: str) -> None:
    """Close a bracket; angles left open before it were comparisons."""
    while stack and stack[-1] == ">" != closer:
        stack.pop()
    if stack and stack[-1] == closer:
        stack.pop()


def end(symbol: Symbol, text: str, parent: str, source: bytes, style: Style) -> str | None:
    """What the grammar wants after a head standing in a `parent` (kind, empty at the top); None: no place."""
    kind = symbol.kind
    if style.rules:
        line = f"{parent} {kind} {text}"
        for expression, ending in style.rules:
            if pattern(expression).search(line):
                return None if ending == "-" else ending.replace("{name}", symbol.name)
    ending = style.ends.get(kind, "")
    if style.value and kind in VALUES and "=" not in text:
        # The value was too long for the signature: the grammar wants something in its place.
        return style.value + ending if b"=" in source[symbol.name_end : symbol.span.end_byte] else ending
    return ending


def doc(text: str, style: Style) -> str:
    """A documentation line; empty for an empty text."""
    text = " ".join(text.split()).replace("?>", "").rstrip("\\ ")
    if not text:
        return ""
    if not style.doc:
        return f"{style.comment} {text}"
    return style.doc.replace("{}", text.replace('"""', "'''").replace("\\", "/").rstrip('"'))


def imports(found: tuple[Import, ...], style: Style) -> list[str]:
    """Import lines, each module once, names joined; in order of appearance, whole modules first."""
    if not style.import_module:
        return []
    merged: dict[str, dict[str, None]] = {}
    for one in found:
        name = style.relative * one.level + one.module
        if name and pattern(style.modules).fullmatch(name):
            merged.setdefault(name, {}).update(dict.fromkeys(one.names))
    lines, whole = [], []
    for name, taken in merged.items():
        names = [n for n in taken if _SAFE.fullmatch(n)]
        if ("*" in taken or "_" in taken) and style.import_wild:
            lines.append(style.import_wild.replace("{}", name))
        elif names and style.import_each:
            each = style.import_each.replace("{}", name)
            lines += [each.replace("{name}", n) for n in names[:NAMES]]
        elif names and style.import_names:
            line = style.import_names.replace("{}", name)
            lines.append(line.replace("{names}", ", ".join(names[:NAMES])))
        else:
            whole.append(name)
    size = NAMES if style.import_join else 1
    groups = [style.import_join.join(whole[i : i + size]) for i in range(0, len(whole), size)]
    return [style.import_module.replace("{}", group) for group in groups] + lines
