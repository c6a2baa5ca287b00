"""Which files of the root an import means, by the importing language's rules. Pure: paths in, paths out.

    Import → bases (paths without the language's endings, in order of preference) → candidates → files

A file is found by the last parts of its path, so a source root need not be known. `keys` and `Paths.keys`
meet whenever a file could be what an import means: they tell which imports to look at again when a file comes
or goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from indexer.languages.registry import Imports
from indexer.records import Import

MOST_FILES = 16
"""Files of a package that one import may mean."""
_ROOTS = ("", "src", "lib", "include", "app", "source", "python")
_SHORTEST = 2
_BUILT = ("js", "jsx", "mjs", "cjs")
"""TypeScript imports a file by the name it is built to."""


class _Base(NamedTuple):
    path: str
    fixed: bool
    """From the root exactly; else the end of a path."""


class Paths:
    """The root's paths, found by their ends. Changes with the database, in the writer's memory."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._all: set[str] = set()
        self._ends: dict[str, set[str]] = {}
        self._folders: dict[str, set[str]] = {}
        for path in paths:
            self.add(path)

    def __contains__(self, path: str) -> bool:
        return path in self._all

    def __len__(self) -> int:
        return len(self._all)

    def add(self, path: str) -> None:
        """Add a path; again is fine."""
        self._all.add(path)
        for table, key in self._places(path):
            table.setdefault(key, set()).add(path)

    def discard(self, path: str) -> None:
        """Take a path out; absent is fine."""
        self._all.discard(path)
        for table, key in self._places(path):
            found = table.get(key)
            if found is not None:
                found.discard(path)
                if not found:
                    del table[key]

    @staticmethod
    def keys(path: str) -> tuple[str, str]:
        """Under which keys imports may mean this file: its name without endings, and its directory's name."""
        parts = path.rsplit("/", 2)
        return parts[-1].split(".", 1)[0], parts[-2] if len(parts) > 1 else ""

    def ending(self, end: str) -> Iterable[str]:
        """Paths that end with these whole parts."""
        parts = end.rsplit("/", 2)
        found = self._ends.get("/".join(parts[-2:]), ())
        return found if len(parts) <= _SHORTEST else [p for p in found if p == end or p.endswith("/" + end)]

    def inside(self, folder: str) -> Iterable[str]:
        """Files directly in directories whose paths end with these whole parts."""
        name = folder.rsplit("/", 1)[-1]
        found = self._folders.get(name, ())
        return [p for p in found if ("/" + p.rsplit("/", 1)[0]).endswith("/" + folder)]

    def _places(self, path: str) -> Iterable[tuple[dict[str, set[str]], str]]:
        parts = path.split("/")
        yield self._ends, parts[-1]
        if len(parts) > 1:
            yield self._ends, "/".join(parts[-2:])
            yield self._folders, parts[-2]


def keys(item: Import, path: str, rule: Imports) -> set[str]:
    """Keys of all files that the import could ever mean; a superset is fine, a miss is not."""
    groups = _groups(item, path, rule)
    ends = {base.path.rsplit("/", 1)[-1] for group in groups for base in group}
    return {end if rule.style == "package" else end.split(".", 1)[0] for end in ends}


def targets(item: Import, path: str, rule: Imports, paths: Paths) -> tuple[str, ...]:
    """Files that the import means, the module's own first; empty when they are not in the root."""
    found: dict[str, None] = {}
    for group in _groups(item, path, rule):
        for base in group:
            hits = (
                _package(base, path, paths) if rule.style == "package" else _module(base, path, rule, paths)
            )
            if hits:
                found.update(dict.fromkeys(hits))
                break
    found.pop(path, None)
    return tuple(found)


