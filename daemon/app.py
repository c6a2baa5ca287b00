"""Composition root: the only place where parts meet. Doors first, then the model; everything ends in 2 s."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

import daemon
from daemon import instance, paths, power, replay
from daemon.aside import aside
from daemon.documents.opening import known
from daemon.doors import http
from daemon.doors.house import House, Patience
from daemon.doors.status import Facts, status_body
from daemon.engine.client import EngineClient, EngineModel
from daemon.engine.late import LateEngine
from daemon.errors import LifecycleError, ModelError
from daemon.indexing import IndexingClient
from daemon.instance import Hello, Holder, Lock
from daemon.models import catalogue
from daemon.observe.acceptance import Acceptance
from daemon.observe.ledger import Ledger
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.projects import Projects
from daemon.settings import Engine, Settings

_log = logging.getLogger(__name__)
_LOOK_AGAIN_S = 2.0
"""How often a missing model is looked for: a few calls of stat, so that a pull needs no restart."""
_SWITCH_S = 0.0005
"""How long a thread that writes rows or chooses context may hold the interpreter against the loop: Python's
5 ms are five times what an answer takes that needs no model."""
_CLOSE_S = 1.8


async def run(settings: Settings, socket_path: Path, port: int, notes: tuple[str, ...] = ()) -> int:
    """Be the daemon until told to stop; its exit status. `notes` are degradations that status shows.

    Raises LifecycleError when another daemon is there, and what the doors raise when they cannot open.
    """
    instance.prepare_runtime()
    instance.build_id()  # before anything can replace the files that this process runs
    lock = Lock(paths.lock_path())
    if not lock.acquire(0.5) or instance.greet(settings.server.token) is not None:
        lock.release()
        raise LifecycleError(
            "another daemon is running", "`foretype status` shows it, `foretype down` ends it"
        )
    try:
        _remove(socket_path)  # only the holder of the lock may: it is a dead daemon's
        return await _Life(settings, notes).live(lock, socket_path, port)
    finally:
        _remove(socket_path)
        lock.release()


def _remove(socket_path: Path) -> None:
    try:
        socket_path.unlink(missing_ok=True)
    except OSError as error:
        raise LifecycleError(f"{socket_path} is in the way: {error.strerror}", "Remove it") from error


class _Life:
    """One daemon from its first to its last moment."""

    def __init__(self, settings: Settings, notes: tuple[str, ...]) -> None:
        self._settings = settings
        self._notes = notes
        self._hello = Hello(
            name=instance.NAME,
            version=daemon.__version__,
            build=instance.build_id(),
            pid=os.getpid(),
            started=time.time(),
        )
        self._metrics = Metrics()
        self._engine = LateEngine()
        self._end = asyncio.Event()
        self._addresses: tuple[str, ...] = ()
        self._projects = Projects(settings)
        self._pipeline = Pipeline(self._engine, settings, self._metrics, self._projects)
        self._indexing = IndexingClient(settings, self._projects)
        self._pipeline.working = self._indexing.working
        self._ledger = Ledger(paths.state_dir() / "ledger.db", settings.ledger)
        self._pipeline.record, self._pipeline.unplanned = self._record, self._unplanned
        self._acceptance = Acceptance(
            self._ledger, self._text_of, on=settings.ledger.on, left_out=self._pipeline.mirror.left_out
        )
        self._house = House(
            pipeline=self._pipeline,
            settings=settings,
            status=self._status,
            hello=lambda: msgspec.to_builtins(self._hello),
            stop=self._end.set,
            engine=self._engine,
            metrics=self._metrics,
            documents=self._pipeline.mirror,
            ledger=self._ledger,
            feedback=self._acceptance,
            patience=Patience(read=settings.server.read_s),
        )

    def _record(self, *passed: Any) -> None:
        """A ledger row of what one request went through."""
        if (profile := self._engine.profile) is not None:
            self._ledger.add(replay.entry(*passed, profile=profile, build=self._hello.build))

    def _unplanned(self, *passed: Any) -> None:
        """The row of a request that nothing was planned for."""
        model = self._engine.profile
        self._ledger.add(replay.unplanned(*passed, profile=model, build=self._hello.build))

    def _text_of(self, path: str) -> str | None:
        document = known(self._pipeline.mirror, path)
        return document.text if document is not None else None

    async def live(self, lock: Lock, socket_path: Path, port: int) -> int:
        """Open the doors, load the model, wait for the end, close everything."""
        sys.setswitchinterval(_SWITCH_S)
        app = http.build(self._house)
        doors = await http.serve(app, self._house, socket_path, port if self._settings.server.tcp else None)
        self._addresses = doors.addresses
        self._notes += doors.refused
        lock.write(
            Holder(
                pid=self._hello.pid,
                build=self._hello.build,
                started=self._hello.started,
                port=doors.port or 0,
            )
        )
        _log.info("build %s listens on %s", self._hello.build, ", ".join(self._addresses))
        self._listen_to_signals()
        self._ledger.start()
        loading = asyncio.create_task(self._load(), name="load")
        loading.add_done_callback(self._loaded)
        unloading = asyncio.create_task(self._unload(), name="unload")
        self._indexing.start()
        await self._end.wait()
        _log.info("ending")
        loading.cancel()
        unloading.cancel()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await asyncio.gather(
                    doors.close(), self._pipeline.close(), self._engine.close(), self._indexing.close()
                )
        except TimeoutError:
            _log.warning("ended without waiting for everything")
        self._acceptance.close()
        await asyncio.to_thread(self._ledger.close)
        return 0

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            if (number := getattr(signal, name, None)) is None:
                continue
            try:
                loop.add_signal_handler(number, self._end.set)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._end.set))

    async def _load(self) -> None:
        asked = self._settings.engine.model
        while True:
            seen = _traces(asked)
            try:
                file = await aside(lambda: catalogue.resolve(asked))
                break
            except ModelError as error:
                _log.warning("no model: %s", error)
                self._engine.refuse(error)
            while _traces(asked) == seen:  # noqa: ASYNC110 - what happens on disk sets no event here
                await asyncio.sleep(_LOOK_AGAIN_S)
        model = EngineModel(file.name, file.path, file.sha256)
        client = EngineClient(self._settings, model, await _draft(self._settings.engine))
        self._engine.attach(client)
        await client.start()
        await client.ready.wait()
        await self._pipeline.planning.prepare()
        self._indexing.vocabulary(client.vocabulary[0])

    async def _unload(self) -> None:
        """Free the model's memory whenever nothing was asked for long enough."""
        unused = self._pipeline.unused
        while (left := unused.left_s) < math.inf:
            await asyncio.sleep(max(left, _LOOK_AGAIN_S))
            if unused.left_s <= 0 and not self._pipeline.busy:
                await self._engine.unload(f"{unused.why}; the next request or opened file loads it")
                unused.used()  # counted anew

    def _loaded(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("loading failed", exc_info=error)
            self._engine.refuse(ModelError(f"{type(error).__name__}: {error}", "See `foretype logs`"))

    async def _status(self) -> dict[str, Any]:
        return status_body(
            Facts(
                hello=self._hello,
                addresses=self._addresses,
                settings=self._settings,
                state=self._engine.state,
                profile=self._engine.profile,
                report=await self._engine.report(),
                missing=self._engine.missing,
                vocabulary_note=self._engine.vocabulary[1],
                planning_note=self._pipeline.planning.note,
                metrics=self._metrics.snapshot(),
                notes=self._notes,
                index=self._indexing.facts(),
                projects=self._projects.refused(),
                ledger=self._ledger.state,
                recall=self._pipeline.recall.facts(),
                pacing=self._pipeline.pacing.facts(),
                power=power.facts(self._pipeline.power.now, self._pipeline.unused),
                resting=self._pipeline.resting,
                idle_ms=self._pipeline.idle_ms,
            )
        )


async def _draft(engine: Engine) -> EngineModel | str:
    """The draft model, or why there is none; empty when none is asked for."""
    if not engine.draft_model or engine.draft != "auto":
        return ""
    try:
        file = await aside(lambda: catalogue.resolve(engine.draft_model))
    except ModelError as error:
        return error.message
    return EngineModel(file.name, file.path, file.sha256)


def _traces(asked: str) -> tuple[int, ...]:
    """Changes whenever a file arrives that could be the model `asked` for."""
    places = (Path(asked).expanduser(), paths.models_dir(), paths.config_dir())
    times = []
    for place in places:
        with contextlib.suppress(OSError):
            times.append(place.stat().st_mtime_ns)
    return tuple(times)
