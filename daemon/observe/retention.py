"""How much of a text that was taken still stands near where it was put: by tokens, whatever was reformatted.

The place is looked for by what stood around it; the text and its surroundings are aligned with what stands
there now by a longest common subsequence, computed on bits of an integer (Hyyrö 2004, after Allison and Dix
1986): one addition per token of the later text. Among equally long ones surroundings are aligned with
surroundings, so that an equal token beside the place does not pass for one that was kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKEN = re.compile(r"\w+|[^\w\s]")
_LEAD = 80
"""Characters before and behind a place by which it is looked for."""
_ROOM = 400
"""Characters that may have been written into the place since."""


def kept(before: str, text: str, after: str, now: str, at: int | None) -> float | None:
    """Share (0 to 1) of the tokens of `text` that stand in `now` between what was `before` and `after` it.

    `at`: about where the place was, in characters of `now`; None: it must be found by its surroundings.
    None when there is nothing to measure, or no place.
    """
    tokens = _TOKEN.findall(text)
    start = _place(before, after, text, now, at)
    if not tokens or start is None:
        return None
    ahead = _TOKEN.findall(before)
    found = _TOKEN.findall(now[max(0, start - len(before)) : start + len(text) + len(after) + _ROOM])
    same = agree(ahead, found)
    ahead, found = ahead[same:], found[same:]
    aligned = common([*ahead, *tokens, *_TOKEN.findall(after)], found)
    return sum(1 for index in range(len(ahead), len(ahead) + len(tokens)) if index in aligned) / len(tokens)


def _place(before: str, after: str, text: str, now: str, at: int | None) -> int | None:
    """Where the text began, by the end of what stood before it, else by what stood behind it."""
    guess = 0 if at is None else at
    lead, trail = before[-_LEAD:], after[:_LEAD]
    if lead.strip() and (found := _nearest(now, lead, guess - len(lead))) is not None:
        return found + len(lead)
    if trail.strip() and (found := _nearest(now, trail, guess + len(text))) is not None:
        return max(0, found - len(text))
    return at


def _nearest(text: str, piece: str, at: int) -> int | None:
    """The occurrence of `piece` nearest to `at`."""
    at = max(at, 0)
    places = [place for place in (text.rfind(piece, 0, at + len(piece)), text.find(piece, at)) if place >= 0]
    return min(places, key=lambda place: abs(place - at), default=None)


def agree(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items both begin with."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def common(one: Sequence[str], other: Sequence[str]) -> set[int]:
    """Indexes in `one` of a longest common subsequence with `other`; of several, the one that ends last."""
    masks: dict[str, int] = {}
    for index, item in enumerate(one):
        masks[item] = masks.get(item, 0) | 1 << index
    every = (1 << len(one)) - 1
    rows = [every]
    """After so many items of `other`: bit i is 0 where the subsequence grows with `one[i]`."""
    for item in other:
        row = rows[-1]
        met = row & masks.get(item, 0)
        rows.append(((row + met) | (row - met)) & every)
    found, index, column = set(), len(one) - 1, len(other)
    while index >= 0 and column > 0:
        if one[index] == other[column - 1]:
            found.add(index)
            index, column = index - 1, column - 1
        elif rows[column] >> index & 1:
            index -= 1
        else:
            column -= 1
    return found
