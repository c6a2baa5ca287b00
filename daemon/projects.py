"""What projects narrow: the `.foretype.toml` at the top of each checkout or indexed folder around a file.

Several that hold a file narrow one after the other. What one leaves out of completions is left out
everywhere: no answer in it, none of its text in a prompt, no row of it in the index.
"""

from __future__ import annotations

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

from daemon import roots
from daemon.documents.document import language_of
from daemon.errors import SettingsError
from daemon.narrowing import shorter
from daemon.nouns import Allowance, CompletionRequest, Lines
from daemon.projectfile import NAME, Project, clean, load
from daemon.ranges import least
from daemon.settings import Settings
from daemon.switches import Switches, globs, switches
from indexer.frames import RootSpec
from indexer.globs import Globs

_log = logging.getLogger(__name__)
_KEEP = 256
_FRESH_S = 5.0
"""How long it is believed where a file's projects begin; what they say is looked at each time."""
_BY_ENDING = {
    "htm": "html", "markdown": "markdown", "md": "markdown", "rst": "restructuredtext", "tex": "latex",
    "txt": "plaintext", "yml": "yaml",
}  # fmt: skip
"""Languages that we have no grammar of and that LSP calls otherwise than the endings of their files."""
_Stamp = tuple[int, ...]
T = TypeVar("T")


class Narrowing(msgspec.Struct, frozen=True):
    """What the user's patterns and all projects of one document say together."""

    off: str = ""
    """Why nothing is completed in it; empty when something may be."""
    values: tuple[dict[str, Any], ...] = ()
    left_out: tuple[tuple[str, Globs], ...] = ()
    """Folder, and what is left out below it."""
    switches: tuple[tuple[Switches, tuple[str, ...]], ...] = ()
    """The user's, then those of projects; each with the file's names that its patterns may match."""
    comments: bool = False
    strings: bool = False
    """Whether there are answers inside of these without being asked for."""

    def apply(self, request: CompletionRequest) -> CompletionRequest:
        """The same question with lower limits, whatever limits it came with."""
        for values in self.values:
            request = _narrower(request, values)
        request = msgspec.structs.replace(
            request,
            limits=msgspec.structs.replace(request.limits, lines=self._lines(request)),
            comments=self.comments or request.comments or request.manual,
            strings=self.strings or request.strings or request.manual,
        )
        if not self.left_out or not request.extras:
            return request
        extras = tuple(extra for extra in request.extras if not self._leaves_out(extra.filename))
        return msgspec.structs.replace(request, extras=extras)

    def _lines(self, request: CompletionRequest) -> Lines:
        asked = request.limits.lines
        if not self.switches:
            return asked
        named = _called(request)
        (users, names), *projects = self.switches
        own = users.at(names, named)
        said_nothing = asked in ("auto", users.lines)  # doors put the setting in its place
        if own == "off" or said_nothing:
            asked = own
        for switched, names in projects:
            asked = shorter(asked, switched.at(names, named))
        return asked

    def _leaves_out(self, name: str) -> bool:
        return any(found.match(_inner(name, top)) for top, found in self.left_out)


def _called(request: CompletionRequest) -> list[str]:
    """Its language as we call it and as the editor does, else by the ending of the file."""
    path = request.path or ""
    found = language_of(path, request.prefix[:200].encode(), request.language)
    named = [found.name] if found is not None else []
    named += [request.language.lower()] if request.language else []
    ending = PurePath(path).suffix[1:].lower()
    return named or [_BY_ENDING.get(ending, ending)]


