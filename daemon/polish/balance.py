"""Brackets of a text and of the document that it goes into: none is closed twice, none is left open by a cut.

A text that a limit, or a rule, ended in the middle may have opened what it never closed. A block with a body
is closed for it; a line further down that leaves a bracket open goes. The opening line stays as it is: what
it opens, the person goes on with.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from daemon.polish.around import Around
from daemon.polish.brackets import CLOSER_OF, CLOSERS, comment_at, scan
from daemon.polish.trim import BLANKS

_STRINGS = frozenset(('"', "`"))
"""Quotes that are nothing else, as an apostrophe may be."""
_NOTHING = re.compile(r"[ \t]*(//[^\n]*|#[^\n]*|/\*[^\n]*|--[^\n]*)?(?=\n|\Z)")


def surplus(
    text: str, room: Callable[[], Around | None], quote: str, comment: str, growing: bool = False
) -> int:
    """Where the first closer stands that nothing is open for, in the text or above; the text's length without
    one. `room` is asked for when the text closes something above. What a text closes beyond that it must open
    again on the same line, which is not known yet of a `growing` one."""
    found = scan(text, quote, comment)
    end = found.crossed if found.crossed >= 0 else len(text)
    closers = [(at, char) for at, char in found.closers if char in CLOSERS]
    there = room() if closers else None
    if there is None:
        return end
    beyond, may = closers[len(there.closers) :], there.closers
    again = all(any(at < o and "\n" not in text[at:o] for o, _ in found.opened) for at, _ in beyond)
    if not growing and again and len(beyond) <= len(found.opened) - there.wanted:
        may += there.outer
    for (at, char), fitting in zip(closers, may.ljust(len(closers)), strict=False):
        if char != fitting:
            return min(at, end)
    return end


def before_rest(
    text: str, wanted: int, quote: str, comment: str, *, strings: bool = True, growing: bool = False
) -> int:
    """Where a text must end that code follows on its last line: before a comment or a string, which would
    swallow it, and before a bracket that is left open, save the `wanted` outermost. Of the lines between the
    opening one and the last one, which is not known of a `growing` text, whole ones go. `strings` off: the
    text may begin in one."""
    found = scan(text, quote, comment)
    opened, end = found.opened[wanted:], comment_at(text, comment)
    if strings and found.quote in _STRINGS and not quote:
        end = min(end, text.rfind(found.quote))
    if opened:
        at = opened[0][0]
        start = text.rfind("\n", 0, at) + 1
        within = start <= _opening(text) or (not growing and "\n" not in text[at:])
        end = min(end, at if within else start)
    return end


def tidy_end(text: str, quote: str, comment: str) -> str:
    """The text up to the first line, but its opening one, that leaves a bracket open and has no body below.

    A longer text never ends earlier: what has a body keeps it, and what is closed stays closed.
    """
    opening = _opening(text)
    while True:
        lines = _open_lines(text, quote, comment)
        bad = next((start for start, sound in lines if start > opening and not sound), 0)
        if not bad:
            return text
        text = text[: bad - 1]


def _opening(text: str) -> int:
    """Where the first line with text starts."""
    return text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1


def closed(text: str, head: str, wanted: int, quote: str, comment: str) -> str:
    """The text with closers for the blocks that it left open, save the `wanted` outermost: theirs are there.

    Each closer goes on a line of its own, indented as the line that opened it; `head` is before the first.
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
    """(offset, soundness) of lines that leave brackets open: a sound one ends with one, and has a body."""
    lines: dict[int, bool] = {}
    for at, _ in scan(text, quote, comment).opened:
        end = _NOTHING.match(text, at + 1)
        lines[text.rfind("\n", 0, at) + 1] = end is not None and bool(text[end.end() :].strip())
    return list(lines.items())
