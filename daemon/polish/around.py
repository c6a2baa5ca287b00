"""The brackets around the cursor: which closers a text may bring, and which openers it should leave open.

Looked at is the definition that the cursor is in: from the last line above that begins in the first column to
the next one below. What such lines stand apart from is balanced by itself, or none of our business.
"""

from __future__ import annotations

import functools
import re

import msgspec

from daemon.nouns import CompletionRequest
from daemon.polish.brackets import CLOSER_OF, OPENERS, PAIRS, brackets, goes_on
from indexer.languages import registry

_FARTHEST = 10_000
"""Characters above and below the cursor; a definition that is larger is not judged."""
_TOP = re.compile(r"\n(?=[^\W\d]|[@$])(?!\w+:[ \t]*$)", re.MULTILINE)
"""Before a line that begins a definition or a statement in the first column, and is no label (`public:`)."""


class Around(msgspec.Struct, frozen=True):
    """What is open at the cursor."""

    closers: str
    """Of brackets that are open above and not closed below, the innermost first: a text may bring these."""
    wanted: int = 0
    """Closers below of brackets that nothing above opens: a text should leave so many open."""
    outer: str = ""
    """Of brackets that are open above and closed below, the innermost first: who brings one of these should
    leave another open (`} else {`)."""


def around(request: CompletionRequest, replaced: int = 0) -> Around | None:
    """At the request's cursor, without the `replaced` characters behind it. None: it cannot be told."""
    comment = line_comment(request)
    above, below = _above(request.prefix), _below(request.suffix[replaced:])
    if above is None or below is None:
        return None
    return _fitted(_open(above, comment), _closing(below, comment))


def _fitted(stack: str, needed: str) -> Around | None:
    """Which openers of `stack`, the outermost first, are closed by `needed`, the innermost first.

    The outer ones stand on both sides. What is left of `stack` a text may close, what is left of `needed` it
    should have opened; as little as possible. Where the sides do not fit so, the outermost stay open for now.
    """
    for closes in range(max(0, len(stack) - len(needed)), len(stack) + 1):
        left = len(stack) - closes
        wanted = len(needed) - left
        if (left or not closes or not needed) and _fits(stack[:left], needed[wanted:]):
            return Around(_closers(stack[left:]), wanted, _closers(stack[:left]))
    for left in range(len(stack), 0, -1):
        if _fits(stack[:left], needed):
            return Around(_closers(stack[left:]), 0, _closers(stack[:left]))
    return None


def _fits(stack: str, needed: str) -> bool:
    return all(char == other for char, other in zip(_closers(stack), needed, strict=False))


def _closers(stack: str) -> str:
    return "".join(CLOSER_OF[opener] for opener in reversed(stack))


def line_comment(request: CompletionRequest) -> str:
    """What begins a comment in the request's language; `""` when that is not known."""
    language = registry.find((request.language or "").lower())
    if language is None and request.path:
        language = registry.language_for(request.path, b"")
    return language.line_comment if language else ""


def _above(prefix: str) -> str | None:
    """The text before the cursor from the last line in the first column on."""
    start = max(0, len(prefix) - _FARTHEST)
    at = prefix.rfind("\n", start)
    while at >= 0 and not _TOP.match(prefix, at):
        at = prefix.rfind("\n", start, at)
    if at >= 0:
        return prefix[at + 1 :]
    return prefix[start:] if not start or prefix.find("\n", start) < 0 else None


def _below(suffix: str) -> str | None:
    """The text behind the cursor up to the next line in the first column."""
    if (found := _TOP.search(suffix, 0, _FARTHEST)) is not None:
        return suffix[: found.start() + 1]
    return suffix if len(suffix) < _FARTHEST else None


def _open(text: str, comment: str) -> str:
    """Openers left open, the outermost first."""
    line = text.rfind("\n") + 1
    above = _above_line(text[:line], comment)
    return _opened("", text, comment) if above is None else _opened(above, text[line:], comment)


@functools.lru_cache(maxsize=8)  # who types on a line asks the same each time
def _above_line(lines: str, comment: str) -> str | None:
    """Openers that whole lines leave open; None where a string or comment may go on below them."""
    return None if goes_on(lines, comment) else _opened("", lines, comment)


def _opened(before: str, text: str, comment: str) -> str:
    stack = list(before)
    for _, char in brackets(text, 0, comment):
        if char in OPENERS:
            stack.append(char)
        elif stack and stack[-1] == PAIRS[char]:
            stack.pop()
    return "".join(stack)


@functools.lru_cache(maxsize=8)
def _closing(text: str, comment: str) -> str:
    """Closers of what is opened before, in their order."""
    stack: list[str] = []
    found = []
    for _, char in brackets(text, 0, comment):
        if char in OPENERS:
            stack.append(char)
        elif not stack:
            found.append(char)
        elif stack[-1] == PAIRS[char]:
            stack.pop()
    return "".join(found)
