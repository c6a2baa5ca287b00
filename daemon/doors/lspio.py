"""LSP over standard input and output. Only frames are written there, and nobody waits for a slow reader."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable

from daemon.doors.lsp import serve
from daemon.doors.lsplink import Link
from daemon.settings import Index

_CHUNK = 65536
_LAST_WORDS_S = 1.0


def run(link: Callable[[], Link], index: Index) -> int:
    """Serve the editor that started this process; the exit status."""
    return asyncio.run(_run(link, index))


async def _run(link: Callable[[], Link], index: Index) -> int:
    source, sink = _claim()
    inlet = _Inlet()
    threading.Thread(target=inlet.read, args=(source,), name="stdin", daemon=True).start()
    writer = _Outlet(sink, inlet.end)
    try:
        return await serve(inlet.reader, writer, link(), index)
    finally:
        writer.close()


def _claim() -> tuple[int, int]:
    """Standard input and output for frames alone: whatever else this process writes goes to stderr."""
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - its descriptor is what counts
        os.dup2(nothing.fileno(), 0)
    return source, sink


class _Inlet:
    """Bytes of the editor, read by a thread: no other way works on all systems and for all kinds of pipes."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self._loop = asyncio.get_running_loop()
        self._over = False

    def read(self, source: int) -> None:
        """In the thread, until the editor closes its end."""
        with contextlib.suppress(OSError):
            while data := os.read(source, _CHUNK):
                if not self._pass(data):
                    return
        self._pass(b"")

    def end(self) -> None:
        """From any thread: the editor is gone."""
        self._pass(b"")

    def _pass(self, data: bytes) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._feed, data)
        except RuntimeError:  # the loop has ended
            return False
        return True

    def _feed(self, data: bytes) -> None:
        if self._over:
            return
        if data:
            self.reader.feed_data(data)
        else:
            self._over = True
            self.reader.feed_eof()


class _Outlet:
    """Frames to the editor, written by a thread in the order in which they came."""

    def __init__(self, sink: int, broken: Callable[[], None]) -> None:
        self._sink, self._broken = sink, broken
        self._queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="stdout", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """One frame."""
        self._queue.put(data)

    def close(self) -> None:
        """Wait a moment for what is not written yet."""
        self._queue.put(b"")
        self._thread.join(_LAST_WORDS_S)

    def _write(self) -> None:
        try:
            while data := self._queue.get():
                while data:
                    data = data[os.write(self._sink, data) :]
        except OSError:
            self._broken()
