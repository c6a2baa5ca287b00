"""One root's index as one file sees it: unsaved buffers replace rows, denied files do not exist.

    Reader rows ─┐
    unsaved ─────┴→ definitions, uses, outlines, lines of other files

A View lives for one build, so that all its answers fit together and nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from typing import Protocol, TypeVar

from daemon.documents.contents import Content
from indexer import rank
from indexer.answers import Place, Use
from indexer.deny import denied
from indexer.read import Reader
from indexer.records import Import, Snippet, Symbol

Unsaved = Mapping[tuple[str, str], Content]
"""(root, path relative to it) → what an open, unsaved buffer holds."""
MOST_FILES = 10
"""Files whose text one build reads."""
_LONG = 20_000
"""Lines of a file beyond which its text is not read: unpacking them would take longer than a build may."""
_CANDIDATES = 20
_HIDDEN = 2
"""Uses asked for beyond those wanted: the nearest are often in the file itself."""
_T = TypeVar("_T")


class Overlay(Protocol):
    """Open buffers. The document mirror is one, a table of texts in a measurement another."""

    def overlay(self, here: tuple[str, str]) -> Unsaved:
        """Buffers that differ from the disk; of `here`, a root and a path below it, without references."""


class View:
    """What the index and the open buffers of `root` say to the file at `path`. Raises IndexDamaged."""

    def __init__(self, reader: Reader, root: str, path: str, unsaved: Unsaved) -> None:
        self.path = path
        self._reader = reader
        self._fresh = {p: found for (r, p), found in unsaved.items() if r == root and not denied(p)}
        self._memory: dict[tuple[str, str], object] = {}
        self._texts = 0

    def together(self) -> AbstractContextManager[None]:
        """One state of the index for all that is asked inside."""
        return self._reader.together()

    def own(self) -> tuple[Symbol, ...]:
        """Symbols of the file itself, as it was saved or as its buffer was last parsed."""
        return self.symbols(self.path)

    def definitions(self, name: str) -> tuple[Place, ...]:
        """Where `name` is defined in other files: exported first, the nearest first."""
        return self._once("definitions", name, lambda: self._definitions(name))

    def uses(self, name: str, limit: int) -> tuple[Use, ...]:
        """Where `name` is used in other files, imports left out: unsaved buffers, then the nearest."""
        return self._once(f"uses {limit}", name, lambda: self._uses(name, limit))

    def symbols(self, path: str) -> tuple[Symbol, ...]:
        """All symbols of a file."""
        fresh = self._fresh.get(path)
        if fresh is not None:
            return fresh.parsed.symbols
        return self._once("symbols", path, lambda: self._reader.symbols(path))

    def outline(self, path: str, number: int) -> str:
        """The outline of a type by its symbol's number, or of the file for -1; empty when it has none."""
        fresh = self._fresh.get(path)
        if fresh is not None:
            return fresh.outline(number)
        return self._once("outlines", path, lambda: self._outlines(path)).get(number, "")

    def imports(self) -> tuple[tuple[Import, str], ...]:
        """The file's imports with the path each means, empty when that is outside the root. Those that were
        not saved yet have no path."""
        stored = self._reader.imports(self.path)
        fresh = self._fresh.get(self.path)
        if fresh is None:
            return stored
        known = {(item.module, item.level): target for item, target in stored}
        return tuple((item, known.get((item.module, item.level), "")) for item in fresh.parsed.imports)

    def edges(self) -> Mapping[str, float]:
        """Files that this one refers to → weight of the edge."""
        return self._once("edges", "", lambda: {e.path: e.weight for e in self._reader.edges(self.path)})

    def similar(self, bands: bytes, limit: int) -> tuple[Place, ...]:
        """Callables of other files with similar signatures; those of unsaved files are left out."""
        found = self._reader.similar(bands, limit, self.path)
        return tuple(p for p in found if p.path not in self._fresh and not denied(p.path))

    def search(self, text: str, limit: int) -> tuple[Snippet, ...]:
        """Stretches of other files that hold the words of `text`."""
        found = self._reader.search(text, limit, self.path)
        return tuple(s for s in found if s.path not in self._fresh and not denied(s.path))

    def lines(self, path: str) -> tuple[str, ...]:
        """A file's text by lines, empty when it is too long or too many files were read already."""
        return self._once("lines", path, lambda: self._lines(path))

    def cut(self, path: str, start: int, end: int) -> str:
        """Lines `start` to `end` of a file, dedented; empty when there are none."""
        return dedent("\n".join(self.lines(path)[max(0, start) : end]))

    def _definitions(self, name: str) -> tuple[Place, ...]:
        stored = self._reader.definitions(name, _CANDIDATES, self.path)
        found = [
            p for p in stored if p.path not in self._fresh and p.path != self.path and not denied(p.path)
        ]
        fresh = self._once("drafts", "", self._defined).get(name)
        if fresh:
            found = [*found, *fresh]
            found.sort(
                key=lambda p: (not p.symbol.exported, -rank.nearness(self.path, p.path), p.path, p.number)
            )
        return tuple(found)

    def _uses(self, name: str, limit: int) -> tuple[Use, ...]:
        found = list(islice(self._drafted_uses(name), limit))
        if len(found) < limit:
            hidden = {self.path, *self._fresh}
            stored = self._reader.callers(name, limit + _HIDDEN, self.path)
            found += (u for u in stored if u.path not in hidden and not denied(u.path))
        return tuple(found[:limit])

    def _defined(self) -> dict[str, list[Place]]:
        """Name → its definitions in unsaved buffers of other files."""
        known: dict[str, list[Place]] = {}
        for path, fresh in self._fresh.items():
            for number, symbol in enumerate(fresh.parsed.symbols if path != self.path else ()):
                known.setdefault(symbol.name, []).append(Place(path=path, number=number, symbol=symbol))
        return known

    def _drafted_uses(self, name: str) -> Iterator[Use]:
        """Uses in unsaved buffers of other files."""
        for path, fresh in self._fresh.items():
            if path == self.path or name.encode() not in fresh.source:
                continue
            symbols = fresh.parsed.symbols
            for r in fresh.parsed.references:
                if r.name == name and r.role != "import":
                    yield Use(path=path, reference=r, inside=symbols[r.symbol] if r.symbol >= 0 else None)

    def _outlines(self, path: str) -> dict[int, str]:
        return {o.symbol: o.text for o in self._reader.outlines(path)}

    def _lines(self, path: str) -> tuple[str, ...]:
        fresh = self._fresh.get(path)
        if fresh is not None:
            return tuple(fresh.source.decode("utf-8", "replace").split("\n"))
        self._texts += 1
        if self._texts > MOST_FILES or (row := self._reader.file(path)) is None or row.lines > _LONG:
            return ()
        lines: list[str] = []
        for chunk in self._reader.chunks(path):
            lines += [""] * (chunk.start_line - len(lines))
            lines += chunk.text.split("\n")[:-1]
        return tuple(lines)

    def _once(self, kind: str, key: str, ask: Callable[[], _T]) -> _T:
        place = kind, key
        if place not in self._memory:
            self._memory[place] = ask()
        found: _T = self._memory[place]  # type: ignore[assignment]
        return found


def dedent(text: str) -> str:
    """Text without its common indentation, as textwrap has it, and without blank lines around it."""
    lines = text.strip("\n").split("\n")
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip(" \t")]
    least, most = min(indents, default=""), max(indents, default="")
    margin = next((n for n, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), len(least))
    return "\n".join([line[margin:] if line.strip(" \t") else "" for line in lines]).rstrip()
