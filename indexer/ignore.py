"""Which files of a root count: git's own answer where git can be asked, the same rules by pathspec elsewhere.

Untracked repositories below a git root are left alone, as git does; a root that is no checkout itself, but
holds some, gets each one's own answer. Paths are relative to the root, with `/`. Links are never followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from indexer import git
from indexer.errors import RootUnavailable
from indexer.globs import Globs
from indexer.specs import Rules, SpecRules, above, checkout_above, is_folder

IGNORE_FILES = (".gitignore", ".gitmodules")
"""Names whose change alters the list."""

_MANY = 2000
_MODULE_DEPTH = 16
_ROOTS = 64


def rules_for(root: Path | str, depth: int = 64, ignore: Sequence[tuple[str, Sequence[str]]] = ()) -> Rules:
    """The rules of `root` as it is now: git's where it lies in a checkout that git will speak about.

    `depth` bounds the folders entered by pathspec; `ignore` leaves out more (RootSpec). Raises ValueError
    for a pattern that is none.
    """
    top = os.fspath(root)
    if ignore:
        return Narrowed(rules_for(top, depth), ignore)
    marks = git.folders(top) if checkout_above(top) is not None else None
    if marks is not None and git.list_files(top, (".git",)) is not None:
        return GitRules(top, marks)
    return SpecRules(top, depth, lambda inner: rules_for(inner, depth))


def kept(root: Path | str, paths: Sequence[str], depth: int = 64) -> set[str]:
    """Those of `paths` that count below `root` now and are there; special files too, which git does not list.

    Costs one call of git, whatever their number. Raises RootUnavailable.
    """
    top = os.fspath(root)
    special = {p for p in paths if _special(os.path.join(top, p))}
    ordinary = [p for p in paths if p not in special]
    return special | (_remembered(top, depth).select(ordinary).intersection(ordinary) if ordinary else set())


def _special(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


_rules: dict[str, tuple[object, Rules]] = {}


def _remembered(top: str, depth: int) -> Rules:
    """The root's rules, made anew when another checkout speaks for it or what it tracks has changed."""
    known = _rules.get(top)
    if known is not None and known[0] == _signature(top, known[1]):
        return known[1]
    rules = rules_for(top, depth)
    if len(_rules) >= _ROOTS:
        _rules.clear()
    _rules[top] = (_signature(top, rules), rules)
    return rules


def _signature(top: str, rules: Rules) -> tuple[str | None, tuple[int, ...]]:
    stamps = []
    for mark in rules.marks:
        try:
            stamps.append(os.stat(os.path.join(mark, "index")).st_mtime_ns)
        except OSError:
            stamps.append(0)
    return checkout_above(top), tuple(stamps)


class GitRules:
    """git's own answer, submodules included. `marks`: the checkout's git directory, the common one's info."""

    def __init__(self, root: str, marks: tuple[str, str]) -> None:
        self._root = root
        self._modules: set[str] | None = None
        self._own_marks = tuple(dict.fromkeys((marks[0], os.path.join(marks[1], "info"))))
        self.marks = self._own_marks

    def listing(self) -> list[str]:
        """See Rules."""
        self._modules, self.marks = set(), self._own_marks
        return sorted(self._list("", ()))

    def _known_modules(self) -> set[str]:
        if self._modules is None:
            self.listing()
        return self._modules or set()

    def select(self, paths: Sequence[str]) -> set[str]:
        """See Rules."""
        if len(paths) > _MANY:
            wanted = set(paths)
            return {p for p in self.listing() if p in wanted or not wanted.isdisjoint(above(p))}
        return {p for top, part in self._by_checkout(paths) for p in self._list(top, part)}

    def ignored_folders(self, folders: Sequence[str]) -> set[str]:
        """See Rules."""
        modules = self._known_modules()
        rest = [f for f in folders if f not in modules]
        found = {f for f in rest if _holds_git(self._root, f)}
        for top, part in self._by_checkout([f for f in rest if f not in found]):
            answer = git.ignored(os.path.join(self._root, top), part)
            found.update(f"{top}{f}" for f in answer or ())
        return found

    def _list(self, top: str, paths: Sequence[str], level: int = 0) -> Iterator[str]:
        """Files below `top` (empty, or ending with `/`), then those of its submodules."""
        answer = git.list_files(os.path.join(self._root, top), paths)
        if answer is None:
            raise RootUnavailable("git could not list the files")  # what was known is no less true
        files, modules = answer
        yield from (f"{top}{f}" for f in files) if top else files
        for module in modules:
            inner = f"{top}{module}"
            if level < _MODULE_DEPTH and self._real(inner) and _holds_git(self._root, inner):
                self._adopt(inner)
                yield from self._list(f"{inner}/", (), level + 1)

    def _adopt(self, module: str) -> None:
        if self._modules is not None and module not in self._modules:
            self._modules.add(module)
            found = git.folders(os.path.join(self._root, module))
            self.marks += found[:1] if found is not None else ()

    def _real(self, folder: str) -> bool:
        return all(is_folder(os.path.join(self._root, part)) for part in (folder, *above(folder)))

    def _by_checkout(self, paths: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        modules = self._known_modules()
        groups: dict[str, list[str]] = {}
        for path in paths:
            top = next((a for a in (path, *above(path)) if a in modules), "") if modules else ""
            groups.setdefault(top, []).append((path[len(top) + 1 :] if top else path) or ".")
        for top, part in groups.items():
            yield f"{top}/" if top else "", part


class Narrowed:
    """`inner` without what the patterns of `ignore` match: never anything that `inner` leaves out."""

    def __init__(self, inner: Rules, ignore: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._inner = inner
        self._lists = [(lead, Globs(patterns)) for lead, patterns in ignore]

    @property
    def marks(self) -> tuple[str, ...]:
        """See Rules."""
        return self._inner.marks

    def listing(self) -> list[str]:
        """See Rules."""
        return [path for path in self._inner.listing() if not self._shut(path)]

    def select(self, paths: Sequence[str]) -> set[str]:
        """See Rules."""
        return {path for path in self._inner.select(paths) if not self._shut(path)}

    def ignored_folders(self, folders: Sequence[str]) -> set[str]:
        """See Rules."""
        return self._inner.ignored_folders(folders) | {f for f in folders if self._shut(f, folder=True)}

    def _shut(self, path: str, folder: bool = False) -> bool:
        return any(globs.match(lead + path, folder) for lead, globs in self._lists)


def _holds_git(root: str, folder: str) -> bool:
    return os.path.lexists(os.path.join(root, folder, ".git"))
