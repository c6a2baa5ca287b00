"""From notices to changes: which noticed paths count, which are gone, which folders are worth watching.

Remembers what counted at the last look, so that a save of a known file asks nobody, and what did not, so that
a log file being written does not either.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from indexer import git
from indexer.content import DEFAULTS, Caps
from indexer.ignore import rules_for
from indexer.records import FileChange
from indexer.specs import above

_REMEMBERED = 20_000


class Sieve:
    """One root's. Used by one thread."""

    def __init__(self, root: str, caps: Caps = DEFAULTS) -> None:
        self._root = root
        self._caps = caps
        self._case_blind = _case_blind(root)
        self._listed: set[str] = set()
        self._refused: set[str] = set()
        self.folders: set[str] = set()
        """Folders that held something that counts."""
        self._rules = rules_for(root, caps.depth, caps.ignore)
        self._outside: tuple[str, ...] = ()
        self._stamps: list[tuple[int, int, int] | None] = []

    @property
    def marks(self) -> tuple[str, ...]:
        """Folders, absolute, of git's own files that change what counts."""
        return self._rules.marks

    def refresh(self) -> bool:
        """Ask anew what counts. True when that is not what it was."""
        self._outside = git.outside(self._root)
        self._outside += tuple(os.path.join(mark, "config") for mark in self._rules.marks)
        self._stamps = self._outside_stamps()
        self._rules = rules_for(self._root, self._caps.depth, self._caps.ignore)
        before = self._listed
        self._listed = set(self._rules.listing())
        self._refused.clear()
        self.folders = set()
        for path in self._listed:
            self._note_folders(path)
        return self._listed != before

    def outside_changed(self) -> bool:
        """Whether the user's own ignore file, or settings that may name one, changed since the last refresh.
        Some stats."""
        return self._outside_stamps() != self._stamps

    def _outside_stamps(self) -> list[tuple[int, int, int] | None]:
        stamps: list[tuple[int, int, int] | None] = []
        for file in self._outside:
            try:
                found = os.stat(file)
                stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
            except (OSError, ValueError):
                stamps.append(None)
        return stamps

    def changes(self, paths: Iterable[str]) -> list[FileChange]:
        """What really happened to `paths`, by stat. Folders stand for everything below them."""
        present: set[str] = set()
        unknown: set[str] = set()
        gone: set[str] = set()
        folders: set[str] = set()
        emptied: set[str] = set()
        for path in paths:
            kind = self._kind(path)
            if kind != "file" and path in self._listed:
                gone.add(path)
            if kind == "folder":
                folders.add(path)
            elif kind == "file":
                (present if path in self._listed else unknown).add(path)
            elif kind == "special":
                present.add(path)
                self._listed.add(path)
            else:
                self._refused.discard(path)
            if path in self.folders:
                emptied.add(path)
        if folders:  # other rules may have come with them
            self._refused = {p for p in self._refused if folders.isdisjoint(above(p))}
        chosen = self._choose(unknown - self._refused, folders)
        below = self._below(emptied) - chosen
        gone |= {p for p in below if self._kind(p) in ("", "folder")}
        self._listed -= gone
        there = [FileChange(path=p) for p in sorted((present | chosen) - gone)]
        return [FileChange(path=p, gone=True) for p in sorted(gone)] + there

    def open_folders(self, start: Iterable[str]) -> Iterator[str]:
        """`start` and the folders below that are not ignored, level by level.

        A folder's content is looked at after the consumer has taken it: nothing slips through between.
        """
        level = self._not_ignored([f for f in start if self._kind(f) == "folder"])
        for _ in range(self._caps.depth + 1):
            yield from level
            below = [child for folder in level for child in self._children(folder)]
            level = self._not_ignored(below)
            if not level:
                return

    def _choose(self, unknown: set[str], folders: set[str]) -> set[str]:
        """Of paths never seen, and of everything below folders, what counts and is there."""
        if not unknown and not folders:
            return set()
        before = {p: self._stamp(p) for p in unknown}
        selected = self._rules.select(sorted(unknown | folders))
        if len(self._refused) > _REMEMBERED:
            self._refused.clear()
        # A file that came and went while git was asked was not refused.
        self._refused |= {p for p in unknown - selected if before[p] and before[p] == self._stamp(p)}
        chosen = {p for p in selected if self._kind(p) not in ("", "folder")}
        self._listed |= chosen
        for path in chosen:
            self._note_folders(path)
        return chosen

    def _below(self, folders: set[str]) -> set[str]:
        return {p for p in self._listed if not folders.isdisjoint(above(p))} if folders else set()

    def _not_ignored(self, folders: list[str]) -> list[str]:
        asked = [f for f in folders if f and f not in self.folders]
        ignored = self._rules.ignored_folders(asked) if asked else set()
        return [f for f in folders if f not in ignored]

    def _children(self, folder: str) -> list[str]:
        lead = f"{folder}/" if folder else ""
        try:
            with os.scandir(f"{self._root}/{folder}") as entries:
                return [
                    f"{lead}{e.name}" for e in entries if e.name != ".git" and e.is_dir(follow_symlinks=False)
                ]
        except OSError:
            return []

    def _kind(self, path: str) -> str:
        """file (or link), folder, special; empty when there is nothing of exactly this name."""
        full = f"{self._root}/{path}" if path else self._root
        try:
            mode = os.lstat(full).st_mode
            if self._case_blind and path and os.path.basename(path) not in os.listdir(os.path.dirname(full)):
                return ""
        except (OSError, ValueError):
            return ""
        if stat.S_ISDIR(mode):
            return "folder"
        return "file" if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else "special"

    def _stamp(self, path: str) -> tuple[int, int] | None:
        try:
            found = os.lstat(f"{self._root}/{path}")
        except (OSError, ValueError):
            return None
        return found.st_ino, found.st_ctime_ns

    def _note_folders(self, path: str) -> None:
        for folder in above(path):
            if folder in self.folders:
                return
            self.folders.add(folder)


def _case_blind(root: str) -> bool:
    """True when names that differ only in case are the same file there."""
    other = root.swapcase()
    try:
        return other != root and os.path.samefile(root, other)
    except OSError:
        return False
