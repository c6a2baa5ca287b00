"""Versioned copies of open documents and of those that requests showed, with their trees and recent regions.

    request, event → Document;  edits, visits, accepted completions → Region

Nothing of a file whose name is on the deny list is kept. The number and size of copies are bounded; the
least recently used go first.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import RLock

from daemon.documents import positions
from daemon.documents.buffers import Buffer
from daemon.documents.contents import Content, Pause, prepare
from daemon.documents.document import Document, Region, language_of
from daemon.documents.held import LARGEST
from daemon.documents.regions import Where, Work
from daemon.documents.trees import difference
from daemon.nouns import CompletionRequest
from daemon.readers import Finder
from indexer.content import denied, secret

MOST_DOCUMENTS = 64
MOST_BYTES = 32 * 1024 * 1024
_PLACE_S = 2.0
"""How long the answer to `which root holds this path` is taken for granted."""
DENIED = "its name or content is on the deny list: nothing of it is kept"


class Mirror:
    """See the module. Every method may be called from any thread; `see` and the events suit the loop."""

    def __init__(
        self, readers: Finder, *, documents: int = MOST_DOCUMENTS, total_bytes: int = MOST_BYTES
    ) -> None:
        self._readers = readers
        self._most, self._most_bytes = documents, total_bytes
        self._buffers: OrderedDict[str, Buffer] = OrderedDict()
        self._last: Buffer | None = None
        self._pause: Pause[Buffer] = Pause(lambda buffer: buffer.rest(uses=buffer is not self._last))
        self._bytes = 0
        self._lock = RLock()
        self._pool = ThreadPoolExecutor(1, "documents")
        self._work = Work()
        self._places: dict[str, tuple[float, Where]] = {}
        self.noticed: Callable[[str, str], None] = lambda client, path: None
        """Called with client and path when a document is opened or focused, before the first keystroke."""
        self.left_out: Callable[[str], object] = lambda path: False
        """Whether the user or a project leaves a path out of everything. Asked on the loop."""

    def see(self, request: CompletionRequest) -> Document:
        """The document of a request with the cursor in it.

        A whole text with a path updates the copy. A window of lines never does: it is found inside the copy,
        or handed back as it is.
        """
        text, offset = request.prefix + request.suffix, len(request.prefix)
        path = request.path or ""
        if not path or denied(path) or len(text) > LARGEST:
            why = "the client names no path" if not path else DENIED if denied(path) else "too large to keep"
            return self._loose(request, text, why)
        with self._lock:
            where = self._place(path)
            if text_taken := self._work.taken(request):
                self._work.accept(where, text_taken)
            buffer = self._at(where)
            if request.whole:
                buffer = self._take(where, text, request.language or "", buffer)
                if buffer is None:
                    return self._loose(request, text, DENIED)
                found = offset
            else:
                found = _find(buffer.text, text, offset) if buffer is not None else -1
                if buffer is not None and found >= 0:
                    self._used(buffer)
            if buffer is None or found < 0:
                self._work.window(where, request.prefix, request.suffix)
                return self._loose(request, text, "a window of a file that is not open")
            self._work.go(request.client, buffer.where, buffer.text.count("\n", 0, found))
            buffer.grow(self._pool, self._lock)
            return buffer.document(found)

    def open(self, client: str, path: str, text: str, language: str | None = None, version: int = 0) -> bool:
        """A client opened a document, or says what it now holds. Answers as `change` does."""
        kept = self.change(client, path, text, version, language=language, opened=True)
        self.noticed(client, path)
        return kept

    def change(
        self,
        client: str,
        path: str,
        text: str,
        version: int | None = None,
        *,
        language: str | None = None,
        opened: bool = False,
    ) -> bool:
        """The whole new text of a document. A version older than one seen from this client is ignored.
        False when nothing of the document may be kept."""
        if not path or denied(path):
            return False
        clean, _ = positions.normalise(text)
        with self._lock:
            where = self._place(path)
            buffer = self._at(where)
            if self.left_out(path):
                if buffer is not None:
                    self._drop(buffer)
                self._work.forget(where.key)
                return False
            known = buffer.clients.get(client) if buffer is not None else None
            if known is not None and version is not None and version < known and not opened:
                return True
            buffer = self._take(where, clean, language or "", buffer)
            if buffer is not None:
                buffer.clients[client] = version if version is not None else known or 0
                buffer.grow(self._pool, self._lock)
            return buffer is not None

    def close(self, client: str, path: str) -> None:
        """A client has it open no longer. What was done in it stays known."""
        with self._lock:
            buffer = self._buffers.get(self._place(path).key)
            if buffer is not None:
                buffer.clients.pop(client, None)
                if not buffer.clients:
                    self._drop(buffer)

    def visit(self, client: str, path: str, line: int = -1) -> None:
        """The person looks at a line, or at the document when `line` is negative."""
        if not path or denied(path):
            return
        new = True
        with self._lock:
            buffer = self._buffers.get(self._place(path).key)
            if buffer is not None:
                self._used(buffer)
                if line >= 0:
                    new = self._work.go(client, buffer.where, line)
        if new:  # some clients tell each step of the cursor
            self.noticed(client, path)

    def accepted(self, client: str, path: str, text: str) -> None:
        """The person took a completion."""
        if not path or denied(path) or self.left_out(path):
            return
        with self._lock:
            self._work.accept(self._place(path), positions.normalise(text)[0])

    def shown(self, request: CompletionRequest, text: str) -> None:
        """A completion was shown. When a later request of the client holds it in its place, it was taken."""
        with self._lock:
            if request.path and not denied(request.path):
                self._work.show(request, positions.normalise(text)[0])

    def holds(self, path: str) -> bool:
        """Whether a client has a document open."""
        with self._lock:
            buffer = self._buffers.get(self._place(path).key)
        return buffer is not None and bool(buffer.clients)

    def line(self, client: str, path: str) -> int | None:
        """Where a client was last in a document; None where it was elsewhere since."""
        with self._lock:
            return self._work.line(client, self._place(path).key)

    def recent(self, limit: int = 32) -> tuple[Region, ...]:
        """Where the person worked, the newest first."""
        with self._lock:
            return self._work.newest(limit, lambda key: b.text if (b := self._buffers.get(key)) else None)

    def unsaved(self) -> tuple[Document, ...]:
        """Open documents that differ from their files, the newest first. Reads files: not for the loop."""
        return tuple(buffer.document() for buffer in self._unsaved())

    def overlay(self, here: tuple[str, str] = ("", "")) -> dict[tuple[str, str], Content]:
        """(root, relative path) → content of every unsaved document. `here` changes with every keystroke and
        is asked for its definitions alone: it comes without references. Not for the loop."""
        found = {}
        for buffer in self._unsaved():
            _, _, root, relative = buffer.where
            if root and (content := buffer.content(uses=(root, relative) != here)) is not None:
                found[root, relative] = content
        return found

    def documents(self) -> tuple[Document, ...]:
        """All copies, the newest first, without waiting for trees."""
        with self._lock:
            return tuple(buffer.document() for buffer in reversed(self._buffers.values()))

    def settle(self, seconds: float) -> bool:
        """Wait until all is there that a pause in typing brings; False when that takes longer. Not for the
        loop."""
        done, _ = wait([self._pool.submit(lambda: None)], seconds)
        return bool(done) and self._pause.settle(seconds)

    def shut(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pause.shut()

    def _unsaved(self) -> list[Buffer]:
        with self._lock:
            buffers = list(reversed(self._buffers.values()))
        return [buffer for buffer in buffers if not buffer.saved()]

    def _loose(self, request: CompletionRequest, text: str, why: str) -> Document:
        _, _, root, relative = self._place(request.path) if request.path else Where("", "", "", "")
        found = language_of(request.path or "", b"", request.language)
        return Document(
            path=request.path or "",
            root=root,
            relative=relative,
            language=found.name if found else request.language or "",
            text=text,
            offset=len(request.prefix),
            whole=request.whole,
            source=text.encode("utf-8", "replace"),
            why=why,
        )

    def _place(self, path: str) -> Where:
        now = time.monotonic()
        until, known = self._places.get(path, (0.0, Where("", "", "", "")))
        if until > now:
            return known
        found = self._readers.find(path)
        if found is not None:
            known = Where(f"{found.root}/{found.path}", path, str(found.root), found.path)
        else:
            real = os.path.realpath(path) if Path(path).is_absolute() else os.path.normpath(path)
            known = Where(real, path, "", "")
        if len(self._places) > 1_000:
            self._places.clear()
        self._places[path] = (now + _PLACE_S, known)
        return known

    def _at(self, where: Where) -> Buffer | None:
        """The copy there is, told its place anew: its folder may be indexed only since it is open."""
        if (buffer := self._buffers.get(where.key)) is not None:
            buffer.where = where
        return buffer

    def _take(self, where: Where, text: str, language: str, buffer: Buffer | None) -> Buffer | None:
        """The copy of a file, made or changed to `text`; None when it may not be kept."""
        path = where.path
        if buffer is not None and buffer.text == text:
            buffer.seen = time.time()
            self._used(buffer)
            return buffer
        source = text.encode("utf-8", "replace")
        if len(text) > LARGEST or secret(source, path.replace("\\", "/").rpartition("/")[2].lower()):
            if buffer is not None:
                self._drop(buffer)
                self._work.forget(where.key)
            return None
        if buffer is None:
            buffer = Buffer(where, language_of(path, source, language), language)
            self._buffers[where.key] = buffer
            if buffer.language is not None:
                self._pool.submit(prepare, buffer.language)
        elif (edit := difference(buffer.source, source)) is not None:
            start, old_end, new_end = edit.start_point[0], edit.old_end_point[0], edit.new_end_point[0]
            self._work.shift(where.key, start, old_end, new_end)
            self._work.add(where, "edited", (start, new_end + 1))
        self._bytes += len(source) - len(buffer.source)
        buffer.take(text, source)
        self._pause.after(buffer)
        buffer.seen = time.time()
        self._used(buffer)
        return buffer

    def _used(self, buffer: Buffer) -> None:
        if self._last is not None and self._last is not buffer:
            self._pause.after(self._last)
        self._last = buffer
        self._buffers.move_to_end(buffer.where.key)
        while len(self._buffers) > 1 and (len(self._buffers) > self._most or self._bytes > self._most_bytes):
            self._drop(next(iter(self._buffers.values())))

    def _drop(self, buffer: Buffer) -> None:
        self._last = None if self._last is buffer else self._last
        self._work.freeze(buffer.where.key, buffer.text)
        self._bytes -= len(buffer.source)
        self._buffers.pop(buffer.where.key, None)


def _find(text: str, window: str, offset: int) -> int:
    """Where in `text` the place `offset` of `window` is; -1 when it is not there or in two places."""
    at = text.find(window) if window else -1
    return -1 if at < 0 or text.find(window, at + 1) >= 0 else at + offset