class Projects:
    """Remembers what was read; a request costs one stat for each project that holds its file."""

    def __init__(self, chosen: Settings) -> None:
        """Raises SettingsError when one of the user's own patterns is none."""
        self._settings = chosen
        self._own = globs("complete.ignore", chosen.complete.ignore, "settings")
        globs("index.ignore", chosen.index.ignore, "settings")
        self._switches = switches(msgspec.structs.asdict(chosen.complete), "settings")
        self._tops: OrderedDict[str, tuple[float, tuple[tuple[str, str], ...]]] = OrderedDict()
        self._read: OrderedDict[str, tuple[_Stamp, Project]] = OrderedDict()
        self._roots: tuple[object, frozenset[str]] = ((), frozenset())

    def of(self, path: str | None) -> Narrowing:
        """For one request. Of a file that is not named in full no project is known."""
        if not self._settings.complete.on:
            return Narrowing(off="complete.on is false in the settings")
        named = _local(path)
        places = self._holding(named) if named else ()
        names = (*(inner for _, inner in places), _inner(named or path or "", os.sep))
        if any(map(self._own.match, names)):
            return Narrowing(off="complete.ignore in the settings leaves this file out")
        values, left_out, switched = [], [(os.sep, self._own)], [(self._switches, names)]
        comments, strings = self._settings.complete.comments, self._settings.complete.strings
        for top, inner in places:
            if (project := self._at(top)) is None:
                continue
            if project.values.get("complete.on") is False or project.left_out.match(inner):
                return Narrowing(off=f"{clean(os.path.join(top, NAME))} switches completions off here")
            values.append(project.values)
            left_out.append((top, project.left_out))
            switched.append((project.switches, (inner,)))
            comments &= project.values.get("complete.comments", True)
            strings &= project.values.get("complete.strings", True)
        return Narrowing(
            values=tuple(values),
            left_out=tuple(left_out),
            switches=tuple(switched),
            comments=comments,
            strings=strings,
        )

    def spec(self, spec: RootSpec) -> RootSpec:
        """A root as it may be indexed."""
        own, most = self._settings, []
        ignore = [("", own.complete.ignore), ("", own.index.ignore)]
        for top, inner in _climb(os.path.join(os.path.realpath(spec.path), NAME), self._registered()):
            if (project := self._at(top)) is None:
                continue
            lead, values = inner.removesuffix(NAME), project.values
            ignore += [(lead, values.get(key, ())) for key in ("complete.ignore", "index.ignore")]
            if values.get("index.on") is False:
                ignore.append(("", ("*",)))
            most += [values["index.max_files"]] if "index.max_files" in values else []
        kept = tuple((lead, patterns) for lead, patterns in ignore if patterns)
        return msgspec.structs.replace(spec, ignore=kept, max_files=min(most, default=None))

    def refused(self) -> list[dict[str, str]]:
        """Project files met so far that count as absent: `file` and `reason`, safe to print."""
        for top in list(self._read):
            self._at(top)
        return [
            {"file": clean(os.path.join(top, NAME)), "reason": project.refused}
            for top, (_, project) in self._read.items()
            if project.refused
        ]

    def _holding(self, named: str) -> tuple[tuple[str, str], ...]:
        """(top of a project, the file's path in it), the innermost first; of a linked file at both places."""
        now = time.monotonic()
        known = self._tops.get(named)
        if known is None or now - known[0] > _FRESH_S:
            folder, name = os.path.split(named)
            try:
                places = (os.path.join(os.path.realpath(folder), name), os.path.realpath(named))
            except (OSError, ValueError):
                return ()
            tops = self._registered()
            found = tuple(one for place in dict.fromkeys(places) for one in _climb(place, tops))
            known = _keep(self._tops, named, (now, found))
        return known[1]

    def _registered(self) -> frozenset[str]:
        stamp = roots.stamp()
        if self._roots[0] != stamp:
            try:
                found = frozenset(spec.path for spec in roots.specs(self._settings.index))
            except SettingsError:  # whoever keeps the index says so
                found = self._roots[1]
            self._roots = (stamp, found)
        return self._roots[1]

    def _at(self, top: str) -> Project | None:
        """The file at `top`, read anew when it is another one; None when there is none."""
        stamp = _stamp(Path(top, NAME))
        if stamp is None:
            self._read.pop(top, None)
            return None
        known = self._read.get(top)
        if known is None or known[0] != stamp:
            project = load(Path(top, NAME), self._settings)
            if project.refused and (known is None or known[1].refused != project.refused):
                _log.warning("%s is not used: %s", clean(os.path.join(top, NAME)), project.refused)
            known = _keep(self._read, top, (stamp, project))
        return known[1]


def _climb(place: str, registered: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Checkouts and registered folders that hold `place`, up to the home folder."""
    home = os.path.realpath(os.path.expanduser("~"))
    here = os.path.dirname(place)
    while True:
        if here in registered or os.path.lexists(os.path.join(here, ".git")):
            yield here, os.path.relpath(place, here).replace(os.sep, "/")
        above = os.path.dirname(here)
        if here in (above, home):
            return
        here = above


def _inner(name: str, top: str) -> str:
    """`name` as seen from `top`, with `/`; whole when it is not below."""
    below = os.path.relpath(name, top) if os.path.isabs(name) and _is_below(name, top) else name
    return below.replace(os.sep, "/").strip("/")


def _is_below(name: str, top: str) -> bool:
    return name.startswith(top if top.endswith(os.sep) else top + os.sep)


def _local(path: str | None) -> str | None:
    """An absolute path of this machine, also out of a `file:` address; None for anything else."""
    if not path or len(path) > 4096:
        return None
    if path.startswith("file:"):
        try:
            path = url2pathname(urlsplit(path).path)
        except ValueError:
            return None
    return path if os.path.isabs(path) and "\0" not in path else None


def _narrower(request: CompletionRequest, values: dict[str, Any]) -> CompletionRequest:
    replace, get = msgspec.structs.replace, values.get
    limits, allowed = request.limits, request.allowance
    time_ms = get("complete.time_ms")
    after = limits.milliseconds_after_line
    return replace(
        request,
        limits=replace(
            limits,
            tokens=least(limits.tokens, get("complete.max_tokens")),
            milliseconds=_lower(limits.milliseconds, time_ms),
            milliseconds_after_line=None if after is None else least(after, time_ms),
        ),
        allowance=Allowance(
            prefix=_lower(allowed.prefix, get("context.prefix_tokens")),
            suffix=_lower(allowed.suffix, get("context.suffix_tokens")),
            middle=_lower(allowed.middle, get("context.middle_tokens")),
            extras=_lower(allowed.extras, get("context.extra_tokens")),
        ),
    )


def _lower(one: int | None, other: int | None) -> int | None:
    return other if one is None else least(one, other)


def _stamp(file: Path) -> _Stamp | None:
    try:
        found = os.lstat(file)
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _keep(kept: OrderedDict[str, T], key: str, value: T) -> T:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > _KEEP:
        kept.popitem(last=False)
    return value
