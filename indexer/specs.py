"""git's ignore rules by pathspec, for roots that git cannot speak about.

One spec for each folder with an ignore file; the nearest one that says anything decides, and nothing below an
ignored folder counts. Paths are relative to the root, with `/`. Links are never followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

SKIPPED_FOLDERS = frozenset((
    ".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", ".tox", ".nox", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", ".cache", ".gradle", ".terraform",
))  # fmt: skip
"""Never entered below a root outside every checkout, where often no ignore file speaks for them."""

_IGNORE_BYTES = 1_048_576
_Patterns = tuple[tuple[bool, Callable[[str], object]], ...]
"""(ignores or not, match), the last line first."""
_Spec = tuple[int, str, _Patterns]
"""Characters to cut from a path's start, what to put there instead, the patterns."""
_Specs = tuple[_Spec, ...]


class Rules(Protocol):
    """What counts below one root."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Folders, absolute, whose HEAD, index and exclude change the answer."""
        ...

    def listing(self) -> list[str]:
        """Every path that counts, sorted: files, links and perhaps special files; some may be gone by now."""
        ...

    def select(self, paths: Sequence[str]) -> set[str]:
        """Those of `paths` that count; a folder stands for everything that counts below it."""
        ...

    def ignored_folders(self, folders: Sequence[str]) -> set[str]:
        """Those of `folders` that nothing new can count below."""
        ...


def above(path: str) -> Iterator[str]:
    """Folders that hold `path`, the nearest first, without the root itself."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def is_folder(path: str) -> bool:
    """True for a folder that is no link."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def checkout_above(folder: str) -> str | None:
    """The nearest folder from `folder` upwards that holds `.git`."""
    here = os.path.abspath(folder)
    while not os.path.lexists(os.path.join(here, ".git")):
        if os.path.dirname(here) == here:
            return None
        here = os.path.dirname(here)
    return here


class SpecRules:
    """`nested` makes the rules of a checkout found below a root that is in none."""

    def __init__(self, root: str, depth: int, nested: Callable[[str], Rules]) -> None:
        self.marks: tuple[str, ...] = ()
        self._root = root
        self._depth = depth
        self._new = nested
        self._checkout = checkout_above(root)
        self._outer = _outer(os.path.abspath(root), self._checkout)
        self._nested: dict[str, Rules] | None = None

    def listing(self) -> list[str]:
        """See Rules."""
        self._nested, self.marks = {}, ()
        return sorted(self._walk(""))

    def select(self, paths: Sequence[str]) -> set[str]:
        """See Rules."""
        nested = self._known_nested()
        found: set[str] = set()
        for path in paths:
            if path != "." and self._shut(path):
                continue
            inner = next((a for a in (path, *above(path)) if a in nested), None)
            if inner is not None:
                selected = nested[inner].select([path[len(inner) + 1 :] or "."])
                found.update(f"{inner}/{p}" for p in selected)
            elif is_folder(self._at(path)):
                found.update(self._walk("" if path == "." else path))
            elif os.path.lexists(self._at(path)):
                found.add(path)
        return found

    def ignored_folders(self, folders: Sequence[str]) -> set[str]:
        """See Rules."""
        nested = self._known_nested()
        found = {f for f in folders if self._shut(f)}
        for inner, rules in nested.items():
            asked = [f[len(inner) + 1 :] for f in folders if f.startswith(f"{inner}/")]
            found.update(f"{inner}/{f}" for f in (rules.ignored_folders(asked) if asked else ()))
        return found

    def _known_nested(self) -> dict[str, Rules]:
        if self._nested is None:
            self.listing()
        return self._nested or {}

    def _walk(self, start: str) -> Iterator[str]:
        waiting = [(start, self._chain(start))]
        while waiting:
            folder, specs = waiting.pop()
            entries = _entries(self._at(folder))
            if folder and ".git" in entries:
                yield from self._enter(folder, entries[".git"])
                continue
            if folder and self._checkout is None and ("pyvenv.cfg" in entries or "CACHEDIR.TAG" in entries):
                continue
            if ".gitignore" in entries:
                specs = self._with(folder, specs)
            for name, holds_more in entries.items():
                path = f"{folder}/{name}" if folder else name
                if self._never(name, holds_more) or _matches(specs, f"{path}/" if holds_more else path):
                    continue
                if not holds_more:
                    yield path
                elif path.count("/") < self._depth:
                    waiting.append((path, specs))

    def _shut(self, path: str) -> bool:
        """True when `path` or a folder above it is ignored. A nested checkout decides about what it holds."""
        nested, specs = self._known_nested(), self._with("", self._outer)
        for part in (*reversed(tuple(above(path))), path):
            holds_more = part != path or is_folder(self._at(part))
            if part in nested:
                return False
            if self._never(part.rpartition("/")[2], holds_more):
                return True
            if holds_more and os.path.lexists(os.path.join(self._at(part), ".git")):
                return True
            if _matches(specs, f"{part}/" if holds_more else part):
                return True
            specs = self._with(part, specs) if holds_more else specs
        return False

    def _never(self, name: str, holds_more: bool) -> bool:
        return name == ".git" or (holds_more and self._checkout is None and name in SKIPPED_FOLDERS)

    def _enter(self, folder: str, cloned: bool) -> Iterator[str]:
        """Files of a checkout below. Below a checkout only submodules are entered: their `.git` is a file."""
        if self._checkout is not None and cloned:
            return
        inside = self._at(folder)
        rules = SpecRules(inside, self._depth, self._new) if self._checkout else self._new(inside)
        found = rules.listing()
        if self._nested is not None:
            self._nested[folder] = rules
        self.marks += rules.marks
        yield from (f"{folder}/{path}" for path in found)

    def _chain(self, folder: str) -> _Specs:
        specs = self._with("", self._outer) if folder else self._outer
        for part in reversed(tuple(above(folder))):
            specs = self._with(part, specs)
        return specs

    def _with(self, folder: str, specs: _Specs) -> _Specs:
        spec = _read(os.path.join(self._at(folder), ".gitignore"))
        return ((len(folder) + 1 if folder else 0, "", spec), *specs) if spec is not None else specs

    def _at(self, path: str) -> str:
        return os.path.join(self._root, path) if path else self._root


