"""What a walk lists, and what git says it must list."""

from __future__ import annotations

from pathlib import Path

from support import ignore_repos as repos

from indexer import walk
from indexer.content import Caps, denied


def paths(root: Path, caps: Caps | None = None) -> set[str]:
    return {f.path for f in walk.list_files(root, caps or Caps())}


def expected(root: Path) -> set[str]:
    """git's word, minus the deny list and names that are no text."""
    return {p for p in repos.said_by_git(root) if not denied(p) and "\udcff" not in p}
