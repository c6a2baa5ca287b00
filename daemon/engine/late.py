"""An engine that comes later: the doors are open while its model is still looked for, verified or pulled."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from daemon.engine.frames import Report, Submit
from daemon.engine.protocol import Engine, EngineState
from daemon.errors import ForetypeError, Loading
from daemon.machine import EngineProfile
from daemon.nouns import Generation


class LateEngine:
    """Engine that stands for another one as soon as that is attached."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._state = EngineState(phase="starting", detail="looking for the model")
        self._missing: ForetypeError | None = None

    def attach(self, engine: Engine) -> None:
        """From now on, be `engine`."""
        self._engine = engine

    def refuse(self, error: ForetypeError) -> None:
        """No engine can be made, and why; one may still be attached later."""
        self._missing = error
        self._state = EngineState(phase="failed", detail=str(error))

    @property
    def missing(self) -> ForetypeError | None:
        """Why there is no engine; None once there is one."""
        return self._missing if self._engine is None else None

    @property
    def state(self) -> EngineState:
        """Now."""
        return self._engine.state if self._engine else self._state

    @property
    def profile(self) -> EngineProfile | None:
        """See Engine.profile."""
        return self._engine.profile if self._engine else None

    @property
    def vocabulary(self) -> tuple[str, str]:
        """Path and note of the exported vocabulary; empty until the model is loaded."""
        return self._engine.vocabulary if self._engine else ("", "")

    def stream(self, job: Submit) -> AsyncGenerator[str | Generation, None]:
        """See Engine.stream. Loading, with what to do, while there is no engine."""
        if self._engine is not None:
            return self._engine.stream(job)
        if self._missing is not None:
            raise Loading(self._missing.message, self._missing.remedy)
        raise Loading("The model is still being looked for", "Try again in a moment")

    def supersede(self, job_id: str) -> None:
        """See Engine.supersede."""
        if self._engine is not None:
            self._engine.supersede(job_id)

    def follow(self, job_id: str) -> None:
        """See Engine.follow."""
        if self._engine is not None:
            self._engine.follow(job_id)

    def wake(self) -> None:
        """See Engine.wake."""
        if self._engine is not None:
            self._engine.wake()

    async def unload(self, why: str) -> None:
        """See Engine.unload."""
        if self._engine is not None:
            await self._engine.unload(why)

    async def report(self) -> Report | None:
        """See Engine.report."""
        return await self._engine.report() if self._engine else None

    async def close(self) -> None:
        """See Engine.close."""
        if self._engine is not None:
            await self._engine.close()
