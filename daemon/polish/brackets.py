"""Brackets and quotes of a fragment of code, without a grammar: what it leaves open and what it closes."""

from __future__ import annotations

import msgspec

PAIRS = {")": "(", "]": "[", "}": "{"}
CLOSERS = frozenset(PAIRS)
OPENERS = frozenset(PAIRS.values())
QUOTES = frozenset("\"'`")


class Scan(msgspec.Struct, frozen=True):
    """What a fragment does to the brackets around it."""

    closers: tuple[tuple[int, str], ...]
    """(offset, character) of brackets and of the quote that close something opened before the fragment."""
    unclosed: int
    """Brackets opened and not closed in the fragment."""
    quote: str
    """The quote still open at the end, `""` outside strings."""


def scan(text: str, quote: str = "") -> Scan:
    """Scan `text`, which begins inside a string when `quote` is given.

    A quote without its partner on the same line is taken as an apostrophe. The scan only looks ahead for
    partners, so a longer text never has an earlier closer than its beginning shows.
    """
    closers: list[tuple[int, str]] = []
    stack: list[str] = []
    at = 0
    if quote:
        end = _partner(text, 0, quote)
        if end < 0:
            return Scan((), 0, quote)
        closers.append((end, quote))
        at = end + 1
    while at < len(text):
        char = text[at]
        if char in OPENERS:
            stack.append(char)
        elif char in CLOSERS:
            if stack and stack[-1] == PAIRS[char]:
                stack.pop()
            elif not stack:
                closers.append((at, char))
        elif char in QUOTES:
            end = _partner(text, at + 1, char)
            at = end if end >= 0 else at
        at += 1
    return Scan(tuple(closers), len(stack), _open_quote(text, quote))


def open_quote(line: str) -> str:
    """The quote a line's cursor stands in, `""` when it stands outside strings."""
    return _open_quote(line, "")


def _open_quote(text: str, quote: str) -> str:
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == quote:
            quote = ""
        elif not quote and char in QUOTES and not _apostrophe(text, at):
            quote = char
        elif char == "\n" and quote != "`":
            quote = ""
        at += 1
    return quote


def _apostrophe(text: str, at: int) -> bool:
    """Whether this is the apostrophe of `don't`."""
    return text[at] == "'" and at > 0 and text[at - 1].isalnum() and text[at - 1] not in "bfrulBFRUL"


def _partner(text: str, at: int, quote: str) -> int:
    """Offset of the next unescaped `quote` on this line, -1 when there is none."""
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == quote:
            return at
        elif char == "\n" and quote != "`":
            return -1
        at += 1
    return -1
