"""Looks at texts that were taken, some time later: how much of each still stands."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from daemon.nouns import CompletionRequest
from daemon.observe.fates import MARKS
from daemon.observe.offers import Offer
from daemon.observe.retention import kept

_T = TypeVar("_T")
_CLIENTS = 64
_FOLLOWED = 256
_SEEN = 8_000
"""Characters on each side of a cursor that are kept of the last text of a client, in memory."""
_LONG, _LARGE = 400, 100_000
"""A longer text, or one in a larger document, is compared beside the loop: that may take a millisecond."""
_LATE = 0.5
"""Share of its time by which a look may be late, after a computer slept; later than that it is left out."""


@dataclass(slots=True, eq=False)
class _Taken:
    offer: Offer
    when: float
    marks: list[tuple[int, str]] = field(default_factory=lambda: list(MARKS))
    """Those still due."""


class Looks:
    """At the newest texts that were taken. `text_of`: the text of an open document by its path, or None."""

    def __init__(self, text_of: Callable[[str], str | None]) -> None:
        self._text_of = text_of
        self._seen: OrderedDict[str, str] = OrderedDict()
        """Client → the text around its cursor, as it sent it last."""
        self._taken: OrderedDict[str, _Taken] = OrderedDict()

    def see(self, request: CompletionRequest) -> None:
        """What a client's text is now, for those whose documents are not followed."""
        near = request.prefix[-_SEEN:] + request.suffix[:_SEEN]
        keep(self._seen, request.client, near, _CLIENTS)

    def forget(self, client: str, path: str) -> None:
        """Nothing of what a client has, or of a file, may be kept."""
        self._seen.pop(client, None)
        for key in [key for key, taken in self._taken.items() if path and taken.offer.path == path]:
            del self._taken[key]

    def begin(self, found: Offer, now: float) -> None:
        """Something of an answer was taken, or more of it."""
        keep(self._taken, found.fate.id, _Taken(found, now), _FOLLOWED)

    @property
    def due(self) -> float | None:
        """When the next look is due."""
        return min((one.when + one.marks[0][0] for one in self._taken.values() if one.marks), default=None)

    async def look(self, now: float, write: Callable[[Offer], None]) -> None:
        """Take the looks that are due; `write` is called with each answer of which more is known."""
        for key, taken in list(self._taken.items()):
            while taken.marks and now >= taken.when + taken.marks[0][0]:
                seconds, name = taken.marks.pop(0)
                if now <= taken.when + seconds * (1 + _LATE):
                    share = await self._share(taken.offer)
                    taken.offer.fate = msgspec.structs.replace(taken.offer.fate, **{name: share})
                    write(taken.offer)
            if not taken.marks and self._taken.get(key) is taken:
                del self._taken[key]

    async def _share(self, found: Offer) -> float | None:
        """By the open document, else by what the client sent last."""
        text = self._text_of(found.path) if found.path else None
        now, at = (self._seen.get(found.client, ""), None) if text is None else (text, found.offset)
        parts = (found.before, found.text[: found.taken], found.after, now, at)
        if found.taken > _LONG or len(now) > _LARGE:
            return await asyncio.to_thread(kept, *parts)
        return kept(*parts)


def keep(table: OrderedDict[str, _T], key: str, value: _T, most: int) -> _T | None:
    """Put in as the newest; the oldest, if it had to go for it."""
    table[key] = value
    table.move_to_end(key)
    return table.popitem(last=False)[1] if len(table) > most else None
