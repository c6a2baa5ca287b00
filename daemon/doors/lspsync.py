"""Open documents as an editor tells them over LSP, and the daemon's copies of them kept equal.

    didOpen, didChange, didSave → Text → edits with length and CRC-32 → POST /v1/documents

What the daemon finds not to fit is told again as a whole. What an editor says and cannot be right (a change
that begins outside the text) leaves the text doubtful: nothing is answered about it until the editor shows
it whole, which it does when it saves (faults F2-02, F2-13 to F2-17).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

import msgspec

from daemon.documents import positions
from daemon.documents.held import LARGEST, Edit
from daemon.documents.positions import Encoding
from daemon.errors import ForetypeError, NotKept, Resync

MOST_PENDING = 64
"""More edits than this are told as a whole text."""
Ask = Callable[[str, str, Any], Awaitable[dict[str, Any]]]
"""Method, path, body → the daemon's answer."""


class Change(NamedTuple):
    """One change of a didChange. `span` is (line, character, line, character); None: `text` is all."""

    text: str
    span: tuple[int, int, int, int] | None = None


def path_of(uri: str) -> str:
    """The path of a `file:` URI, one spelling for all its spellings; any other URI as it is."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    host = f"//{parts.netloc}" if parts.netloc not in ("", "localhost") else ""
    named = host + parts.path
    path = url2pathname(named) if os.name == "nt" else os.fsdecode(unquote_to_bytes(named))
    if path[1:2] == ":":
        path = path[0].upper() + path[1:]
    return path if path == positions.sound(path) and "\0" not in path else uri


class Text:
    """One open document. `version` is our own count of its changes; `told` the newest the daemon holds,
    0 when that is not known."""

    def __init__(self, path: str, text: str, version: int | None, language: str) -> None:
        self.path = path
        self.language = language
        self.doubtful = False
        self.kept = True
        """False: the daemon keeps no copy, and the text goes with each question."""
        self.closed = False
        self.version = 0
        self.told = 0
        self.task: asyncio.Task[None] | None = None
        self.moved = asyncio.Event()
        self.show(text, version)

    def show(self, text: str, version: int | None) -> None:
        """The editor shows the whole text."""
        self.text = positions.joined(text) if positions.sound(text) is not text else text
        self.theirs = version
        self.version += 1
        self.doubtful, self.whole = False, True
        self.pending: list[Edit] = []

    def change(self, changes: list[Change], version: int | None, encoding: Encoding) -> None:
        """The editor changed it. What is no newer than what is known already was told twice (F2-14)."""
        if version is not None and self.theirs is not None and version <= self.theirs:
            return
        for change in changes:
            if change.span is None:
                self.show(change.text, version)
            else:
                self._edit(change.text, change.span, encoding)
        self.theirs = version
        self.version += 1

    def _edit(self, text: str, span: tuple[int, int, int, int], encoding: Encoding) -> None:
        start, before = positions.locate(self.text, span[0], span[1], encoding)
        end, after = positions.locate(self.text, span[2], span[3], encoding)
        # An end beyond the text or its line is a way to say "all of it"; one inside a character is not.
        inside = after and end < len(self.text) and self.text[end] not in "\r\n"
        self.doubtful = self.doubtful or before or inside or end < start
        self.text = self.text[:start] + text + self.text[max(start, end) :]
        if positions.sound(self.text) is not self.text:
            self.text, self.whole = positions.joined(self.text), True
        if self.whole or len(self.pending) >= MOST_PENDING:
            self.whole, self.pending = True, []
        else:
            self.pending.append(Edit(start, max(start, end), text))

    @property
    def unusable(self) -> str:
        """Why nothing can be answered about it; empty when something can."""
        if self.doubtful:
            return "the editor changed what is not there; saving it helps"
        if len(self.text) > LARGEST:
            return f"it is longer than {LARGEST >> 20} million characters"
        return "it is closed" if self.closed else ""

    def next(self) -> dict[str, Any]:
        """What the daemon has to be told now."""
        text = positions.sound(self.text)
        body: dict[str, Any] = {"path": self.path, "version": self.version, "language": self.language}
        if not self.told:
            body |= {"event": "open", "text": text}
        elif self.whole or text is not self.text or not self.pending:
            body |= {"event": "change", "text": text}
        else:
            edits = msgspec.to_builtins(self.pending)
            crc32 = zlib.crc32(text.encode())
            body |= {"event": "edit", "base": self.told, "edits": edits, "length": len(text), "crc32": crc32}
        self.whole, self.pending = text is not self.text, []
        return body


class Sync:
    """All open documents of one editor. `ask` reaches the daemon, `trouble` is told what it could not do."""

    def __init__(self, ask: Ask, trouble: Callable[[ForetypeError], None]) -> None:
        self._ask = ask
        self._trouble = trouble
        self._texts: dict[str, Text] = {}
        self.resyncs = 0
        """How often the daemon's copy was another one."""

    def text(self, uri: str) -> Text | None:
        """The document, when it is open."""
        return self._texts.get(path_of(uri))

    def open(self, uri: str, text: str, version: int | None, language: str) -> None:
        """It is open from now on; opened twice it is the new one."""
        path = path_of(uri)
        if (known := self._texts.get(path)) is None:
            known = self._texts[path] = Text(path, text, version, language)
        else:
            known.language = language
            known.show(text, version)
        self._go(known)

    def change(self, uri: str, changes: list[Change], version: int | None, encoding: Encoding) -> None:
        """Changes of a document; those of one that is not open say nothing."""
        if (known := self.text(uri)) is not None:
            known.change(changes, version, encoding)
            self._go(known)

    async def save(self, uri: str, text: str | None) -> None:
        """It was saved, as `text` if the editor says so: what was doubtful is so no longer."""
        known = self.text(uri)
        if known is None:
            return
        if text is None and known.doubtful and known.path != uri:
            version = known.version
            with contextlib.suppress(OSError):
                text = positions.decode(await asyncio.to_thread(Path(known.path).read_bytes))
            text = text if known.version == version else None
        if text is not None and (known.doubtful or text != known.text):
            known.show(text, known.theirs)
        if not known.kept:
            known.kept, known.told = True, 0
        self._go(known)

    async def close(self, uri: str) -> None:
        """It is open no longer."""
        known = self._texts.pop(path_of(uri), None)
        if known is None:
            return
        known.closed = True
        if known.task is not None:
            await asyncio.wait([known.task])
        if known.path not in self._texts:
            await self._say({"event": "close", "path": known.path})

    async def focus(self, uri: str) -> None:
        """The person looks at it."""
        if (known := self.text(uri)) is not None:
            await self._say({"event": "focus", "path": known.path})

    def diverged(self, known: Text) -> None:
        """The daemon holds another text or version of it: it is told the whole, and is silent until then."""
        self.resyncs += 1
        known.told = 0
        self._go(known)

    def forget(self) -> None:
        """The daemon knows nothing of this editor: all is told anew with the next thing said of each."""
        for known in self._texts.values():
            known.told = 0

    async def end(self) -> None:
        """The editor goes: so do its documents."""
        await asyncio.gather(*(self.close(path) for path in list(self._texts)))

    async def source(self, known: Text) -> dict[str, Any] | None:
        """The text as it is now, as a question names it: by a version that the daemon holds, or whole. None
        when it is doubtful, changed while this waited, or could not be told."""
        version, said = known.version, {"path": known.path, "language": known.language}
        self._go(known)
        while known.told < version and known.task is not None:
            await known.moved.wait()
        if known.unusable or known.version != version:
            return None
        text = positions.sound(known.text)
        if not known.kept:
            return {**said, "text": text}
        if known.told != version:
            return None
        return {**said, "version": version, "crc32": zlib.crc32(text.encode())}

    def _go(self, known: Text) -> None:
        if known.task is None and not known.unusable and known.kept and known.told != known.version:
            known.task = asyncio.create_task(self._tell(known), name="sync")

    async def _tell(self, known: Text) -> None:
        """Until the daemon holds what the editor does."""
        try:
            while not known.unusable and known.kept and known.told != known.version:
                version, body = known.version, known.next()
                try:
                    await self._ask("POST", "/v1/documents", body)
                    known.told = version
                except NotKept:
                    known.kept = False
                except Resync:
                    self.resyncs += 1
                    known.told = 0
                known.moved.set()
                known.moved = asyncio.Event()
        except ForetypeError as error:
            known.told = 0
            self._trouble(error)
        finally:
            known.task = None
            known.moved.set()
            known.moved = asyncio.Event()

    async def _say(self, body: dict[str, Any]) -> None:
        try:
            await self._ask("POST", "/v1/documents", body)
        except ForetypeError as error:
            self._trouble(error)
