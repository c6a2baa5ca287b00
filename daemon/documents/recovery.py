"""Which file is this text? For clients that send no path: the open or indexed file that matches best.

Wrong is worse than unknown: another file's context misleads. So nearly all lines of the window must be found,
in about their order, and in one file only.
"""

from __future__ import annotations

import re
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from daemon.documents import positions
from daemon.documents.mirror import Mirror
from daemon.readers import Found, Readers
from indexer.content import denied
from indexer.errors import IndexDamaged

ABOVE, BELOW = 300, 120
"""Lines of a window that are compared."""
ENOUGH: Final = 0.9
"""Share of a window's lines that its file must hold."""
APART: Final = 0.1
"""What the second best must lack against the best."""
_FEWEST: Final = 5
"""Different lines that must be found."""
_ASKED: Final = 6
"""Lines that the index is asked for."""
_READ: Final = 6
"""Files that are compared line by line."""
_LARGEST: Final = 2 * 1024 * 1024
_BUDGET_S: Final = 0.5
_DRIFT: Final = 40
"""Lines that edits may have moved a line against its neighbours."""
_SAME: Final = 0.6
"""Share of lines that a client's window must have in common with its last one to be in the same place."""
_AGAIN_S: Final = 10.0
_MOST_CLIENTS: Final = 64
_WORD: Final = re.compile(r"[^\W_]{2,}")


@dataclass(frozen=True, slots=True)
class Recovery:
    """`path` is absolute or as the client that opened it named it; empty when unknown. `why` says more."""

    path: str
    root: str
    why: str


@dataclass(slots=True)
class _Candidate:
    path: str
    root: str
    score: float
    distinct: int


def recover(text_before: str, text_after: str, mirror: Mirror, readers: Readers) -> Recovery:
    """The file around a cursor. Takes some ten milliseconds and reads files: not for the loop."""
    window = _window(text_before, text_after)
    telling = _telling(window)
    if len(telling) < 2 or len(set(window)) < _FEWEST:
        return Recovery("", "", "too few lines to tell a file by")
    ends = time.monotonic() + _BUDGET_S
    found: dict[str, _Candidate] = {}
    for path, root, text in (*_opened(telling, mirror), *_indexed(telling, readers, ends)):
        key = f"{root}/{path}" if root else path
        judged = _judge(window, text.split("\n"))
        if key not in found or found[key].score < judged[0]:
            found[key] = _Candidate(key, root, *judged)
    return _choose(sorted(found.values(), key=lambda c: -c.score))


def _choose(ranked: Sequence[_Candidate]) -> Recovery:
    if not ranked:
        return Recovery("", "", "no open document and no indexed file holds its lines")
    best = ranked[0]
    if best.score < ENOUGH or best.distinct < _FEWEST:
        return Recovery("", "", f"the best match holds {best.score:.0%} of its lines: not enough")
    if len(ranked) > 1 and ranked[1].score > best.score - APART:
        return Recovery("", "", f"{sum(c.score > best.score - APART for c in ranked)} files hold its lines")
    return Recovery(best.path, best.root, f"{best.score:.0%} of the window's lines are its own")


def _window(before: str, after: str) -> list[str]:
    """Whole lines around the cursor's, stripped, those without a word left out."""
    return _worded(_around(before, after))


def _worded(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if _WORD.search(line)]


def _around(before: str, after: str) -> list[str]:
    """Whole lines around the cursor's, which stay as they are while a person types in one."""
    above = before.rsplit("\n", ABOVE + 1)[:-1][-ABOVE:]
    below = after.split("\n", BELOW + 1)[1 : BELOW + 1]
    if len(above) > 1:
        del above[0]  # it may be cut
    if len(below) > 1:
        del below[-1]
    return above + below


