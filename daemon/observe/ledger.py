"""Every request leaves a row: handed over on the loop, written and read by one thread that owns the file.

Nobody waits for the disk: when the thread falls behind, rows are dropped and counted. A file that cannot be
had turns the ledger off, and status says why; it is tried again from time to time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from daemon.errors import BadRequest, NotSupported, Overloaded
from daemon.observe.entries import Entry
from daemon.observe.fates import Fate
from daemon.observe.ring import Ring, damaged, put_aside, remove
from daemon.settings import Ledger as Settings

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_Row = Entry | Fate
_Question = tuple[Callable[[Ring], Any], "Future[Any]"]
WAITING = 256
"""Rows that may wait for the thread."""
_LINGER_S = 1.0
_BATCH = 64
_LOOK_S = 60.0
"""Most time between two purges; a computer that slept is not late for longer."""
_LOOKS = 10
"""Purges per lifetime of a text, so that short lifetimes are kept as well."""
_AGAIN_S = 60.0
PREFIX = "cmpl-"
"""May be left out where an id is asked for."""


class Ledger:
    """The ring at `path`. `start` before use, `close` after it; the rest is for one event loop."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self._path, self._settings = path, settings
        self._keep_s = settings.keep_text_minutes * 60
        self._look_s = min(_LOOK_S, self._keep_s / _LOOKS) if self._keep_s > 0 else None
        self._queue: queue.Queue[_Row | _Question | None] = queue.Queue(WAITING)
        self._hurry = threading.Event()
        """Ends the wait for more rows."""
        self._thread = threading.Thread(target=self._live, name="ledger", daemon=True)
        self._ring: Ring | None = None
        self._tried = float("-inf")
        self._rows = self._dropped = 0
        self._note = ""
        self._why = "" if settings.on else "ledger.on is false"

    def start(self) -> None:
        """Open the file in the background. With `on` false there is no file, and one that was is removed."""
        self._thread.start()

    def add(self, entry: Entry | Fate) -> None:
        """Leave a row. Returns at once."""
        if self._settings.on:
            try:
                self._queue.put_nowait(entry)
            except queue.Full:
                self._dropped += 1
            if self._queue.qsize() >= _BATCH:
                self._hurry.set()

    async def last(self, count: int) -> list[Entry]:
        """The newest `count` rows, oldest first, without texts. Raises NotSupported, Overloaded."""
        return await self._ask(lambda ring: ring.last(count))

    async def find(self, prefix: str) -> Entry:
        """The row whose id is, or begins with, `prefix` (`cmpl-` may be left out), with its text while kept.

        Raises BadRequest for none or several, NotSupported, Overloaded.
        """
        names = (prefix, PREFIX + prefix)
        found = await self._ask(lambda ring: [one for name in names for one in ring.find(name, 2)])
        if not found or not prefix:
            raise BadRequest(f"the ledger has no request {prefix!r}", "`foretype audit` lists those it has")
        exact = [entry for entry in found if entry.id in names]
        if len(found) > 1 and not exact:
            raise BadRequest(f"more than one request begins with {prefix!r}", "Give more of the id")
        return (exact or found)[0]

    async def figures(self, days: float) -> dict[str, Any]:
        """Of the answers of the last `days`, see fates.figures. Raises NotSupported, Overloaded."""
        since = time.time() - days * 86_400
        return await self._ask(lambda ring: ring.figures(since, self._settings.shown_ms))

    @property
    def state(self) -> dict[str, Any]:
        """For status: whether rows are kept, why not, how many, how many were dropped, and what happened."""
        return {
            "on": not self._why,
            "why": self._why,
            "rows": self._rows,
            "dropped": self._dropped,
            "note": self._note,
        }

    def close(self, seconds: float = 0.5) -> None:
        """Write what waits and take the texts out, because nobody would later.

        Waits at most twice `seconds`.
        """
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=seconds)
            self._hurry.set()
            if self._thread.is_alive():
                self._thread.join(seconds)

    async def _ask(self, question: Callable[[Ring], _T]) -> _T:
        if not self._settings.on:
            raise self._refusal()
        answer: Future[_T] = Future()
        try:
            self._queue.put_nowait((question, answer))
        except queue.Full as full:
            raise Overloaded("the ledger is busy", "Try again in a moment") from full
        self._hurry.set()
        return await asyncio.wrap_future(answer)

    def _refusal(self) -> NotSupported:
        return NotSupported(f"the request ledger is off: {self._why}", "`foretype status` shows its state")

    def _live(self) -> None:
        if not self._settings.on:
            with contextlib.suppress(OSError):
                remove(self._path)
            return
        self._opened()
        purged, taken = time.monotonic(), list[_Row | _Question | None]()
        while None not in taken:
            taken = self._take(purged)
            self._write([one for one in taken if isinstance(one, Entry | Fate)])
            for one in taken:
                if isinstance(one, tuple):
                    self._answer(*one)
            if self._look_s is not None and time.monotonic() - purged >= self._look_s:
                purged = time.monotonic()
                self._purge(self._look_s)
        self._purge(0.0, everything=True)
        if self._ring is not None:
            self._ring.close()

    def _take(self, purged: float) -> list[_Row | _Question | None]:
        """What waits, in order; nothing when it is time to purge again. Rows wait for others, so that writing
        them stays out of the way of a person who types: it wakes for none. A question ends the wait."""
        wait = None if self._look_s is None else max(0.0, purged + self._look_s - time.monotonic())
        taken = []
        with contextlib.suppress(queue.Empty):
            taken.append(self._queue.get(timeout=wait))
            if isinstance(taken[0], Entry | Fate):
                self._hurry.wait(_LINGER_S)
            self._hurry.clear()
            while len(taken) < _BATCH and isinstance(taken[-1], Entry | Fate):
                taken.append(self._queue.get_nowait())
            if not self._queue.empty():
                self._hurry.set()
        return taken

    def _opened(self) -> Ring | None:
        """The ring; None while it cannot be had. A file that somebody removed is made anew."""
        if self._ring is not None and not self._ring.there:
            self._ring.close()
            self._ring, self._tried = None, float("-inf")
        if self._ring is None and time.monotonic() - self._tried >= _AGAIN_S:
            self._tried = time.monotonic()
            try:
                self._ring = Ring(self._path, self._settings.rows, self._keep_s, self._settings.answers)
            except (OSError, sqlite3.Error) as error:
                self._fail(error)
            else:
                self._why, self._rows = "", self._ring.rows
                self._note = self._ring.note or self._note
        return self._ring

    def _write(self, entries: list[_Row]) -> None:
        if not entries:
            return
        if (ring := self._opened()) is None:
            self._dropped += len(entries)
            return
        try:
            ring.write(entries)
            self._rows = ring.rows
        except (OSError, sqlite3.Error) as error:
            self._dropped += len(entries)
            self._fail(error)

    def _answer(self, question: Callable[[Ring], Any], answer: Future[Any]) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            if (ring := self._opened()) is None:
                raise self._refusal()
            answer.set_result(question(ring))
        except (OSError, sqlite3.Error) as error:
            self._fail(error)
            answer.set_exception(self._refusal())
        except Exception as error:  # whoever asks is told; the thread goes on
            answer.set_exception(error)

    def _purge(self, early_s: float, *, everything: bool = False) -> None:
        try:
            if self._ring is not None:
                self._ring.purge(early_s, everything=everything)
        except (OSError, sqlite3.Error) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Off until the file can be had again; a damaged one is put aside at once."""
        self._why = getattr(error, "strerror", None) or str(error)
        _log.warning("the ledger is off: %s", self._why)
        if self._ring is not None:
            with contextlib.suppress(sqlite3.Error):
                self._ring.close()
            self._ring = None
            if damaged(error):
                self._note = f"the last file was put aside: {self._why}"
                with contextlib.suppress(OSError):
                    put_aside(self._path)
                    self._tried = float("-inf")
