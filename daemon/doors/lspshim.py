"""Between one editor and the daemon: questions about its documents, what became of answers, its folders."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

from lsprotocol import types

from daemon import roots
from daemon.documents import positions
from daemon.documents.positions import Encoding
from daemon.doors.lspitems import Answer, Place
from daemon.doors.lsplink import Link
from daemon.doors.lspnews import Begin, News, Watch
from daemon.doors.lspsync import Sync, Text, path_of
from daemon.errors import ForetypeError, NotKept, Overloaded, Resync
from daemon.settings import Index

_ANSWER_S = 60.0
_CLOSE_S = 1.0
_REMEMBERED = 64
"""Answers whose text is known when the editor says what became of them."""


class Shim:
    """Everything of one editor that is no protocol. `client` names it to the daemon."""

    def __init__(self, link: Link, news: News, begin: Begin, client: str) -> None:
        self.client = client
        self.news = news
        self._link = link
        self.sync = Sync(self._told, news.trouble)
        link.lost = self.sync.forget
        self._watch = Watch(lambda: link.ask("GET", "/v1/status"), news, begin)
        self._answers: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Text of an answer, and what stands before it in its item."""
        self._busy: Overloaded | None = None
        self._not_before = 0.0
        """When the daemon, that was too busy, wants to be asked again."""

    def used(self) -> None:
        """The person is at work: look what the daemon does."""
        self._watch.used()

    async def answer(
        self,
        uri: str,
        at: types.Position,
        encoding: Encoding,
        *,
        by_hand: bool = False,
        selected: types.SelectedCompletionInfo | None = None,
    ) -> tuple[Answer, Place] | None:
        """What belongs at a place of an open document, and the place; None when there is nothing to show.

        With an item of a list `selected` the answer goes on behind that item. Cancelling cancels the work.
        """
        self.used()
        known = self.sync.text(uri)
        if known is not None and known.unusable:
            self.news.once(f"{PurePath(known.path).name} is not completed: {known.unusable}")
        if known is None or known.unusable or (not by_hand and time.monotonic() < self._not_before):
            return None
        if by_hand:
            self._link.wake()
        at = selected.range.end if selected is not None else at
        offset, clamped = positions.locate(known.text, at.line, at.character, encoding)
        if clamped:
            return None
        place = Place(known.text, offset, at, encoding)
        try:
            body = await self._asked(known, place, by_hand, selected)
        except ForetypeError as error:
            self._put_off(error)
            self.news.trouble(error)
            return None
        return self._received(body, place, selected.text if selected is not None else "")

    def _received(
        self, body: dict[str, Any] | None, place: Place, before: str
    ) -> tuple[Answer, Place] | None:
        if body is None:
            return None
        self.news.well()
        if body["stop"] == "engine":
            self.news.once(f"the engine failed: {body['note'] or 'no reason given'}", failed=True)
        if not body["text"]:
            return None
        answer = Answer.of(body)
        self._answers[answer.id] = answer.text, before
        while len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)
        return answer, place

    async def _asked(
        self, known: Text, place: Place, by_hand: bool, selected: types.SelectedCompletionInfo | None
    ) -> dict[str, Any] | None:
        """The daemon's answer; None when the text is not, or no longer, the one that was asked about."""
        version = known.version
        while (source := await self.sync.source(known)) is not None and known.version == version:
            body = {"client": self.client, "trigger": "manual" if by_hand else "auto", **source}
            if selected is None:
                body["cursor"] = {"offset": place.offset}
            else:
                body |= _behind(selected, place)
            try:
                return await self._link.ask("POST", "/v1/complete", body, _ANSWER_S)
            except NotKept:
                known.kept = False
            except Resync:
                if known.version == version:
                    self.sync.diverged(known)
                return None
        return None

    async def _told(self, method: str, path: str, body: Any) -> dict[str, Any]:
        """Of documents. A daemon that is too busy is not bothered with whole texts at each keystroke."""
        if self._busy is not None and time.monotonic() < self._not_before:
            raise self._busy
        try:
            return await self._link.ask(method, path, {**body, "client": self.client})
        except Overloaded as error:
            self._put_off(error)
            raise

    def _put_off(self, error: ForetypeError) -> None:
        if isinstance(error, Overloaded) and error is not self._busy:
            self._busy, self._not_before = error, time.monotonic() + error.retry_after

    async def feedback(self, answer: str, kind: str, length: int | None = None) -> None:
        """An answer was `shown`, `accepted`, or `partly` so: until now `length` UTF-16 units of its item."""
        body: dict[str, Any] = {"id": answer, "kind": kind, "client": self.client}
        text, before = self._answers.get(answer, ("", ""))
        if kind == "partly":
            taken = max(0, positions.points(before + text, length or 0) - len(before))
            if before and taken == 0:
                return  # of the editor's own item only
            body |= {"kind": _part(text, taken), "characters": taken}
        elif kind == "accepted" and text:
            body["characters"] = len(text)
        with contextlib.suppress(ForetypeError):  # figures only
            await self._link.ask("POST", "/v1/feedback", body)

    async def folders(self, uris: list[str], settings: Index, log: Callable[[str], None]) -> None:
        """The editor has these folders open: they are indexed from now on."""
        for path, uri in ((path_of(uri), uri) for uri in uris):
            if path == uri or not settings.on:
                continue
            try:
                if await asyncio.to_thread(roots.adopt, Path(path), settings):
                    log(f"Foretype indexes {path} from now on; `foretype index rm {path}` ends that")
            except ForetypeError as error:
                self.news.trouble(error)

    async def close(self) -> None:
        """The editor goes. Takes a second at most."""
        self._watch.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self.sync.end()
        await self._link.close()


def _behind(selected: types.SelectedCompletionInfo, place: Place) -> dict[str, Any]:
    """The text as it will be once the selected item is taken, cut behind it."""
    start, _ = positions.locate(
        place.text, selected.range.start.line, selected.range.start.character, place.encoding
    )
    prefix, suffix = place.text[:start] + selected.text, place.text[place.offset :]
    return {
        "version": None,
        "text": None,
        "prefix": positions.sound(prefix),
        "suffix": positions.sound(suffix),
    }


def _part(text: str, taken: int) -> str:
    """What was taken: all, some lines, or less."""
    if taken >= len(text):
        return "accepted"
    return (
        "line" if text[:taken].endswith(("\n", "\r")) or text[taken : taken + 1] in ("\n", "\r") else "word"
    )
