"""The text of each open document exactly as its client holds it, moved on by edits that prove themselves.

Offsets count code points of that text, its own line ends and byte order mark included. An edit names the
version that it applies to, and the length and CRC-32 of what must come out. One that does not fit makes the
copy worthless: it is dropped, and nothing is said about the document until its whole text comes
(faults F2-13 to F2-16).
"""

from __future__ import annotations

import zlib
from collections import OrderedDict

import msgspec

from daemon.errors import NotKept, Resync

LARGEST = 4 * 1024 * 1024
"""A longer text is not kept anywhere."""
MOST_DOCUMENTS = 64
MOST_CHARACTERS = 32 * 1024 * 1024
_MOST_COPIED = 16 * 1024 * 1024
"""Characters that all edits of one request may move: more takes longer than the whole text."""
_WHOLE = "Tell the whole text"


class Edit(msgspec.Struct, frozen=True):
    """Code points from `start` to `end` become `text`; a later edit counts in what earlier ones made."""

    start: int
    end: int
    text: str = ""


class Copy(msgspec.Struct, frozen=True):
    """One version of one client's text. `text` is None where nothing may be kept."""

    version: int
    text: str | None
    language: str | None = None


class Held:
    """Copies by client and path as the client names it; the least recently used go first. One loop only."""

    def __init__(self, documents: int = MOST_DOCUMENTS, characters: int = MOST_CHARACTERS) -> None:
        self._most, self._most_characters = documents, characters
        self._copies: OrderedDict[tuple[str, str], Copy] = OrderedDict()
        self._characters = 0

    def take(self, client: str, path: str, copy: Copy, *, opened: bool = False) -> None:
        """The client holds this now. An older version than one known is ignored unless `opened` anew."""
        known = self._copies.get((client, path))
        if known is not None and copy.version < known.version and not opened:
            return
        self.drop(client, path)
        self._copies[client, path] = copy
        self._characters += len(copy.text or "")
        while len(self._copies) > 1 and (
            len(self._copies) > self._most or self._characters > self._most_characters
        ):
            self.drop(*next(iter(self._copies)))

    def drop(self, client: str, path: str) -> None:
        """Nothing is known of what the client holds."""
        if (gone := self._copies.pop((client, path), None)) is not None:
            self._characters -= len(gone.text or "")

    def copy(self, client: str, path: str, version: int, crc32: int | None = None) -> tuple[str, str | None]:
        """Text and language of that version. Raises Resync where another or none is held, or one of another
        `crc32`, and NotKept where none may be."""
        copy = self._copies.get((client, path))
        if copy is None or (copy.text is not None and copy.version != version):
            held = f"version {copy.version}" if copy is not None else "no version"
            raise Resync(f"{held} of this document is held, not {version}", _WHOLE)
        if copy.text is None:
            raise NotKept("Nothing of this document is kept", "Send its text with each request")
        if crc32 is not None and zlib.crc32(copy.text.encode()) != crc32:
            self.drop(client, path)
            raise Resync("Another text is held", _WHOLE)
        self._copies.move_to_end((client, path))
        return copy.text, copy.language

    def edited(  # noqa: PLR0917 - an edit is these
        self, client: str, path: str, base: int, edits: tuple[Edit, ...], length: int, crc32: int
    ) -> tuple[str, str | None]:
        """Text and language after `edits` of version `base`; `take` makes them the held ones.

        `length` in code points, `crc32` of the UTF-8. Raises Resync, and drops the copy, where the edits do
        not fit it or make another text than the client has; NotKept as `copy` does.
        """
        try:
            text, language = self.copy(client, path, base)
            if len(edits) * len(text) > _MOST_COPIED:
                raise Resync("So many edits cost more than the whole text", _WHOLE)
            for edit in edits:
                if not 0 <= edit.start <= edit.end <= len(text):
                    raise Resync("An edit lies outside the document", _WHOLE)
                text = text[: edit.start] + edit.text + text[edit.end :]
            if len(text) != length or zlib.crc32(text.encode()) != crc32:
                raise Resync("The edits make another text than the client has", _WHOLE)
        except NotKept:
            raise
        except Resync:
            self.drop(client, path)
            raise
        return text, language
