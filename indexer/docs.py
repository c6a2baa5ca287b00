"""The first sentence of a definition's documentation: from the comments right above it, or from a string."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

MAX_DOC = 200
_SPACE = b" \t\r\n\f"
_READ = 2_000
"""Bytes of a comment that are looked at."""
_STRING = re.compile(r"^[A-Za-z]{0,3}(\"\"\"|'''|\"|')(.*?)\1?$", re.DOTALL)
_SENTENCE = re.compile(r"(.+?[.!?](?=\s+[^\sa-z]|\s*$)|.+?[。！？])", re.DOTALL)
_TAG = re.compile(
    r"</?(?:[abiuclp]|tt|em|br|code|li|ul|ol|para|pre|strong|summary|remarks|see|paramref)\b[^<>]*>"
)
_LINK = re.compile(r"\{@\w+\s+([^}]*)\}")
_EDGE = re.compile(
    r"^\s*(?:/\*+!?|\*+/|\*|//+!?|#+!?|--+(?:\[=*\[)?|;+|\(\*|<!--)?<?[ \t]?|\s*(?:\*+/|\]=*\]|-->)\s*$"
)
_DIRECTIVE = re.compile(
    r"^(?:go:|nolint|eslint|tslint|noqa|pylint|mypy|ts-|@ts-|prettier-|clang-format|NOLINT)"
)
_RULE = re.compile(r"^[\W_]*$")
_SECTION = re.compile(r"^[@\\]\w|^:\w+|^(?:Args|Parameters|Returns|Example)s?:\s*$")


class Comments:
    """Comments and leads of one file by where they end; finds those that stand right before a definition."""

    def __init__(
        self,
        source: bytes,
        newlines: Sequence[int],
        comments: Sequence[tuple[int, int]],
        leads: Sequence[tuple[int, int]],
    ) -> None:
        self._source = source
        self._newlines = newlines
        self._ends: dict[int, tuple[int, bool]] = {}
        for ranges, is_lead in ((comments, False), (leads, True)):
            for start, end in ranges:
                self._ends[self._before(end)] = (start, is_lead)

    def above(self, start: int) -> tuple[int, str]:
        """Where the definition at `start` begins, its leads included, and the comment's first sentence."""
        if not self._ends:
            return start, ""
        lead = below = start
        block: tuple[int, int] | None = None
        while (found := self._ends.get(end := self._before(below))) is not None:
            if found[0] >= end or self._source.count(b"\n", end, below) > 1:
                break  # nothing but white space where a tree of an older text has a comment, or a gap
            below, is_lead = found
            if is_lead:
                lead = below
                continue
            if not self._stands_alone(below):
                break
            block = (below, end if block is None else block[1])
        if block is None:
            return lead, ""
        text = self._source[block[0] : min(block[1], block[0] + _READ)].decode("utf-8", "replace")
        return lead, first_sentence([_EDGE.sub("", row) for row in text.splitlines()])

    def _before(self, position: int) -> int:
        source = self._source
        while position and source[position - 1] in _SPACE:
            position -= 1
        return position

    def _stands_alone(self, start: int) -> bool:
        """Nothing but space stands before it on its line."""
        line = bisect_left(self._newlines, start)
        begin = self._newlines[line - 1] + 1 if line else 0
        return not self._source[begin:start].strip()


def docstring(source: bytes) -> str:
    """First sentence of a string literal's text."""
    text = source[:_READ].decode("utf-8", "replace").strip()
    found = _STRING.match(text)
    return first_sentence((found.group(2) if found else text).splitlines())


def first_sentence(rows: Sequence[str]) -> str:
    """First sentence of the first paragraph, whitespace folded, at most MAX_DOC characters."""
    kept: list[str] = []
    for row in rows:
        text = _TAG.sub("", row).strip() if "<" in row else row.strip()
        text = _LINK.sub(r"\1", text) if "{@" in text else text
        if _DIRECTIVE.match(text):
            continue
        if not text or _RULE.match(text) or _SECTION.match(text):
            if kept:
                break
            continue
        kept.append(text)
    text = " ".join(" ".join(kept).split())
    found = _SENTENCE.match(text)
    return (found.group(1) if found else text)[:MAX_DOC].rstrip()
