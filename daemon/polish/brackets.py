"""Brackets and quotes of a fragment of code, without a grammar: what it leaves open and what it closes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import msgspec

PAIRS = {")": "(", "]": "[", "}": "{"}
CLOSERS = frozenset(PAIRS)
OPENERS = frozenset(PAIRS.values())
CLOSER_OF = {opener: closer for closer, opener in PAIRS.items()}
QUOTES = frozenset("\"'`")
_QUOTING = re.compile(r"\\[\s\S]|[\"'`\n]")
_STRINGS = (
    r"(?:\"\"\"|''')[\s\S]*?(?:\"\"\"|''')|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`"
)
_LIFETIMES = r"(?<=[&<])'[A-Za-z_]\w*+(?!')"
_REGEXES = r"(?:^|(?<=[=(,:!&|?]))[ ]?/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/"
_BLOCK_COMMENT = r"/\*[\s\S]*?(?:\*/|\Z)"
_GUESSED = r"(?:^|(?<=[;{},]))[ \t]*//[^\n]*|(?:^[ \t]*|[ \t]{2})#[ !][^\n]*"
"""Comments where the language is not known: `//` divides in Python, and `#` is much in other languages."""


class Scan(msgspec.Struct, frozen=True):
    """What a fragment does to the brackets around it."""

    closers: tuple[tuple[int, str], ...]
    """(offset, character) of brackets and of the quote that close something opened before the fragment."""
    opened: tuple[tuple[int, str], ...]
    """(offset, character) of brackets opened and not closed in the fragment, the outermost first."""
    quote: str
    """The quote still open at the end, `""` outside strings."""
    crossed: int
    """Offset of the first closer of another kind than what the fragment opened last on its line; -1: none."""

    @property
    def unclosed(self) -> int:
        """How many brackets are left open."""
        return len(self.opened)


@functools.lru_cache(maxsize=64)  # several rules look at the same text one after the other
def scan(text: str, quote: str = "", comment: str = "") -> Scan:
    """Scan `text`, which begins inside a string when `quote` is given. `comment`: see `brackets`.

    A quote without its partner on the same line is taken as an apostrophe. The scan only looks ahead for
    partners, so a longer text never has an earlier closer than its beginning shows.
    """
    closers: list[tuple[int, str]] = []
    stack: list[tuple[int, str]] = []
    start, crossed = 0, -1
    if quote:
        end = _partner(text, 0, quote)
        if end < 0:
            return Scan((), (), quote, -1)
        closers.append((end, quote))
        start = end + 1
    for at, char in brackets(text, start, comment):
        if char in OPENERS:
            stack.append((at, char))
        elif stack and stack[-1][1] == PAIRS[char]:
            stack.pop()
        elif not stack:
            closers.append((at, char))
        elif crossed < 0 and "\n" not in text[stack[-1][0] : at]:
            crossed = at
    return Scan(tuple(closers), tuple(stack), _open_quote(text, quote), crossed)


def brackets(text: str, start: int = 0, comment: str = "") -> Iterator[tuple[int, str]]:
    """(offset, character) of every bracket from `start` on that stands in no string and in no comment.

    `comment` begins a line's comment in this language; `""`: it is not known, only sure ones are left out.
    """
    for match in _marks(comment).finditer(text, start):
        if (char := match["bracket"]) is not None:
            yield match.start(), char


def goes_on(lines: str, comment: str) -> bool:
    """Whether a string or a comment of whole lines may end only below them. Never wrong when it says no."""
    if any(mark in lines for mark in ('"""', "'''")):
        return True
    if "`" not in lines and "/*" not in lines:
        return False
    end = 0
    for match in _marks(comment).finditer(lines):
        if "`" in lines[end : match.start()]:
            return True
        end = match.end()
    # Of all marks only a comment that is not closed holds the end of the last line.
    return "`" in lines[end:] or end == len(lines)


@functools.lru_cache(maxsize=16)
def _marks(comment: str) -> re.Pattern[str]:
    line = re.escape(comment) + r"[^\n]*" if comment else _GUESSED
    block = [_BLOCK_COMMENT, _REGEXES] if comment in ("//", "") else []
    skipped = "|".join([*block, _LIFETIMES, _STRINGS])
    return re.compile(rf"(?P<comment>{line})|{skipped}|(?P<bracket>[()\[\]{{}}])", re.MULTILINE)


def comment_at(text: str, comment: str) -> int:
    """Where the comment begins that the last line of `text` ends with; the text's length if there is none."""
    last = text.rfind("\n") + 1
    for match in _marks(comment).finditer(text):
        if match["comment"] is not None and match.end() == len(text) and match.end() > last:
            return max(last, match.start())
    return len(text)


def in_comment(head: str, comment: str) -> bool:
    """Whether a cursor behind `head` on its line stands in a comment, as far as the line tells."""
    return comment_at(head, comment) < len(head) or head.lstrip().startswith(("* ", "/*"))


def open_quote(line: str) -> str:
    """The quote a line's cursor stands in, `""` when it stands outside strings."""
    return _open_quote(line, "")


def _open_quote(text: str, quote: str) -> str:
    for match in _QUOTING.finditer(text):
        char = match[0]
        if char == quote:
            quote = ""
        elif not quote and char in QUOTES and not _apostrophe(text, match.start()):
            quote = char
        elif char == "\n" and quote != "`":
            quote = ""
    return quote


def _apostrophe(text: str, at: int) -> bool:
    """Whether this is the apostrophe of `don't`, or the mark of a Rust lifetime (`&'a`, `<'a>`)."""
    if text[at] != "'" or at == 0:
        return False
    before = text[at - 1]
    return before in "&<" or (before.isalnum() and before not in "bfrulBFRUL")


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
