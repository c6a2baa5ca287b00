"""Trees that follow a text: one edit between two versions, an incremental parse under a budget."""

from __future__ import annotations

from typing import NamedTuple

from indexer.languages.registry import Language
from indexer.syntax import Edit, Tree, moved, parse


class Parsed(NamedTuple):
    """A tree and the UTF-8 that it is of."""

    tree: Tree
    source: bytes


_last: tuple[bytes, bytes, Edit | None] = (b"", b"", None)
"""The difference asked for last: a keystroke needs it up to three times."""


def difference(old: bytes, new: bytes) -> Edit | None:
    """The one edit that makes `new` of `old`: what is between their common ends, at character borders.
    None when they are equal."""
    global _last  # noqa: PLW0603 - replaced whole, so that threads need no lock
    before, after, edit = _last
    if before is not old or after is not new:
        edit = None if old == new else _difference(old, new)
        _last = (old, new, edit)
    return edit


def _difference(old: bytes, new: bytes) -> Edit:
    start = _border(new, _common_prefix(old, new))
    most = min(len(old), len(new)) - start
    tail = _common_suffix(old, new, most)
    while tail and new[len(new) - tail] & 0xC0 == 0x80:
        tail -= 1
    old_end, new_end = len(old) - tail, len(new) - tail
    return Edit(
        start_byte=start,
        old_end_byte=old_end,
        new_end_byte=new_end,
        start_point=_point(new, start),
        old_end_point=_point(old, old_end),
        new_end_point=_point(new, new_end),
    )


def follow(parsed: Parsed | None, source: bytes, language: Language, budget_s: float) -> Parsed:
    """`source` with its tree, what did not change taken from `parsed`.

    Raises ParseBudgetExceeded and, as a kind of it, NestingTooDeep.
    """
    if parsed is None:
        return Parsed(parse(source, language, budget_s), source)
    edit = difference(parsed.source, source)
    if edit is None:
        return Parsed(parsed.tree, source)
    return Parsed(parse(source, language, budget_s, parsed.tree, [edit]), source)


def shifted(parsed: Parsed, source: bytes) -> Tree:
    """The tree of `parsed` with the positions that its nodes have in `source`; not parsed again."""
    edit = difference(parsed.source, source)
    return parsed.tree if edit is None else moved(parsed.tree, edit)


def _border(text: bytes, at: int) -> int:
    """The start of the character that `at` is inside of."""
    while 0 < at < len(text) and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _common_prefix(a: bytes, b: bytes) -> int:
    """By halving: comparing slices runs at the speed of memory, comparing bytes one by one does not."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _common_suffix(a: bytes, b: bytes, most: int) -> int:
    low, high = 0, most
    if a[len(a) - high :] == b[len(b) - high :]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle
    return low


def _point(text: bytes, at: int) -> tuple[int, int]:
    return text.count(b"\n", 0, at), at - (text.rfind(b"\n", 0, at) + 1)
