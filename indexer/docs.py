"""The first sentence of a definition's documentation: from the comments right above it, or from a string."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

MAX_DOC = 200
_READ = 2_000
"""Bytes of a comment that are looked at."""
_STRING = re.compile(r"^[A-Za-z]{0,3}(\"\"\"|'''|\"|')(.*?)\1?$", re.DOTALL)
_SENTENCE = re.compile(r"(.+?[.!?](?=\s+[^\sa-z]|\s*$)|.+?[。！？])", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_EDGE = re.compile(
    r"^\s*(?:/\*+!?|\*+/|\*|//+!?|#+!?|--+(?:\[=*\[)?|;+|\(\*|<!--)?<?[ \t]?|\s*(?:\*+/|\]=*\]|-->)\s*$"
)
_RULE = re.compile(r"^[\W_]*$")
_SECTION = re.compile(r"^[@\\]\w|^:\w+|^(?:Args|Parameters|Returns|Example)s?:\s*$")


class Comments:
    """Comments of one file by the line they end on; finds the block that stands right above a definition."""

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
        for ranges, is_comment in ((comments, True), (leads, False)):
            for start, end in ranges:
                last = end - 1 if source[end - 1 : end] == b"\n" else end
                self._ends[bisect_left(newlines, last)] = (start, is_comment)

    def above(self, start: int) -> tuple[int, str]:
        """Where the definition at `start` begins, its leads included, and the comment's first sentence."""
        if not self._ends:
            return start, ""
        line = self._own_line(start)
        block: list[int] = []
        lead, stop = start, start
        while line is not None and (found := self._ends.get(line - 1)) is not None:
            line = self._own_line(found[0])
            if line is None:
                break
            if found[1]:
                block.append(found[0])
            else:
                lead = found[0]
                if not block:
                    stop = found[0]
        if not block:
            return lead, ""
        text = self._source[block[-1] : min(stop, block[-1] + _READ)].decode("utf-8", "replace")
        return lead, first_sentence([_EDGE.sub("", row) for row in text.splitlines()])

    def _own_line(self, start: int) -> int | None:
        """The line of `start`, when nothing but space stands before it."""
        line = bisect_left(self._newlines, start)
        begin = self._newlines[line - 1] + 1 if line else 0
        return None if self._source[begin:start].strip() else line


def docstring(source: bytes) -> str:
    """First sentence of a string literal's text."""
    text = source[:_READ].decode("utf-8", "replace").strip()
    found = _STRING.match(text)
    return first_sentence((found.group(2) if found else text).splitlines())


def first_sentence(rows: Sequence[str]) -> str:
    """First sentence of the first paragraph, whitespace folded, at most MAX_DOC characters."""
    kept: list[str] = []
    for row in rows:
        text = _TAG.sub(" ", row).strip() if "<" in row else row.strip()
        if not text or _RULE.match(text) or _SECTION.match(text):
            if kept:
                break
            continue
        kept.append(text)
    text = " ".join(" ".join(kept).split())
    found = _SENTENCE.match(text)
    return (found.group(1) if found else text)[:MAX_DOC].rstrip()
