"""Where a growing text closes a bracket that was open before it began."""

from __future__ import annotations

PAIRS = {")": "(", "]": "[", "}": "{"}
_OPENERS = frozenset(PAIRS.values())
_QUOTES = frozenset("\"'`")


def closed_at(text: str, closer: str) -> int:
    """Offset of the first closing bracket of `text` that it has not opened, if that is `closer`, else -1.

    As polish/brackets.py scans, whatever may follow: behind a quote whose partner may still come nothing is
    known, one without a partner on its line is an apostrophe.
    """
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
            at = max(at, _partner(text, at + 1, char))
        at += 1
    return -1


def _partner(text: str, at: int, quote: str) -> int:
    """Offset of the next unescaped `quote`; -1 when its line ends without one, the text's length while that
    is open."""
    while at < len(text):
        char = text[at]
        if char == quote:
            return at
        if char == "\n" and quote != "`":
            return -1
        at += 2 if char == "\\" else 1
    return len(text)
