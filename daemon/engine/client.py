"""Parent side of the engine child: start, submit, stream, cancel, and start again when it dies.

A child that dies ends every running stream with an empty `engine` Generation that says why; the next child
is started at once, smaller when memory was the reason, without the GPU when that died twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

from daemon.engine import frames
from daemon.engine.child import Child, Death
from daemon.engine.frames import (
    Ask,
    Cancel,
    Done,
    Failed,
    Follow,
    Message,
    Piece,
    Ready,
    Report,
    Start,
    Submit,
)
from daemon.engine.protocol import EngineState
from daemon.errors import Loading
from daemon.machine import EngineProfile
from daemon.nouns import Generation, StopReason
from daemon.settings import Settings

_log = logging.getLogger(__name__)
_MIN_CONTEXT = 1024
_MAX_QUICK_DEATHS = 5
_WAKE_S = 20.0
"""How long a request waits for a model that was unloaded."""


@dataclass(frozen=True)
class EngineModel:
    """A verified model file."""

    name: str
    path: Path
    sha256: str


@dataclass
class _Plan:
    """What the next child is started with; grows more careful with every death."""

    context: int
    force_cpu: str = ""
    deaths: list[str] = field(default_factory=list)
    quick: int = 0

    def learn(self, death: Death, gpu: bool) -> None:
        """Shrink after a death by memory; give the GPU up after two deaths on it."""
        self.deaths.append(death.reason)
        self.quick = 0 if death.served else self.quick + 1
        if death.memory and self.context > _MIN_CONTEXT:
            self.context = max(_MIN_CONTEXT, self.context // 2)
        if gpu and len(self.deaths) >= 2 and not self.force_cpu:
            self.force_cpu = f"the engine died twice on it ({death.reason})"


class EngineClient:
    """Engine over a child process. One event loop only."""

    def __init__(self, settings: Settings, model: EngineModel, draft: EngineModel | str = "") -> None:
        """`draft`: the draft model, or why there is none; after a death while loading it is left out."""
        self._settings = settings
        self._model = model
        self._draft = draft
        self._plan = _Plan(settings.engine.context)
        self._child: Child | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._streams: dict[str, asyncio.Queue[str | Generation]] = {}
        self._reports: list[asyncio.Future[Report]] = []
        self._state = EngineState(phase="stopped")
        self._profile: EngineProfile | None = None
        self._vocabulary = ("", "")
        self._woken = False
        """The model was unloaded and is on its way back: whoever asks waits for it."""
        self.ready = asyncio.Event()

    @property
    def state(self) -> EngineState:
        """Now."""
        return self._state

    @property
    def profile(self) -> EngineProfile | None:
        """Of the last load; kept over restarts."""
        return self._profile

    @property
    def vocabulary(self) -> tuple[str, str]:
        """See Engine.vocabulary."""
        return self._vocabulary

    async def start(self) -> None:
        """Begin to load; returns at once."""
        self._begin("starting")

    def _begin(self, phase: str, detail: str = "") -> None:
        self._say(phase, detail)
        self._keeper = asyncio.create_task(self._keep(), name="engine keeper")

    def wake(self) -> None:
        """See Engine.wake."""
        if self._state.phase == "unloaded":
            self._woken = True
            self._begin("loading", "it was unloaded")

    async def unload(self, why: str) -> None:
        """See Engine.unload."""
        if self.ready.is_set() and not self._streams:
            self._say("unloaded", why)
            await self._halt()
            if self._state.phase == "unloaded":  # nobody asked meanwhile
                self._say("unloaded", why)

    async def stream(self, job: Submit) -> AsyncGenerator[str | Generation, None]:
        """See Engine.stream."""
        self.wake()
        if self._woken:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ready.wait(), _WAKE_S)
        child = self._child
        if child is None or not self.ready.is_set():
            raise Loading(f"the engine is {self._state.phase}: {self._state.detail}", "Try again in a moment")
        queue: asyncio.Queue[str | Generation] = asyncio.Queue()
        self._streams[job.id] = queue
        finished = False
        try:
            child.send(job)
            while not finished:
                event = await queue.get()
                finished = isinstance(event, Generation)
                yield event
        finally:
            self._streams.pop(job.id, None)
            if not finished and self._child is child:
                child.send(Cancel(id=job.id))

    def supersede(self, job_id: str) -> None:
        """See Engine.supersede."""
        if self._child is not None and job_id in self._streams:
            self._child.send(Cancel(id=job_id, superseded=True))

    def follow(self, job_id: str) -> None:
        """See Engine.follow."""
        if self._child is not None and job_id in self._streams:
            self._child.send(Follow(id=job_id))

    async def report(self) -> Report | None:
        """See Engine.report; None when it does not answer within a second."""
        if self._child is None or not self.ready.is_set():
            return None
        future: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._reports.append(future)
        self._child.send(Ask())
        try:
            return await asyncio.wait_for(future, 1.0)
        except TimeoutError:
            return None

    async def close(self) -> None:
        """See Engine.close."""
        await self._halt()
        self._end_streams("cancelled", "the daemon is stopping")
        self._say("stopped")

    async def _halt(self) -> None:
        """End the child, and do not start it again."""
        self.ready.clear()
        keeper, self._keeper = self._keeper, None
        child, self._child = self._child, None
        if keeper is not None:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper
        if child is not None:
            await child.stop()

    async def _keep(self) -> None:
        while True:
            start = Start(
                path=str(self._model.path),
                name=self._model.name,
                sha256=self._model.sha256,
                context=self._plan.context,
                settings=self._settings.engine,
                profile=self._profile,
                force_cpu=self._plan.force_cpu,
                draft=str(self._draft.path) if isinstance(self._draft, EngineModel) else "",
                draft_name=self._draft.name if isinstance(self._draft, EngineModel) else "",
                draft_note=self._draft if isinstance(self._draft, str) else "",
            )
            self._child = Child(self._take)
            try:
                await self._child.start(start, self._settings.logs)
                death = await self._child.wait()
            except (OSError, ValueError) as error:  # no process to be had, or one that speaks another tongue
                death = Death(f"the engine cannot be run: {error}")
                await self._child.stop()
            finally:
                self.ready.clear()
            gpu = self._profile is not None and self._profile.backend != "CPU"
            self._plan.learn(death, gpu)
            self._woken = False
            if not death.served and isinstance(self._draft, EngineModel):
                self._draft = f"left out: {death.reason}"
            _log.error("engine ended: %s", death.reason)
            self._end_streams("engine", death.reason)
            if death.final or self._plan.quick >= _MAX_QUICK_DEATHS:
                self._say("failed", death.reason)
                return
            self._say("restarting", death.reason)
            await asyncio.sleep(0.0 if self._plan.quick == 0 else 0.5 * self._plan.quick)

    def _take(self, message: Message) -> None:
        if isinstance(message, Piece):
            self._put(message.id, message.text)
        elif isinstance(message, Done):
            if message.rest:
                self._put(message.id, message.rest)
            self._put(message.id, message.generation)
        elif isinstance(message, Failed) and message.id:
            self._put(message.id, Generation(text="", stop="engine", note=message.message))
        elif isinstance(message, frames.Loading):
            self._say("loading", message.stage, message.share)
        elif isinstance(message, Ready):
            self._profile = message.profile
            self._vocabulary = (message.vocabulary, message.vocabulary_note)
            self.ready.set()
            self._woken = False
            self._say("ready", message.profile.why, 1.0)
        elif isinstance(message, Report):
            waiting, self._reports = self._reports, []
            for future in waiting:
                if not future.done():
                    future.set_result(message)

    def _put(self, job_id: str, event: str | Generation) -> None:
        if (queue := self._streams.get(job_id)) is not None:
            queue.put_nowait(event)

    def _end_streams(self, stop: StopReason, note: str) -> None:
        for queue in self._streams.values():
            queue.put_nowait(Generation(text="", stop=stop, note=note))

    def _say(self, phase: str, detail: str = "", share: float = 0.0) -> None:
        deaths = self._plan.deaths
        self._state = EngineState(
            phase=phase,
            detail=detail,
            share=share,
            restarts=len(deaths),
            last_failure=deaths[-1] if deaths else "",
            pid=self._child.pid if self._child else None,
        )
