"""How a text fits between what stands around the cursor: overlap with the rest of the line, and brackets."""

from __future__ import annotations

from daemon.nouns import CompletionRequest
from daemon.polish import balance, trim
from daemon.polish.around import Around, around, line_comment
from daemon.polish.brackets import in_comment, open_quote

_LIMITED = frozenset({"limit", "time", "window"})
"""Ends in the middle of what the model had to say, for somebody who is still there."""
_ENDED = frozenset({"control", "fence", "suffix", "repeat", "brackets"})
"""Rules that end a text where the model did not."""
_COMMENT_STARTS = "/#-"
"""Characters that a comment may turn out to begin with."""


class Fit:
    """`head` and `rest` of the cursor's line, `quote` of the string that the cursor stands in."""

    def __init__(self, request: CompletionRequest, head: str, rest: str, quote: str) -> None:
        self._request = request
        self._head, self._rest, self._quote = head, rest, quote
        self._comment = line_comment(request)
        self._plain = in_comment(head, self._comment)
        """In a comment brackets are text."""
        self._strings = not open_quote(head)
        tripled = any(mark in text for mark in trim.TRIPLES for text in (head, rest))
        self._one_line = quote in ("'", '"') and not tripled
        self._rooms: dict[int, Around | None] = {}

    def safe(self, known: str, replaces: bool) -> str:
        """What every text that begins with `known` keeps of it."""
        rest, quote, comment = self._rest, self._quote, self._comment
        known = self.in_string(known)
        if not self._plain:
            known = self._within(balance.tidy_end(known, quote, comment), growing=True)
        known = known[: trim.same_line_safe(known, rest, quote, replaces, comment)]
        if rest.strip() and not self._plain:
            end = balance.before_rest(known, 0, quote, comment, strings=self._strings, growing=True)
            known = known[:end].rstrip(_COMMENT_STARTS)
        known = known.rstrip(trim.BLANKS)
        return known if known.strip() else ""

    def in_string(self, text: str) -> str:
        """Without further lines where the cursor stands in a string that cannot have any."""
        return text.partition("\n")[0] if self._one_line else text

    def same_line(self, text: str, replaces: bool) -> tuple[str, int]:
        """See trim.same_line."""
        there = self._around() if self._rest.strip() else None
        wanted = there.wanted if there else 0
        return trim.same_line(text, self._rest, self._quote, replaces, self._comment, wanted=wanted)

    def balanced(self, text: str, replaced: int, stop: str, trims: list[str], seen: str) -> str:
        """Without closers of nothing; where the text was ended in the middle, with those of its blocks.

        It begins with what was `seen` already; `trims` gets the names of the rules that changed it.
        """
        if self._plain or not text.strip():
            return text
        quote, comment = self._quote, self._comment
        within = text if replaced else _cut(text, self._within(text), seen)
        follows = self._rest[replaced:].strip()
        if follows:
            wanted = room.wanted if (room := self._around(replaced)) else 0
            end = balance.before_rest(within, wanted, quote, comment, strings=self._strings)
            within = _cut(within, within[:end], seen)
        if within != text:
            trims.append("brackets")
        if stop not in _LIMITED and not _ENDED.intersection(trims):
            return within
        tidy = _cut(within, balance.tidy_end(within, quote, comment), seen)
        if tidy != within and "boundary" not in trims:
            trims.append("boundary")
        return tidy if follows else self._closed(tidy, replaced, trims)

    def _closed(self, text: str, replaced: int, trims: list[str]) -> str:
        room = self._around(replaced)
        if room is None or not text.strip():
            return text
        done = balance.closed(text, self._head, room.wanted, self._quote, self._comment)
        if done != text:
            trims.append("closers")
        return done

    def _within(self, text: str, growing: bool = False) -> str:
        """The text up to a closer that nothing is open for."""
        return text[: balance.surplus(text, self._around, self._quote, self._comment, growing)]

    def _around(self, replaced: int = 0) -> Around | None:
        """What is open at the cursor when `replaced` characters behind it go."""
        if replaced not in self._rooms:
            self._rooms[replaced] = around(self._request, replaced)
        return self._rooms[replaced]


def _cut(text: str, shorter: str, seen: str) -> str:
    """`shorter`, unless more was seen: a quote that ends a string late may hide brackets before it."""
    return shorter if shorter.startswith(seen) else text
