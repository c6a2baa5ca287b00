"""What a twin says: the body of a callable elsewhere whose signature resembles that around the cursor.

    signature around the cursor → bands → callables of other files → text of the nearest → ids to draft from

A guess, never an answer: the engine verifies it token by token, and switches the source off where it does not
pay. It is looked up beside the loop, once for a signature; until it is there, there is none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from pathlib import PurePath
from typing import Any

from daemon.context.layout import Layout
from daemon.context.planner import Planned
from daemon.readers import Finder
from daemon.redaction import redact
from daemon.surroundings import Surroundings
from indexer import similarity
from indexer.deny import denied
from indexer.errors import IndexDamaged
from indexer.read import Reader

NEAR = 0.5
"""Share of equal bands from which on two signatures are twins: chance leaves one of eight."""
_TWINS = 2
_LINES = 60
_KEPT = 64
_CALLABLES = similarity.CALLABLES
_Key = tuple[str, str, str]
_NOTHING: tuple[bytes, tuple[str, ...]] = (b"", ())


class Similar:
    """Twins of the callables that requests stand in. Used by one event loop."""

    def __init__(self, readers: Finder) -> None:
        self._readers = readers
        self.left_out: Callable[[str], object] = lambda path: False
        """Whether a path is left out of everything. Asked on the loop."""
        self._known: OrderedDict[_Key, tuple[bytes, tuple[str, ...]]] = OrderedDict()
        """Ids, and the files that they were read from."""
        self._tasks: set[asyncio.Task[None]] = set()

    def guesses(self, planned: Planned, layout: Layout) -> bytes:
        """Ids of text that may be alike; empty where there is none, or not yet."""
        around = planned.around
        scope = around.chain[-1] if around.chain else None
        if not around.root or scope is None or scope.kind not in _CALLABLES:
            return b""
        wanted = (around.root, around.path, scope.signature)
        if any(map(self.left_out, self._known.get(wanted, _NOTHING)[1])):
            del self._known[wanted]
        if wanted not in self._known:
            self._known[wanted] = _NOTHING
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
            self._begin(self._look(wanted, planned.document.path, around, layout))
        self._known.move_to_end(wanted)
        return self._known[wanted][0]

    async def close(self) -> None:
        """Wait for those that look something up."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="similar")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look(self, wanted: _Key, path: str, around: Surroundings, layout: Layout) -> None:
        holder = self._readers.find(path)
        if holder is None:
            return
        with contextlib.suppress(IndexDamaged):
            found = await asyncio.to_thread(twins, holder.reader, around)
            named = [(str(PurePath(around.root) / name), text) for name, text in found]
            kept = [(path, text) for path, text in named if not self.left_out(path)]
            ids = await asyncio.to_thread(layout.ids, "\n".join(text for _, text in kept))
            if wanted in self._known:
                self._known[wanted] = ids, tuple(path for path, _ in kept)


def twins(reader: Reader, around: Surroundings) -> list[tuple[str, str]]:
    """(path, text) of the nearest twins in other files. Raises IndexDamaged. Takes some milliseconds."""
    bands = similarity.query_bands(around.chain[-1].signature)
    found = []
    for place in reader.similar(bands, _TWINS, around.path) if bands else ():
        if place.score >= NEAR and not denied(place.path):
            span = place.symbol.span
            text = _lines(reader, place.path, span.start_line, min(span.end_line, span.start_line + _LINES))
            if text and redact(text, place.path).text == text:
                found.append((place.path, text))
    return found


def _lines(reader: Reader, path: str, start: int, end: int) -> str:
    """Lines of a file as the index holds them."""
    lines: list[str] = []
    for chunk in reader.chunks(path):
        lines += [""] * (chunk.start_line - len(lines))
        lines += chunk.text.split("\n")[:-1]
    return "\n".join(lines[start:end])