def _groups(item: Import, path: str, rule: Imports) -> list[list[_Base]]:
    """One list of bases per thing imported, best first."""
    if rule.style == "none" or not (item.module or item.level):
        return []
    here = path.split("/")[:-1]
    if rule.style in ("relative", "include"):
        return [_beside(item.module, here, rule)]
    parts = [p for p in item.module.split(rule.separator or "/") if p]
    fixed = bool(item.level)
    if item.level:
        parts = here[: max(0, len(here) - item.level + 1)] + parts
    elif parts and parts[0] in ("crate", "self", "super"):
        parts, fixed = _rust(parts, here), False
    if rule.style == "package":
        return [[_Base("/".join(parts[n:]), n == len(parts) - 1) for n in range(len(parts))]]
    groups = [[_Base("/".join(parts), fixed)]]
    if not item.names and not item.level:
        # The last parts may be names inside the module: a class, an item, a static member.
        shorter = range(len(parts) - 1, max(0, len(parts) - 3), -1)
        groups[0] += [_Base("/".join(parts[:n]), fixed) for n in shorter]
    groups += [[_Base("/".join([*parts, name]), fixed)] for name in item.names if name.isidentifier()]
    return groups


def _beside(module: str, here: list[str], rule: Imports) -> list[_Base]:
    """A path from the importing file; where that names nothing, the end of a path."""
    module = module.strip("\"'<>").replace("\\", "/")
    near = _join(here, module)
    bases = [_Base(near, True)] if near is not None else []
    stem, dot, ending = (near or "").rpartition(".")
    if rule.style == "relative" and dot and ending in _BUILT:
        bases.append(_Base(stem, True))
    if not module.startswith("."):
        plain = module.lstrip("@~/")
        if rule.style == "include" or "/" in module:
            bases.append(_Base(plain, False))
    return bases


def _join(here: list[str], module: str) -> str | None:
    parts = list(here)
    for part in module.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _rust(parts: list[str], here: list[str]) -> list[str]:
    """`crate`, `self` and `super` as directories."""
    if parts[0] == "crate":
        root = next((i for i in range(len(here) - 1, -1, -1) if here[i] == "src"), -1)
        return here[: root + 1] + parts[1:]
    up = sum(1 for p in parts if p == "super")
    rest = [p for p in parts if p not in ("super", "self")]
    return here[: max(0, len(here) - max(0, up - 1))] + rest


def _module(base: _Base, path: str, rule: Imports, paths: Paths) -> list[str]:
    if not base.path and not base.fixed:
        return []
    for pattern in rule.candidates or ("{}",):
        name = pattern.replace("{}", base.path).lstrip("/")
        if base.fixed:
            if name in paths:
                return [name]
            continue
        hit = _nearest(paths.ending(name), path, single="/" not in base.path)
        if hit:
            return [hit]
    return []


def _package(base: _Base, path: str, paths: Paths) -> list[str]:
    """Files of the directory named, those of the importing file's own kind."""
    ending = "." + path.rsplit(".", 1)[-1]
    inside = paths.inside(base.path) if base.path else ()
    found = sorted(p for p in inside if p.endswith(ending))
    if base.fixed:
        found = [p for p in found if p.rsplit("/", 1)[0] == base.path]
    folders = {p.rsplit("/", 1)[0] for p in found}
    if not folders:
        return []
    best = min(folders, key=lambda f: (-_shared(f + "/", path), len(f), f))
    return [p for p in found if p.rsplit("/", 1)[0] == best][:MOST_FILES]


def _nearest(found: Iterable[str], path: str, *, single: bool) -> str | None:
    """The match that shares most of the importing file's directories. One word alone is too weak to be looked
    for everywhere: it must lie on that file's way up, or directly below a usual source root."""
    best: tuple[int, int, str] | None = None
    for other in found:
        if single:
            folder = other.rsplit("/", 2)[0] if other.rsplit("/", 1)[-1].startswith("__init__") else other
            folder = folder.rsplit("/", 1)[0] if "/" in folder else ""
            if folder not in _ROOTS and not path.startswith(folder + "/"):
                continue
        rank = (-_shared(other, path), len(other), other)
        if best is None or rank < best:
            best = rank
    return best[2] if best else None


def _shared(a: str, b: str) -> int:
    """Leading directories in common."""
    n = 0
    for x, y in zip(a.split("/")[:-1], b.split("/")[:-1], strict=False):
        if x != y:
            break
        n += 1
    return n
