"""An engine without a daemon around it: for what only the engine decides, told in tokens."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from daemon.bench import exactness
from daemon.bench.outcome import Outcome
from daemon.engine.client import EngineClient, EngineModel
from daemon.engine.frames import Lane, Report, Submit
from daemon.errors import EngineFailed
from daemon.models import catalogue
from daemon.nouns import Generation, Limits, Sampling
from daemon.settings import Engine, Settings
from indexer.tokens import TiktokenTokenizer, to_bytes, to_ids
from indexer.vocabulary import load

READY_S = 420.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Timed:
    """One job's end. Milliseconds from its submission."""

    generation: Generation
    first: float
    last: float


@dataclass(slots=True)
class Direct:
    """A running engine, and the ids of a source text to ask it about."""

    engine: EngineClient
    ids: list[int] = field(default_factory=list)

    async def ask(
        self,
        tokens: list[int],
        *,
        lane: Lane = "keystroke",
        client: str = "bench",
        most: int = 12,
        seed: int = 0,
        warm: bool = False,
    ) -> Timed:
        """Submit and read to the end. Cancelling the task cancels the job; at `seed` 0 it is greedy."""
        job = Submit(
            id=f"bench.{next(_numbers)}",
            tokens=to_bytes(tokens),
            limits=Limits(lines="free", tokens=most),
            sampling=Sampling(temperature=0.8 if seed else 0.0, seed=seed),
            lane=lane,
            client=client,
            warm=warm,
        )
        began = time.perf_counter()
        first = 0.0
        async with aclosing(self.engine.stream(job)) as events:
            async for event in events:
                now = (time.perf_counter() - began) * 1e3
                first = first or now
                if isinstance(event, Generation):
                    if event.stop == "engine":
                        raise EngineFailed(f"the engine failed: {event.note}")
                    return Timed(event, first, now)
        raise EngineFailed("the engine gave no answer")

    async def report(self) -> Report:
        """What it has done since it was started."""
        found = await self.engine.report()
        if found is None:
            raise EngineFailed("the engine is away")
        return found

    def outcome(self, name: str, seed: int) -> Outcome:
        """An empty result that says what was measured on."""
        profile: dict[str, Any] = msgspec.to_builtins(self.engine.profile)
        model = {**profile.pop("model", {})}
        model["path"] = Path(str(model.get("path", ""))).name
        return Outcome(name=name, seed=seed, model=model, profile=profile)


@asynccontextmanager
async def running(model: str | None, **engine: Any) -> AsyncIterator[Direct]:
    """Start an engine (catalogue name or path; None: the default) with these settings of `[engine]`.

    Raises ModelError, and EngineFailed when it does not get ready.
    """
    file = await asyncio.to_thread(catalogue.resolve, model or Engine().model)
    client = EngineClient(Settings(engine=Engine(**engine)), EngineModel(file.name, file.path, file.sha256))
    await client.start()
    try:
        try:
            await asyncio.wait_for(client.ready.wait(), READY_S)
        except TimeoutError as error:
            raise EngineFailed(f"the engine is not ready: {client.state.detail}") from error
        tokenizer = TiktokenTokenizer(load(Path(client.vocabulary[0])))
        yield Direct(client, to_ids(tokenizer.encode(exactness.python_source(None)[1])))
    finally:
        await client.close()
