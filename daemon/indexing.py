"""The indexer child as the daemon holds it: started, told what to index and when to be quiet, started again.

Completions never wait for it. Its state comes as frames; its databases are only ever read here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
from typing import Any, BinaryIO

import msgspec

from daemon import paths, roots
from daemon.errors import SettingsError
from daemon.projects import Projects
from daemon.settings import Settings
from indexer import frames
from indexer.frames import Ask, Begin, Busy, End, Frame, Plan, Roots, RootSpec, State, Touch

_log = logging.getLogger(__name__)
_LOOK_S = 1.0
"""How often the list of roots and their project files are looked at: one stat each."""
_STOP_S = 1.0
_QUIET_S = 3.0
"""Longer than a completion takes; typing makes one long busy time of many."""
_MAX_WAIT_S = 60.0
_decoder = msgspec.msgpack.Decoder(State)


def plan(settings: Settings, vocabulary: str = "") -> Plan:
    """The settings as the indexer takes them."""
    index = settings.index
    return Plan(
        vocabulary=vocabulary,
        workers=index.workers,
        max_file_kb=index.max_file_kb,
        max_line=index.max_line,
        max_files=index.max_files,
        budget_ms=index.budget_ms,
        ngram_mb=index.ngram_mb,
        battery=index.battery,
        busy_share=index.busy_share,
        poll_s=index.poll_s,
    )


def newest_vocabulary() -> str:
    """The newest exported vocabulary: that of the model used last. Empty when there is none."""
    with contextlib.suppress(OSError):
        files = list(paths.vocabulary_dir().glob("*.msgpack"))
        return str(max(files, key=lambda file: file.stat().st_mtime)) if files else ""
    return ""


class IndexingClient:
    """Keeps one indexer process while there are roots. One event loop only."""

    def __init__(self, settings: Settings, projects: Projects | None = None) -> None:
        self.state: State | None = None
        self.failure = ""
        """Why the last child ended; empty when none did."""
        self.restarts = 0
        self._settings = settings
        self._projects = projects or Projects(settings)
        self._vocabulary = ""
        self._specs: tuple[RootSpec, ...] = ()
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._busy = False
        self._rest: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, while one runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def start(self) -> None:
        """Begin to keep; harmless when the index is off."""
        if self._settings.index.on and self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="indexing")

    def working(self) -> None:
        """A completion begins or ends: indexing is quiet until none has for a moment."""
        if self._rest is not None:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(_QUIET_S, self._set_busy, False)
        self._set_busy(True)

    def _set_busy(self, running: bool) -> None:
        if running != self._busy:
            self._busy = running
            self._send(Busy(running=running))

    def touch(self, *changed: str) -> None:
        """An editor saved these absolute paths."""
        self._send(Touch(paths=changed))

    def vocabulary(self, path: str) -> None:
        """The active model's exported vocabulary."""
        if path != self._vocabulary:
            self._vocabulary = path
            self._tell()

    def facts(self) -> dict[str, Any]:
        """For status: the child and its last State as plain values."""
        state, pid = self.state, self.pid
        phases: list[str] = [root.phase for root in state.roots] if state else []
        return {
            "on": self._settings.index.on,
            "pid": pid,
            "phase": _phase(pid, phases, len(self._specs)),
            "restarts": self.restarts,
            "last_failure": self.failure,
            "rss_bytes": state.rss_bytes if state else 0,
            "cpu_s": state.cpu_s if state else 0.0,
            "throttled": state.throttled if state else "",
            "roots": [msgspec.to_builtins(root) for root in state.roots] if state else [],
        }

    def ask(self) -> None:
        """Ask for a State; it comes into `state`."""
        self._send(Ask())

    async def close(self) -> None:
        """End the child and wait until it is gone, for a second at most before it is killed."""
        if self._rest is not None:
            self._rest.cancel()
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
            self._keeper = None
        process = self._process
        if process is None or process.returncode is not None:
            return
        self._send(End())
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _keep(self) -> None:
        wait, watch = 1.0, asyncio.create_task(self._watch_roots(), name="roots")
        try:
            while True:
                while not self._specs:  # noqa: ASYNC110 - a file that changes sets no event here
                    await asyncio.sleep(_LOOK_S)
                began = asyncio.get_running_loop().time()
                self.failure = await self._live()
                self.restarts += 1
                _log.error("indexer ended: %s", self.failure)
                quick = asyncio.get_running_loop().time() - began < _MAX_WAIT_S
                await asyncio.sleep(wait)
                wait = min(_MAX_WAIT_S, wait * 2) if quick else 1.0
        finally:
            watch.cancel()

    async def _live(self) -> str:
        """One child from start to end; why it ended."""
        log = _open_log(self._settings.logs.max_mb)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-m",
                "indexer",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log or subprocess.DEVNULL,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            return f"it cannot be run: {error}"
        finally:
            if log is not None:
                log.close()
        self.state = None
        self._send(Begin(roots=self._specs, plan=plan(self._settings, self._vocabulary)))
        self._send(Busy(running=self._busy))
        assert self._process.stdout is not None
        try:
            await self._listen(self._process.stdout)
        except (ValueError, msgspec.MsgspecError) as error:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            return f"it speaks another tongue: {error}"
        return f"exit code {await self._process.wait()}"

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                (length,) = frames.LENGTH.unpack(await stream.readexactly(frames.LENGTH.size))
                if length > frames.MAX_FRAME:
                    raise ValueError(f"frame of {length} bytes")
                self.state = _decoder.decode(await stream.readexactly(length))

    async def _watch_roots(self) -> None:
        seen: object = ()  # no stamp: without a list the settings' own roots still count
        listed: tuple[RootSpec, ...] = ()
        while True:
            now = roots.stamp()
            if now != seen:
                seen = now
                try:
                    listed = roots.specs(self._settings.index)
                except SettingsError as error:
                    _log.warning("%s", error)
            specs = tuple(self._projects.spec(spec) for spec in listed)
            if specs != self._specs:
                self._specs = specs
                self._tell()
            await asyncio.sleep(_LOOK_S)

    def _tell(self) -> None:
        self._send(Roots(roots=self._specs, vocabulary=self._vocabulary))

    def _send(self, message: Frame) -> None:
        writer = self._process.stdin if self._process else None
        if writer is not None and not writer.is_closing():
            writer.write(frames.pack(message))


def _phase(pid: int | None, phases: list[str], roots: int) -> str:
    """Of all roots together: the first that is not ready speaks for them."""
    if pid is None:
        return "stopped"
    if len(phases) < roots:
        return "starting"
    return next((phase for phase in phases if phase != "ready"), "ready")


def _open_log(max_mb: int) -> BinaryIO | None:
    path = paths.logs_dir() / "indexer.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > max_mb * 1024 * 1024:
            path.replace(path.with_suffix(".log.1"))
        return path.open("ab")
    except OSError as error:
        _log.warning("no indexer log: %s", error.strerror)
        return None
