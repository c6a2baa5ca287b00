"""Where a growing text closes a bracket that was open before it began."""

from __future__ import annotations

import re

PAIRS = {")": "(", "]": "[", "}": "{"}
_OPENERS = frozenset(PAIRS.values())
_QUOTES = frozenset("\"'")
_DOUBTFUL = re.compile(r"[\n#/`]|--|\"\"\"|'''|[&<]'").search
"""What may begin a comment, a regular expression, a lifetime or a string of several lines."""


def closed_at(text: str, closer: str) -> int:
    """Offset of the first closing bracket of `text` that it has not opened, if that is `closer`, else -1.

    As polish/brackets.py scans, whatever may follow: behind a quote whose partner may still come nothing is
    known, nor behind what only a language's grammar tells, nor on further lines.
    """
    if _DOUBTFUL(text):
        return -1
    stack: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in _OPENERS:
            stack.append(char)
        elif char in PAIRS:
            if stack and stack[-1] == PAIRS[char]:
                stack.pop()
            elif not stack:
                return at if char == closer else -1
        elif char in _QUOTES:
            at = _partner(text, at + 1, char)
        at += 1
    return -1


def _partner(text: str, at: int, quote: str) -> int:
    """Offset of the next unescaped `quote`; the text's length while there is none."""
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at
