"""Lines that clients put above the text before the cursor, as comments for whatever model reads them.

    // Path: lib/pi.ts             Continue: other files, and the end of the document's own path
    // export const PI = 3.14
    // src/area.ts
    # language: python             minuet
    # indentation: use 4 spaces for a tab
    # Language: Python (python)    twinny
    # File uri: file:///shapes/src/area.py (python)

They are no part of the document: they hide the file that it is, and change from request to request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import url2pathname

from daemon.documents.document import language_of
from daemon.doors.templates import is_path
from daemon.nouns import Extra

_MINUET = re.compile(r"\S{0,6} ?language: ([\w.+#-]+)[^\n]*\n\S{0,6} ?indentation: use [^\n]*\n")
_TWINNY = re.compile(r"\n{1,3}\S+ Language: [^\n]*\n\S+ File uri: (\S+) \(([\w.+#-]+)\)[^\n]*\n")
_CONTINUE = re.compile(r"(\n?)((?://|#|--|;;?|%) )(Path: )?\S[^\n]*\n")
_PATH = "Path: "
_MOST = 3000
"""Lines of a preamble."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A text without its preamble, and what that told. `path` is a full one."""

    text: str
    path: str = ""
    language: str = ""
    extras: tuple[Extra, ...] = ()


def take_off(text: str) -> Bare:
    """`text`, LF only, without the preamble of a client that is known to write one."""
    if found := _MINUET.match(text):
        return Bare(text[found.end() :], language=found[1])
    if found := _TWINNY.match(text):
        return Bare(text[found.end() :], _full(found[1]), found[2])
    if found := _CONTINUE.match(text):
        return _continued(text, len(found[1]), found[2], named=bool(found[3])) or Bare(text)
    return Bare(text)


def _full(address: str) -> str:
    """The path that a `file:` address names; empty for another."""
    try:
        parts = urlsplit(address)
        return url2pathname(parts.path) if parts.scheme == "file" else ""
    except ValueError:
        return ""


def _continued(text: str, at: int, mark: str, *, named: bool) -> Bare | None:
    """Up to the last line of the comment that is nothing but the path of a source file. Without other files
    there is but one line, and an empty one before it."""
    if not named and not at:
        return None
    lines: list[str] = []
    ends: list[int] = []
    while text.startswith(mark, at) and len(lines) < (_MOST if named else 1):
        if (end := text.find("\n", at)) < 0:
            break
        lines.append(text[at + len(mark) : end])
        ends.append(at := end + 1)
    own = next((n for n in reversed(range(len(lines))) if _language(lines[n])), None)
    if own is None:
        return None
    return Bare(text[ends[own] :], language=_language(lines[own]), extras=_extras(lines[:own]))


def _language(line: str) -> str:
    """Of the source file whose path a line is; empty for any other line."""
    found = language_of(line, b"", None) if is_path(line) else None
    return found.name if found else ""


def _extras(lines: list[str]) -> tuple[Extra, ...]:
    files: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith(_PATH):
            files.append((line.removeprefix(_PATH), []))
        elif files:
            files[-1][1].append(line)
    return tuple(Extra(text="\n".join(rows) + "\n", filename=name) for name, rows in files if any(rows))
