"""What the daemon sees of an engine. Implementations: the local child (client.py) and a scripted engine
for tests, both under the same contract tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from daemon.engine.frames import Report, Submit
from daemon.machine import EngineProfile
from daemon.nouns import Generation, Noun


class EngineState(Noun, frozen=True):
    """What the engine is doing and why, for status."""

    phase: str
    """`starting`, `loading`, `ready`, `unloaded`, `restarting`, `failed` or `stopped`."""
    detail: str = ""
    share: float = 0.0
    """Of loading, 0–1."""
    restarts: int = 0
    last_failure: str = ""
    pid: int | None = None


class Engine(Protocol):
    """Submit tokens, stream text, cancel by closing the stream."""

    @property
    def state(self) -> EngineState:
        """Now."""
        ...

    @property
    def profile(self) -> EngineProfile | None:
        """None until the first load has finished."""
        ...

    @property
    def vocabulary(self) -> tuple[str, str]:
        """(path of the exported vocabulary, why nobody else can count with it); empty until loaded."""
        ...

    def stream(self, job: Submit) -> AsyncGenerator[str | Generation, None]:
        """Yield text as it comes, and last one Generation that holds all of it. Of a job without `follow`
        its first text comes at once, and more may come late and together.

        Closing the iterator, or cancelling the task that reads it, cancels the job. An engine that dies
        yields a Generation with stop `engine` and a note. Raises daemon.errors.Loading when no model is
        loaded yet; a model that was unloaded is loaded and waited for.
        """
        ...

    def supersede(self, job_id: str) -> None:
        """A newer request of the same client took over: end `job_id` with stop `superseded`."""
        ...

    def follow(self, job_id: str) -> None:
        """Somebody reads the text of `job_id` along from now on, which was submitted without `follow`."""
        ...

    def wake(self) -> None:
        """Load the model again if it was unloaded; returns at once."""
        ...

    async def unload(self, why: str) -> None:
        """Free the model's memory until the next job, or wake(). Nothing happens while a job runs."""
        ...

    async def report(self) -> Report | None:
        """What is resident and what was done; None while the engine is away."""
        ...

    async def close(self) -> None:
        """Stop the engine; running streams end with stop `cancelled`."""
        ...
