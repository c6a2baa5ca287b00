"""Where a part of a text may end when a person takes it by words or by lines. Offsets are code points.

A word is what editors jump over: a name or number, or a run of other signs, with the white space before it.
A mark stays with the letter it is put on, a joined emoji stays whole: rules of UAX #29 that `re` lacks.
"""

from __future__ import annotations

import re

_MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a"
_MARKS += "\u0e47-\u0e4e\u200c\u200d\u20d0-\u20ff\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f"
"""Combining marks of the scripts that names are written in, joiners and variation selectors."""
_WORD = re.compile(rf"\s*(?:\w[\w{_MARKS}]*|[^\w\s]+[{_MARKS}]*)")
_LINE = re.compile(r"\s*[^\r\n]+(?:\r\n|\r|\n)?")


def words(text: str) -> tuple[int, ...]:
    """The end of each word; the last is the text's length."""
    return _ends(_WORD, text, len(text.rstrip()))


def lines(text: str) -> tuple[int, ...]:
    """The end of each line that shows something, its line end included; blank lines belong to the next."""
    return _ends(_LINE, text, len(text.rstrip("\r\n")))


def _ends(pattern: re.Pattern[str], text: str, size: int) -> tuple[int, ...]:
    """`size`: where the white space at the end begins; to look for a word in it takes the square of it."""
    ends = [found.end() for found in pattern.finditer(text, 0, size)]
    return (*ends[:-1], len(text)) if text else ()
