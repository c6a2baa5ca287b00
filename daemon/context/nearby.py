"""Names that stand near the cursor: what is about to be written mostly is one of them."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from typing import Final

from indexer.languages.registry import Language

NAMES: Final = 40
FEW: Final = 16
"""Names that are asked whether they are imported. In Python code a new line near such a name uses one itself
in 4 cases of 10, any other in 1 of 10."""
_REACH: Final = 2_000
"""Characters on each side in which names are looked for, …"""
_CLOSE: Final = 500
"""… and those in which a few mostly stand."""
_NAME: Final = re.compile(r"[^\W\d]\w+")
_PLAIN = (
    "and or not in is None True False true false null nil return self this let var const val mut pub "
    "new public private protected static final void import from as await async break continue pass "
    "raise throw end local export default package use using int str bool string float double char long "
    "super func fn def function class struct enum interface type if else for while elif try except "
    "catch finally with match case switch do then lambda yield "
)
_WORDS: Final = frozenset(_PLAIN.split())
"""Words of languages that name nothing."""


def names(text: str, offset: int, language: Language | None, most: int = NAMES) -> tuple[str, ...]:
    """Identifiers near an offset, the nearest first, each once; comments to the end of a line left out."""
    found: dict[str, None] = {}
    for reach in (_CLOSE, _REACH):
        found = _names(text, offset, language, reach, most)
        if len(found) == most:
            break
    return tuple(found)


def _names(text: str, offset: int, language: Language | None, reach: int, most: int) -> dict[str, None]:
    """Those that are not farther than `reach`, in order."""
    words = language.block_words if language is not None else ()
    marker = language.line_comment if language is not None else ""
    own = re.compile(rf"{re.escape(marker)}[^\n]*") if marker else None
    start = text.rfind("\n", 0, max(0, offset - reach)) + 1  # the whole line shows what is a comment
    before, after = text[max(start, offset - _REACH) : offset], text[offset : offset + reach]
    if own is not None and marker in before:
        before = own.sub(_blank, before)
    if own is not None and marker in after:
        after = own.sub(_blank, after)
    found: dict[str, None] = {}
    for distance, name in _near(before, after):
        if distance > reach and reach < _REACH:
            break
        if name not in _WORDS and name not in words:
            found[name] = None
            if len(found) == most:
                break
    return found


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _near(before: str, after: str) -> Iterator[tuple[int, str]]:
    """(distance, name) of both sides; what follows counts as twice as far."""
    end, typed = len(before), 0
    behind = [(end - m.end(), m[0]) for m in _NAME.finditer(before)]
    if behind and behind[-1][0] == 0:
        behind.pop()  # the word being typed
        typed = rest.end() if (rest := _NAME.match(after)) else 0
    ahead = ((2 * m.start(), m[0]) for m in _NAME.finditer(after, typed))
    return heapq.merge(reversed(behind), ahead)
