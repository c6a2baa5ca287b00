"""Where the person worked: edits, visits and accepted completions, the oldest forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from daemon.documents.document import Region, RegionKind
from daemon.nouns import CompletionRequest

_T = TypeVar("_T")
NEAR = 5
"""Lines between two edits that count as one."""
AROUND = 8
"""Lines shown on each side of a visited place."""
MOST_LINES = 60
"""A region shows no more; the newest place stays inside."""
MOST_TEXT = 8_000


_LEAST_ACCEPTED = 4
"""Characters of a completion that count as one."""
_TAIL = 200
_LATER = 2_000
"""Characters written behind an accepted completion before it is looked for in vain."""
_MOST_CLIENTS = 64


class Where(NamedTuple):
    """A file: the mirror's key for it, its name for the client, and its place in an index if there is one."""

    key: str
    path: str
    root: str
    relative: str


@dataclass(slots=True)
class _Mark:
    where: Where
    kind: RegionKind
    start: int
    end: int
    when: float
    text: str | None = None
    """None: as the open document has it when asked."""


class Regions:
    """At most `most` marks. Used under the mirror's lock."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._marks: list[_Mark] = []
        """The newest last."""

    def add(
        self,
        where: Where,
        kind: RegionKind,
        lines: tuple[int, int],
        text: str | None = None,
    ) -> None:
        """Note that lines from `lines[0]`, end exclusive, were worked on; without `text` they are as the
        open document has them."""
        when = time.monotonic()
        text = text and text[:MOST_TEXT]
        near = NEAR if kind == "edited" else 0
        start, end = lines
        for mark in reversed(self._marks):
            if mark.where.key != where.key or mark.kind != kind or kind == "accepted":
                continue
            if mark.start - near <= end and start <= mark.end + near:
                mark.start, mark.end = _bounded(min(mark.start, start), max(mark.end, end), start)
                mark.when, mark.text = when, text
                self._marks.remove(mark)
                self._marks.append(mark)
                return
        self._marks.append(_Mark(where, kind, start, end, when, text))
        del self._marks[: -self._most]

    def shift(self, key: str, start: int, old_end: int, new_end: int) -> None:
        """Lines from `start` to `old_end` became those up to `new_end`: what stands below moves along."""
        delta = new_end - old_end
        if not delta:
            return
        for mark in self._marks:
            if mark.where.key != key:
                continue
            if mark.start >= old_end:
                mark.start += delta
                mark.end += delta
            elif mark.end > start:
                mark.end = max(mark.end + delta, mark.start + 1)

    def freeze(self, key: str, text: str) -> None:
        """The document goes: its marks keep the text that they show now."""
        lines = text.split("\n")
        for mark in self._marks:
            if mark.where.key == key and mark.text is None:
                mark.text = _cut(lines, mark.start, mark.end)

    def forget(self, key: str) -> None:
        """Nothing of this document is to be known."""
        self._marks = [mark for mark in self._marks if mark.where.key != key]

    def newest(self, limit: int, text_of: Callable[[str], str | None]) -> tuple[Region, ...]:
        """The newest first; those without text are left out. `text_of` gives an open document's text."""
        found: list[Region] = []
        split: dict[str, list[str]] = {}
        for mark in reversed(self._marks):
            if len(found) >= limit:
                break
            text = mark.text
            if text is None:
                if mark.where.key not in split:
                    split[mark.where.key] = (text_of(mark.where.key) or "").split("\n")
                text = _cut(split[mark.where.key], mark.start, mark.end)
            if text.strip():
                _, path, root, relative = mark.where
                found.append(Region(path, mark.start, mark.end, text, mark.when, mark.kind, root, relative))
        return tuple(found)


class Work(Regions):
    """Regions, and what tells of them: where each client is, and what it was shown."""

    def __init__(self, most: int = 64) -> None:
        super().__init__(most)
        self._shown: dict[str, tuple[str, str, str]] = {}
        self._at: dict[str, tuple[str, int]] = {}

    def go(self, client: str, where: Where, line: int) -> bool:
        """The person is at `line` of an open document; a place near the last one is no new visit."""
        key, last = self._at.pop(client, ("", 0))
        _keep(self._at, client, (where.key, line))
        new = key != where.key or abs(line - last) > AROUND
        if new:
            self.add(where, "visited", (max(line - AROUND, 0), line + AROUND + 1))
        return new

    def line(self, client: str, key: str) -> int | None:
        """The line that a client was at last, if that was in this document."""
        found, line = self._at.get(client, ("", 0))
        return line if found == key else None

    def window(self, where: Where, prefix: str, suffix: str) -> None:
        """The person is between two texts. Their lines are counted within them: only the text tells."""
        above = prefix.rsplit("\n", AROUND + 1)[-AROUND - 1 :]
        below = suffix.split("\n", AROUND + 1)[: AROUND + 1]
        line = prefix.count("\n")
        lines = (max(line - AROUND, 0), line + AROUND + 1)
        self.add(where, "visited", lines, "\n".join(above) + "\n".join(below))

    def show(self, request: CompletionRequest, text: str) -> None:
        """A completion was shown."""
        if request.path and len(text.strip()) >= _LEAST_ACCEPTED:
            self._shown.pop(request.client, None)
            _keep(self._shown, request.client, (request.path, request.prefix[-_TAIL:], text))

    def taken(self, request: CompletionRequest) -> str:
        """The completion shown last to this client, once, if the text before the cursor now holds it."""
        path, tail, text = self._shown.get(request.client, ("", "", ""))
        if not text or path != request.path:
            return ""
        if tail + text not in request.prefix[-len(tail) - len(text) - _LATER :]:
            return ""
        del self._shown[request.client]
        return text

    def accept(self, where: Where, text: str) -> None:
        """A completion was taken."""
        if len(text.strip()) >= _LEAST_ACCEPTED:
            line = next((at for key, at in self._at.values() if key == where.key), 0)
            self.add(where, "accepted", (line, line + text.count("\n") + 1), text)


def _keep(table: dict[str, _T], client: str, value: _T) -> None:
    table[client] = value
    if len(table) > _MOST_CLIENTS:
        del table[next(iter(table))]


def _bounded(start: int, end: int, newest: int) -> tuple[int, int]:
    if end - start <= MOST_LINES:
        return start, end
    first = min(max(newest - MOST_LINES // 2, start), end - MOST_LINES)
    return first, first + MOST_LINES


def _cut(lines: list[str], start: int, end: int) -> str:
    return "\n".join(lines[max(start, 0) : min(end, start + MOST_LINES)])[:MOST_TEXT]
