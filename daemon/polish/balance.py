"""Brackets of a text and of the document that it goes into: none is closed twice, none is left open by a cut.

A text that a limit, or a rule, ended in the middle may have opened what it never closed. A block with a body is
closed for it; a line further down that leaves a bracket open goes. The opening line stays as it is: what it
opens, the person goes on with.
"""

from __future__ import annotations

import re

from daemon.polish.around import Around
from daemon.polish.brackets import CLOSER_OF, CLOSERS, scan
from daemon.polish.trim import BLANKS

_NOTHING = re.compile(r"[ \t]*(//[^\n]*|#[^\n]*|/\*[^\n]*|--[^\n]*)?(?=\n|\Z)")


def closers(text: str, quote: str, comment: str) -> list[tuple[int, str]]:
    """(offset, bracket) of those that close something opened before the text."""
    return [(at, char) for at, char in scan(text, quote, comment).closers if char in CLOSERS]


def surplus(found: list[tuple[int, str]], room: Around, end: int) -> int:
    """Where the first of these closers stands that nothing above is open for; `end` if there is none."""
    for (at, char), may in zip(found, room.closers.ljust(len(found)), strict=False):
        if char != may:
            return at
    return end


def tidy_end(text: str, quote: str, comment: str) -> str:
    """The text up to the first line, but its opening one, that leaves a bracket open and has no body below.

    A longer text never ends earlier: what has a body keeps it, and what is closed stays closed.
    """
    opening = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    while True:
        lines = _open_lines(text, quote, comment)
        bad = next((start for start, sound in lines if start > opening and not sound), 0)
        if not bad:
            return text
        text = text[: bad - 1]


def closed(text: str, head: str, wanted: int, quote: str, comment: str) -> str:
    """The text with closers for the blocks that it left open, save the `wanted` outermost: they are there.

    Each closer goes on a line of its own, indented as the line that opened it; `head` stands before the first.
    """
    opened = list(scan(text, quote, comment).opened)[wanted:]
    sound = {start for start, is_sound in _open_lines(text, quote, comment) if is_sound}
    while opened:
        start = text.rfind("\n", 0, opened[-1][0]) + 1
        line = [char for at, char in opened if at >= start]
        if start not in sound:
            return text
        del opened[-len(line) :]
        whole = text[start:] if start else head + text
        indent = whole[: len(whole) - len(whole.lstrip(" \t"))]
        text = f"{text.rstrip(BLANKS)}\n{indent}{''.join(CLOSER_OF[char] for char in reversed(line))}"
    return text


def _open_lines(text: str, quote: str, comment: str) -> list[tuple[int, bool]]:
    """(offset, soundness) of every line that leaves brackets open: a sound one ends with one, and has a body."""
    lines: dict[int, bool] = {}
    for at, _ in scan(text, quote, comment).opened:
        end = _NOTHING.match(text, at + 1)
        lines[text.rfind("\n", 0, at) + 1] = end is not None and bool(text[end.end() :].strip())
    return list(lines.items())