def _matches(specs: _Specs, path: str) -> bool:
    for cut, lead, patterns in specs:
        name = lead + path[cut:]
        for ignores, match in patterns:
            if match(name):
                return ignores
    return False


def _outer(root: str, checkout: str | None) -> _Specs:
    """What speaks from outside the root: ignore files above it, info/exclude, the user's own file."""
    found: list[_Spec] = []
    here = root
    while checkout is not None and here != checkout:
        here = os.path.dirname(here)
        found += _placed(os.path.join(here, ".gitignore"), root, here)
    if checkout is not None:
        found += _placed(os.path.join(_git_folder(checkout), "info", "exclude"), root, checkout)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(Path.home(), ".config")
    found += _placed(os.path.join(home, "git", "ignore"), root, checkout or root)
    return tuple(found)


def _git_folder(checkout: str) -> str:
    """The git directory that is common to all work trees of a checkout."""
    found = os.path.join(checkout, ".git")
    try:
        if not is_folder(found):
            lead, _, named = Path(found).read_text(encoding="utf-8").strip().partition(": ")
            found = os.path.join(checkout, named) if lead == "gitdir" else found
        common = os.path.join(found, "commondir")
        if os.path.isfile(common):
            found = os.path.join(found, Path(common).read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        return found
    return found


def _placed(file: str, root: str, base: str) -> list[_Spec]:
    spec = _read(file)
    lead = "" if base == root else f"{os.path.relpath(root, base)}/".replace(os.sep, "/")
    return [(0, lead, spec)] if spec is not None else []


def _read(file: str) -> _Patterns | None:
    """The patterns of an ignore file; None when it has none. A link counts as absent, as it does for git."""
    try:
        found = os.lstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _IGNORE_BYTES:
            return None
        text = Path(file).read_bytes().decode("utf-8-sig", "surrogateescape")
    except (OSError, ValueError):
        return None
    patterns = [p for line in text.split("\n") if line.strip() and (p := _pattern(line)) is not None]
    return tuple(reversed(patterns)) or None


def _pattern(line: str) -> tuple[bool, Callable[[str], object]] | None:
    """None for a comment, and for what git would not understand either.

    pathspec's expressions also match what lies below a folder; here each folder is asked about by itself, so
    they have to reach the end of the name.
    """
    try:
        found = GitIgnoreSpecPattern(_inside(line))
    except ValueError:
        return None
    if found.include is None or found.regex is None:
        return None
    return found.include, re.compile(found.regex.pattern + r"\Z").search


def _inside(line: str) -> str:
    """`a/**` is what is inside `a`, not `a` itself, which pathspec takes it for when asked about a folder."""
    bare = line.rstrip("\r ")
    if bare.endswith("/**"):
        return f"{bare}/*"
    return f"{bare}*/" if bare.endswith("/**/") else line


def _entries(folder: str) -> dict[str, bool]:
    """Name → is a folder (links are not), sorted; empty when the folder cannot be read."""
    try:
        with os.scandir(folder) as found:
            return {e.name: e.is_dir(follow_symlinks=False) for e in sorted(found, key=lambda e: e.name)}
    except OSError:
        return {}
