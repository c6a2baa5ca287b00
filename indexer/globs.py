"""Which paths a list of patterns leaves out: .gitignore's patterns without `!` and escapes.

They may come from a hostile checkout, so no pattern can make matching slow: fnmatch's expressions never go
back over a `*`, and `**` is followed as a set of states. Paths are relative to the folder that the list is
of, with `/`; what is below a folder that matches is left out with it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable

MOST = 64
"""Patterns of one list."""
_LENGTH = 200
_PARTS = 16
_Match = Callable[[str], object]
_Part = _Match | None
"""None is `**`: any number of folders."""


class Globs:
    """One list. Raises ValueError saying which pattern is wrong, and how."""

    def __init__(self, patterns: Iterable[str]) -> None:
        names: tuple[list[str], list[str]] = ([], [])
        self._places: list[tuple[tuple[_Part, ...], bool]] = []
        wanted = tuple(patterns)
        if len(wanted) > MOST:
            raise ValueError(f"there are {len(wanted)} patterns, at most {MOST} are read")
        for pattern in wanted:
            parts, only_folders = _parts(pattern)
            if len(parts) == 1 and not pattern.startswith("/"):
                names[only_folders].append(fnmatch.translate(parts[0]))
            else:
                self._places.append((tuple(map(_compile, parts)), only_folders))
        self._any, self._folder = (re.compile("|".join(found)).match if found else None for found in names)
        self._empty = not wanted

    def match(self, path: str, folder: bool = False) -> bool:
        """Whether `path`, or a folder above it, is left out. `folder`: it is one itself."""
        if self._empty or not path or path == ".":
            return False
        parts = path.split("/")
        if self._any is not None and any(map(self._any, parts)):
            return True
        if self._folder is not None and any(map(self._folder, parts if folder else parts[:-1])):
            return True
        return any(_leads_into(place, parts if folder or not o else parts[:-1]) for place, o in self._places)


def _parts(pattern: str) -> tuple[list[str], bool]:
    """Names between the slashes; whether only folders are meant."""
    only_folders = pattern.endswith("/")
    bare = pattern.removeprefix("/").removesuffix("/").replace("[^", "[!")
    parts = bare.split("/")
    wrong = ""
    if pattern.startswith("!"):
        wrong = "begins with `!`, but a list can only leave out"
    elif "\\" in pattern or not pattern.isprintable():
        wrong = "holds a backslash or a control character"
    elif len(pattern) > _LENGTH or len(parts) > _PARTS:
        wrong = f"is longer than {_LENGTH} characters or {_PARTS} names"
    elif not {"", ".", ".."}.isdisjoint(parts):
        wrong = "has a part that is no name"
    if wrong:
        raise ValueError(f"the pattern {pattern[:_LENGTH]!r} {wrong}")
    return ([*parts, "*"] if parts[-1] == "**" else parts), only_folders


def _compile(part: str) -> _Part:
    return None if part == "**" else re.compile(fnmatch.translate(part)).match


def _leads_into(place: tuple[_Part, ...], parts: list[str]) -> bool:
    """Whether `place` matches the first of `parts`, however many; follows all ways at once."""
    ways = _through(place, {0})
    for name in parts:
        following = set()
        for at in ways:
            match = place[at]
            if match is None:
                following.add(at)
            elif match(name):
                following.add(at + 1)
        ways = _through(place, following)
        if len(place) in ways:
            return True
        if not ways:
            return False
    return False


def _through(place: tuple[_Part, ...], ways: set[int]) -> set[int]:
    """`ways` and those that begin behind a `**` that stands for no folder at all."""
    for first in sorted(ways):
        at = first
        while at < len(place) and place[at] is None:
            at += 1
            ways.add(at)
    return ways
