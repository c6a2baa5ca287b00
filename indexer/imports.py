"""Captured spans → Imports: statements, modules, names, and the grouped trees of Rust, Scala and PHP."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from indexer.nesting import Range
from indexer.records import Import

_MAX_TREE = 8_000
_MAX_GROUPS = 16
_PARTS = ("import.module", "import.name", "import.level", "import.tree")
_QUOTES = "\"'`<> \t\r\n;"


def read_imports(
    source: bytes, newlines: Sequence[int], spans: Mapping[str, Sequence[Range]], separator: str
) -> tuple[Import, ...]:
    """Imports in order of their statements."""
    parts = sorted((start, end, part) for part in _PARTS for start, end in spans.get(part, ()))
    found: list[Import] = []
    position = 0
    for begin, stop in sorted(spans.get("import", ())):
        while position < len(parts) and parts[position][0] < begin:
            position += 1
        inside: list[tuple[str, str]] = []
        while position < len(parts) and parts[position][0] < stop:
            start, end, part = parts[position]
            inside.append((part, source[start : min(end, start + _MAX_TREE)].decode("utf-8", "replace")))
            position += 1
        found.extend(_statement(inside, bisect_left(newlines, begin), separator))
    return tuple(found)


def _statement(parts: Sequence[tuple[str, str]], line: int, separator: str) -> Iterator[Import]:
    names = tuple(text for part, text in parts if part == "import.name")
    level = sum(text.count(".") for part, text in parts if part == "import.level")
    modules = [text.strip(_QUOTES) for part, text in parts if part == "import.module"]
    for part, text in parts:
        if part == "import.tree":
            for module, taken in expand(text, separator):
                yield Import(module=module, names=taken, line=line)
    if len(modules) == 1 or (not modules and level):
        yield Import(module=modules[0] if modules else "", names=names, line=line, level=level)
    else:
        for module in modules:
            yield Import(module=module, line=line)


def expand(text: str, separator: str) -> list[tuple[str, tuple[str, ...]]]:
    """`a::{b, c::{d as e}}` → [("a", ("b",)), ("a::c", ("d",))]. The last part is the name."""
    groups: dict[str, list[str]] = {}
    flat = separator.join(part.strip() for part in " ".join(text.split()).split(separator))
    for path in _paths("", flat, separator, _MAX_GROUPS):
        module, found, name = path.rpartition(separator)
        groups.setdefault(module if found else "", []).append(name)
    return [(module, tuple(names)) for module, names in groups.items()]


def _paths(front: str, text: str, separator: str, depth: int) -> Iterator[str]:
    for item in _split(text):
        head, brace, rest = item.partition("{")
        if brace and depth:
            words = head.split()  # the last is the path; before it may stand `import` or `function`
            yield from _paths(front + "".join(words[-1:]), rest.rpartition("}")[0], separator, depth - 1)
            continue
        words = item.replace("=>", " as ").split(" as ")[0].split()
        if not words:
            continue
        path = front + words[-1].strip(_QUOTES).lstrip("\\")
        for own in (f"{separator}self", f"{separator}this"):
            path = path.removesuffix(own)
        yield path


def _split(text: str) -> Iterator[str]:
    """Items between commas outside braces."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        if letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[begin:at].strip()
            begin = at + 1
    yield text[begin:].strip()
