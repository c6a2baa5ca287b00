"""What is known of the text around a request, and where the person worked.

A Document is made by documents/mirror.py. Its text is LF only; bytes count in `source`, its UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from indexer.languages import registry
from indexer.languages.registry import Language
from indexer.syntax import Tree

RegionKind = Literal["edited", "visited", "accepted"]

_ALIASES = {
    "javascriptreact": "javascript",
    "typescriptreact": "tsx",
    "csharp": "c_sharp",
    "cs": "c_sharp",
    "shellscript": "bash",
    "sh": "bash",
    "zsh": "bash",
    "c++": "cpp",
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
    "golang": "go",
}
"""What editors call languages → our names."""


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One state of a text."""

    path: str = ""
    """As the client named it; empty when unknown."""
    root: str = ""
    """Absolute folder of the index that holds the file; empty when none does."""
    relative: str = ""
    """Its path below `root`, with `/`."""
    language: str = ""
    text: str = ""
    """The whole file, or the window that the client sent."""
    offset: int = -1
    """Code points of `text` before the cursor; -1 when there is no cursor."""
    whole: bool = False
    open: bool = False
    version: int = 0
    """Grows with every change that the mirror saw."""
    source: bytes = b""
    tree: Tree | None = None
    """Of `source`; only of whole documents."""
    moved: bool = False
    """The tree is that of an older text, its positions moved by what changed since."""
    why: str = ""
    """Why there is no tree, or no path."""


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of a file that was worked on. Lines from 0, end exclusive; `when` is monotonic seconds."""

    path: str
    start_line: int
    end_line: int
    text: str
    when: float
    kind: RegionKind
    root: str = ""
    relative: str = ""


def language_of(path: str, source: bytes, named: str | None) -> Language | None:
    """The language of a file by its name or first line, else by what its editor calls it."""
    found = registry.language_for(path.replace("\\", "/"), source[: registry.HEAD]) if path else None
    if found is not None or not named:
        return found
    name = named.lower()
    return registry.find(_ALIASES.get(name, name))