def _telling(window: Sequence[str]) -> list[str]:
    """The line with most different words of each part of the window."""
    step = max(1, -(-len(window) // _ASKED))
    parts = [window[at : at + step] for at in range(0, len(window), step)]
    best = [max(part, key=lambda line: (min(len(set(_WORD.findall(line))), 8), len(line))) for part in parts]
    return [line for line in dict.fromkeys(best) if len(set(_WORD.findall(line))) >= 2]


def _opened(telling: Sequence[str], mirror: Mirror) -> Iterator[tuple[str, str, str]]:
    for document in mirror.documents():
        if 2 * sum(line in document.text for line in telling) >= len(telling):
            yield document.relative or document.path, document.root, document.text


def _indexed(telling: Sequence[str], readers: Readers, ends: float) -> Iterator[tuple[str, str, str]]:
    votes: Counter[tuple[Found, str]] = Counter()
    for index in readers.all():
        for line in telling:
            if time.monotonic() > ends:
                break
            try:
                snippets = index.reader.search(line, 10)
            except IndexDamaged:
                break
            votes.update({(index, snippet.path) for snippet in snippets if line in snippet.text})
    for (index, path), _ in votes.most_common(_READ):
        if time.monotonic() <= ends and not denied(path) and (text := _read(index, path)) is not None:
            yield path, str(index.root), text


def _read(index: Found, path: str) -> str | None:
    """The file as it is on disk, else as it was indexed."""
    file = Path(index.root, path)
    try:
        if file.stat().st_size <= _LARGEST:
            return positions.normalise(positions.decode(file.read_bytes()))[0]
        return "".join(chunk.text for chunk in index.reader.chunks(path))
    except (OSError, IndexDamaged):
        return None


def _judge(window: Sequence[str], lines: Sequence[str]) -> tuple[float, int]:
    """(share of the window's lines that stand in the file where their neighbours do, different ones)."""
    places: dict[str, list[int]] = {}
    wanted = set(window)
    count = 0
    for line in lines:
        text = line.strip()
        if text in wanted:
            places.setdefault(text, []).append(count)
        count += bool(_WORD.search(line))
    shifts: Counter[int] = Counter()
    for number, line in enumerate(window):
        for place in places.get(line, ())[:20]:
            shifts[place - number] += 1
    if not shifts:
        return 0.0, 0
    middle = max(shifts, key=lambda shift: shifts[shift])
    held = [
        line
        for number, line in enumerate(window)
        if any(abs(place - number - middle) <= _DRIFT for place in places.get(line, ()))
    ]
    return len(held) / len(window), len(set(held))


@dataclass(slots=True)
class _Known:
    around: int
    """Hash of the lines around the cursor's."""
    lines: frozenset[str]
    """Of them those with a word."""
    answer: Recovery
    again: float
    """When an answer without a path is looked for anew."""


class Recoverer:
    """Answers for the loop: from what a client's last window was found to be, else beside the loop."""

    def __init__(self, mirror: Mirror, readers: Readers) -> None:
        self._mirror, self._readers = mirror, readers
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._jobs: dict[str, Future[None]] = {}
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, "recovery")

    def find(self, client: str, before: str, after: str, warm: bool = False) -> Recovery:
        """The file around a client's cursor as far as it is known now; less than half a millisecond.

        A text without lines tells nothing and takes nothing back; one that only warms the cache, as llama.vim
        sends between keystrokes, is for the file that the client was in.
        """
        shown = _around(before, after)
        around = hash(tuple(shown))
        with self._lock:
            known = self._known.get(client)
            same = known is not None and known.around == around
            lines = known.lines if known is not None and same else frozenset(_worded(shown))
            if not lines:
                last = known.answer if known is not None and warm else None
                return last or Recovery("", "", "too few lines to tell a file by")
            if known is not None and (same or len(lines & known.lines) >= _SAME * len(lines)):
                if known.answer.path or known.again > time.monotonic():
                    known.around, known.lines = around, lines
                    self._known.move_to_end(client)
                    return known.answer
            elif known is not None:
                del self._known[client]  # the person went elsewhere: a file is no longer taken for granted
            if client not in self._jobs:
                self._jobs[client] = self._pool.submit(self._look, client, before, after, around, lines)
        return Recovery("", "", "being looked for")

    def settle(self, seconds: float) -> None:
        """Wait until nothing is being looked for. Not for the loop."""
        self._pool.submit(lambda: None).result(seconds)

    def shut(self) -> None:
        """End the thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _look(self, client: str, before: str, after: str, around: int, lines: frozenset[str]) -> None:
        answer = Recovery("", "", "it could not be looked for")
        try:
            answer = recover(before, after, self._mirror, self._readers)
        finally:
            with self._lock:
                self._jobs.pop(client, None)
                self._known[client] = _Known(around, lines, answer, time.monotonic() + _AGAIN_S)
                while len(self._known) > _MOST_CLIENTS:
                    self._known.popitem(last=False)
