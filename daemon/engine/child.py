"""The engine child as the daemon holds it: pipes, log file, and why it ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from daemon import paths
from daemon.engine import frames
from daemon.engine.frames import Failed, Message, Ready, Start, Stop
from daemon.errors import EngineFailed
from daemon.settings import Logs

_log = logging.getLogger(__name__)
_CHUNK = 1 << 16
_STOP_S = 0.5
_FINAL = ("cannot be loaded",)
_SPINS = 20_000
"""How often a thread of GNU OpenMP looks for its next piece of work before it sleeps; 300,000 if nobody says.
Inside of a decode the threads find each other well within this: decodes took the same time with 3,000 to
300,000. But 300,000 last longer than what lies between two decodes, which threads that only look slow down
where all cores compute: with 20,000 it takes a third less, and the daemon's answer leaves sooner."""


@dataclass(frozen=True)
class Death:
    """Why a child ended. `served`: it had been ready; `final`: another would end the same way."""

    reason: str
    memory: bool = False
    served: bool = False
    final: bool = False


class Child:
    """One engine process. `take` is called on the event loop with every message."""

    def __init__(self, take: Callable[[Message], None]) -> None:
        self._take = take
        self._process: asyncio.subprocess.Process | None = None
        self._failed: Failed | None = None
        self._served = False

    @property
    def pid(self) -> int | None:
        """Of the process, once started."""
        return self._process.pid if self._process else None

    async def start(self, start: Start, logs: Logs) -> None:
        """Spawn and tell it what to load."""
        log = _open_log(logs)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-m",
                "daemon.engine",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log or subprocess.DEVNULL,
                env=computing(os.environ),
                start_new_session=os.name == "posix",
            )
        finally:
            if log is not None:
                log.close()
        self.send(start)

    def send(self, message: Message) -> None:
        """Queue one frame for the child; a dead child takes nothing."""
        writer = self._process.stdin if self._process else None
        if writer is not None and not writer.is_closing():
            writer.write(frames.pack(message))

    async def wait(self) -> Death:
        """Deliver messages until the child ends; returns why it did."""
        process = self._process
        if process is None or process.stdout is None:
            raise EngineFailed("the engine was not started")
        unpacker = frames.Unpacker()
        while data := await process.stdout.read(_CHUNK):
            for message in unpacker.feed(data):
                if isinstance(message, Failed) and not message.id:
                    self._failed = message
                else:
                    self._served = self._served or isinstance(message, Ready)
                    self._take(message)
        return self._death(await process.wait())

    def _death(self, code: int) -> Death:
        if self._failed is not None:
            failed = self._failed
            text = f"{failed.message}. {failed.remedy}" if failed.remedy else failed.message
            final = any(mark in text for mark in _FINAL)
            return Death(text, memory=failed.memory, served=self._served, final=final)
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            memory = name in ("SIGKILL", "SIGABRT")
            hint = " (out of memory, or killed)" if name == "SIGKILL" else ""
            return Death(
                f"the engine was ended by {name}{hint}",
                memory=memory and not self._served,
                served=self._served,
            )
        return Death(f"the engine ended with exit code {code}", served=self._served)

    async def stop(self) -> None:
        """Ask, then kill; returns when the process is gone."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        self.send(Stop())
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def computing(environment: Mapping[str, str]) -> dict[str, str]:
    """The engine's environment. Whoever says in their own how OpenMP's threads wait is not contradicted."""
    said = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & environment.keys()
    return dict(environment) if said else {**environment, "GOMP_SPINCOUNT": str(_SPINS)}


def _open_log(logs: Logs) -> BinaryIO | None:
    """The engine's log, begun anew when it has grown too large; None where nothing can be written."""
    path = paths.logs_dir() / "engine.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > logs.max_mb * 1024 * 1024:
            path.replace(path.with_suffix(".log.1"))
        return path.open("ab")
    except OSError as error:
        _log.warning("no engine log: %s", error.strerror)
        return None
