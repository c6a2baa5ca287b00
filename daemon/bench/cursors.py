"""Where a person may ask for text in real files: seeded cursors of several kinds. Pure.

`rest` of a line, a whole `line` behind its indentation, and a `block` are taken out, as quality's masks are;
so are tokens in the `middle` of a line, and what stands inside a `pair` of brackets or quotes, as an editor
that closes them leaves it. `new` is an empty line before one that is there, `front` the place before the
first word of one: there nothing is missing, and a text that repeats what follows is likely.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from daemon.bench.faults import Accepted, faults
from indexer.languages import registry
from indexer.languages.registry import Language

LARGEST = 30_000
"""Bytes of a file, so that trees are made quickly."""
_SMALLEST = 600
_TRIES = 30
_TOKEN = re.compile(r"\w+|[^\w\s]")
_INSIDE = re.compile(r"\(([^()\n]+)\)|\[([^\[\]\n]+)\]|\"([^\"\\\n]+)\"")
_BLOCK = (2, 8)
Span = tuple[int, int]
Finder = Callable[[str, int, str, random.Random], Span | None]
"""(text, start of a line, the line, chance) → what is taken out."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """One place. `document` is without what was taken out, `offset` in code points, `truth` what was."""

    path: str
    line: int
    column: int
    kind: str
    document: str
    offset: int
    truth: str
    language: Language

    @property
    def name(self) -> str:
        """The position, from 1, and its kind."""
        return f"{self.path}:{self.line}:{self.column} {self.kind}"

    def accepted(self, text: str, replaced: int = 0) -> Accepted:
        """With `text` put in, in place of so many characters."""
        return Accepted(self.document, self.offset, self.offset + replaced, text, self.language)


def draw(texts: Mapping[str, bytes], count: int, seed: int) -> list[Cursor]:
    """`count` cursors at most: languages, files and kinds in turn. What stood there has no fault itself."""
    chance = random.Random(seed)
    shelves: dict[str, list[tuple[str, str, Language]]] = {}
    for path, data in sorted(texts.items()):
        language = registry.language_for(path, data[: registry.HEAD])
        if language is not None and _SMALLEST <= len(data) <= LARGEST:
            shelves.setdefault(language.name, []).append((path, data.decode(), language))
    for shelf in shelves.values():
        chance.shuffle(shelf)
    kinds, found = itertools.cycle(_KINDS.items()), list[Cursor]()
    for number in range(count * 4):
        names = list(shelves)
        if not names or len(found) >= count:
            break
        shelf = shelves[names[number % len(names)]]
        path, text, language = shelf[number // len(names) % len(shelf)]
        made = _place(path, text, language, next(kinds), chance)
        found += [made] if made is not None else []
    return found


def _place(
    path: str, text: str, language: Language, how: tuple[str, Finder], chance: random.Random
) -> Cursor | None:
    kind, places = how
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    for _ in range(_TRIES):
        number = chance.randrange(len(starts))
        end = text.find("\n", starts[number])
        line = text[starts[number] : end] if end >= 0 else ""
        if not line.strip() or (span := places(text, starts[number], line, chance)) is None:
            continue
        document, offset = text[: span[0]] + text[span[1] :], span[0]
        if kind == "new":
            indent = line[: len(line) - len(line.lstrip())]
            document = f"{text[: starts[number]]}{indent}\n{text[starts[number] :]}"
            offset = starts[number] + len(indent)
        column = offset - document.rfind("\n", 0, offset)
        above = document.count("\n", 0, offset)
        made = Cursor(path, above + 1, column, kind, document, offset, text[slice(*span)], language)
        if not faults(made.accepted(made.truth)):
            return made
    return None


def _tokens(line: str) -> list[int]:
    return [match.start() for match in _TOKEN.finditer(line)]


def _rest(text: str, start: int, line: str, chance: random.Random) -> Span | None:
    cuts = _tokens(line)[1:]
    return (start + chance.choice(cuts), start + len(line.rstrip())) if cuts else None


def _line(text: str, start: int, line: str, chance: random.Random) -> Span | None:
    return start + len(line) - len(line.lstrip()), start + len(line.rstrip())


def _middle(text: str, start: int, line: str, chance: random.Random) -> Span | None:
    cuts = _tokens(line)
    if len(cuts) < 4:
        return None
    first = chance.randrange(1, len(cuts) - 2)
    return start + cuts[first], start + cuts[chance.randrange(first + 1, len(cuts))]


def _pair(text: str, start: int, line: str, chance: random.Random) -> Span | None:
    found = [match.span(match.lastindex or 0) for match in _INSIDE.finditer(line)]
    if not found:
        return None
    span = chance.choice(found)
    return start + span[0], start + span[1]


def _block(text: str, start: int, line: str, chance: random.Random) -> Span | None:
    if not line.rstrip().endswith((":", "{")):
        return None
    indent, at, lines, end = len(line) - len(line.lstrip()), start + len(line) + 1, 0, 0
    for inner in text[at:].split("\n"):
        if inner.strip() and len(inner) - len(inner.lstrip()) <= indent:
            break
        if inner.strip():
            lines, end = lines + 1, at + len(inner.rstrip())
        at += len(inner) + 1
    first = start + len(line) + 1
    begin = first + len(text[first:]) - len(text[first:].lstrip(" \t"))
    return (begin, end) if _BLOCK[0] <= lines <= _BLOCK[1] and begin < end else None


def _front(text: str, start: int, line: str, chance: random.Random) -> Span | None:
    at = start + len(line) - len(line.lstrip())
    return at, at


_KINDS: Mapping[str, Finder] = {
    "rest": _rest,
    "line": _line,
    "block": _block,
    "middle": _middle,
    "pair": _pair,
    "new": _front,
    "front": _front,
}


def of_tasks(rows: Iterator[tuple[str, str, str, str]]) -> list[Cursor]:
    """From (name, text before, text after, solution) of infilling tasks in Python."""
    language, found = registry.get("python"), []
    for name, before, after, solution in rows:
        above = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        found.append(Cursor(name, above, column, "task", before + after, len(before), solution, language))
    return found
