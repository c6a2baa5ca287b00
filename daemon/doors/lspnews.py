"""What an editor tells of the daemon: each trouble once, and how far loading, pulling and indexing are."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import PurePath
from typing import Any, NamedTuple, Protocol

from daemon.errors import ForetypeError, Loading, NotRunning, Overloaded
from daemon.models import catalogue
from daemon.models.partial import Partial

_BURST_S = 30.0
"""Refusals with less time between them are one burst."""
_LOOK_S = 1.0
"""Between two looks at the status while something goes on, …"""
_FRESH_S = 5.0
"""… and at least this while the editor is used and nothing does."""
_MOST_TOLD = 100
_STALLED_S = 10.0
"""An unfinished file that has not grown for so long is nobody's pull."""


class Going(NamedTuple):
    """Work under way. `percent` is None where nobody knows."""

    name: str
    title: str
    message: str
    percent: int | None


class Bar(Protocol):
    """One progress bar of the editor."""

    def report(self, going: Going) -> None:
        """How far it is."""
        ...

    def end(self) -> None:
        """It is over."""
        ...


Show = Callable[[str, bool], None]
"""A message, and whether it says that something does not work at all."""
Begin = Callable[[Going], Awaitable[Bar | None]]
"""Open a bar; None when the editor has none."""


class News:
    """Remembers what was told."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._told: dict[str, None] = {}
        self._refused = 0.0
        """When the last request was told to come later; 0: none was."""
        self._gone = False

    def once(self, text: str, *, failed: bool = False) -> None:
        """Tell it, unless it was told already."""
        if text not in self._told:
            self._told[text] = None
            if len(self._told) > _MOST_TOLD:
                del self._told[next(iter(self._told))]
            self._show(f"Foretype: {text}", failed)

    def trouble(self, error: ForetypeError) -> None:
        """A request failed. While the model loads that is no news: a progress bar shows it."""
        if isinstance(error, Overloaded):
            now = time.monotonic()
            if not self._refused or now - self._refused > _BURST_S:
                self._show(f"Foretype is busy: {error}", False)
            self._refused = now
        elif isinstance(error, NotRunning):
            if not self._gone:
                self._show(f"Foretype: {error}", True)
            self._gone = True
        elif not isinstance(error, Loading):
            self.once(str(error), failed=True)

    def well(self) -> None:
        """The daemon was reached: should it go again, that is news again."""
        self._gone = False

    def status(self, body: dict[str, Any]) -> None:
        """What is degraded."""
        model = body.get("model", {})
        if model.get("phase") == "failed" and not model.get("remedy"):
            self.once(f"the engine failed: {model.get('detail')}", failed=True)
        for degradation in body.get("degradations", ()):
            self.once(degradation)


class Watch:
    """Looks at the status while the editor is used, and shows what goes on."""

    def __init__(self, ask: Callable[[], Awaitable[dict[str, Any]]], news: News, begin: Begin) -> None:
        self._ask, self._news, self._begin = ask, news, begin
        self._bars: dict[str, Bar | None] = {}
        self._looked = 0.0
        self._task: asyncio.Task[None] | None = None

    def used(self) -> None:
        """The editor is used: look, unless that was done a moment ago."""
        fresh = self._looked and time.monotonic() - self._looked < _FRESH_S
        if self._task is None and not fresh:
            self._task = asyncio.create_task(self._watch(), name="watch")

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        try:
            while await self._look():  # noqa: ASYNC110 - the status of another process sets no event
                await asyncio.sleep(_LOOK_S)
        except ForetypeError:
            await self._show([])  # whoever asks for a completion is told
        finally:
            self._looked, self._task = time.monotonic(), None

    async def _look(self) -> bool:
        body = await self._ask()
        self._news.status(body)
        going = list(under_way(body))
        await self._show(going)
        return bool(going)

    async def _show(self, all_going: list[Going]) -> None:
        names = {going.name for going in all_going}
        for name in self._bars.keys() - names:
            if (bar := self._bars.pop(name)) is not None:
                bar.end()
        for going in all_going:
            if going.name not in self._bars:
                self._bars[going.name] = await self._begin(going)
            if (bar := self._bars[going.name]) is not None:
                bar.report(going)


def under_way(body: dict[str, Any]) -> list[Going]:
    """What goes on, from the body of `GET /v1/status`."""
    found = []
    model, index = body.get("model", {}), body.get("index", {})
    if model.get("phase") in ("starting", "loading", "restarting"):
        share = model.get("share") or None
        name = model.get("name") or PurePath(model.get("asked", "")).name
        detail = model.get("detail") or model["phase"]
        found.append(Going("model", f"Foretype: {name}", detail, share and round(100 * share)))
    elif model.get("remedy") and (pull := _pulled(model.get("asked", ""))):
        here, size = pull
        found.append(
            Going("pull", f"Foretype: pulling {model['asked']}", f"{here >> 20} MB", 100 * here // size)
        )
    busy = [root for root in index.get("roots", ()) if root["phase"] in ("starting", "walking", "indexing")]
    if busy:
        done, total = (sum(root[key] for root in busy) for key in ("done", "total"))
        percent = min(100, 100 * done // total) if total else None
        found.append(Going("index", "Foretype: indexing", f"{done} of {total} files", percent))
    return found


def _pulled(asked: str) -> tuple[int, int] | None:
    """Bytes of the unfinished file of a pull, and of the whole one; None while none is being pulled."""
    with contextlib.suppress(ForetypeError, OSError):
        entry = catalogue.find(asked)
        found = Partial(catalogue.file_of(entry)).path.stat()
        if entry.bytes and time.time() - found.st_mtime < _STALLED_S:
            return found.st_size, entry.bytes
    return None
