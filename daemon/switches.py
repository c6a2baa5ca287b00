"""How much an answer may hold where, and whether there is one inside comments and strings.

    what the request asks for → else of the last path that matches → else of its language → else of [complete]

A project's own switches, read the same way, can shorten that. `off` is off, whatever the request asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from daemon.errors import SettingsError
from daemon.nouns import CompletionRequest, Lines
from daemon.settings import Switch
from daemon.surroundings import Surroundings
from indexer.globs import MOST, Globs

OFF = "complete.lines, languages or paths switch completions off here"


class Switches(msgspec.Struct, frozen=True):
    """Those of the user, or of one project. `paths`: patterns and what holds where they match."""

    lines: Lines = "free"
    languages: dict[str, Lines] = {}
    paths: tuple[tuple[Globs, Lines], ...] = ()

    def at(self, names: Sequence[str], languages: Sequence[str]) -> Lines:
        """Of a file by its `names` below folders that hold it, and by what its language is called."""
        found = [lines for patterns, lines in self.paths if any(map(patterns.match, names))]
        if found:
            return found[-1]
        return next((self.languages[name] for name in languages if name in self.languages), self.lines)


def switches(complete: Mapping[str, Any], where: str) -> Switches:
    """Of the values of a [complete] section. Raises SettingsError naming `where` and the key."""
    paths: tuple[Switch, ...] = complete.get("paths", ())
    if len(paths) > MOST:
        raise SettingsError(f"{where}: complete.paths has {len(paths)} entries", f"At most {MOST} are read")
    return Switches(
        lines=complete.get("lines", "free"),
        languages={name.lower(): lines for name, lines in complete.get("languages", {}).items()},
        paths=tuple((globs("complete.paths", (one.pattern,), where), one.lines) for one in paths),
    )


def globs(key: str, patterns: tuple[str, ...], where: str) -> Globs:
    """The patterns of `key`. Raises SettingsError naming it."""
    try:
        return Globs(patterns)
    except ValueError as error:
        raise SettingsError(f"{where}: {key}: {error}", "Patterns are those of .gitignore") from error


def hushed(around: Surroundings, request: CompletionRequest) -> str:
    """Why nothing is answered at this cursor; empty when something is. Where the language is not known,
    nobody knows what a string is."""
    if request.warm or not around.language:
        return ""
    if around.zone == "comment" and not request.comments:
        return "inside a comment: complete.comments is off, and nobody asked for it"
    if around.zone == "string" and not request.strings:
        return "inside a string: complete.strings is off, and nobody asked for it"
    return ""
