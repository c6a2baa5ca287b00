"""What is likeliest to be asked next is asked before: by who takes an answer, its first line, or goes on.

    answer → its text is taken | its first line is | a line is begun below it → run of the last lane → kept

One question at a time. A request that memory answers goes along with it, and so does the work; one that it
does not answer contradicts it, and the work ends at once. What was evaluated and generated until then stays
in the engine's cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from daemon.context.planner import Planned, Planner
from daemon.documents.positions import normalise
from daemon.engine.frames import Submit
from daemon.engine.protocol import Engine
from daemon.errors import Loading, NotSupported
from daemon.nouns import Completion, CompletionRequest, Generation
from daemon.recall.shown import key, kind

CLIENT = "prefetch"
_ASKED = 64
"""Questions that are not looked at again: at each keystroke along an answer they are the same."""
Keep = Callable[[CompletionRequest, Planned, Generation], None]
Known = Callable[[Planner, CompletionRequest, Planned], bool]


class Prefetch:
    """Work ahead of one event loop. `keep` remembers an answer; `known` says whether one needs no run."""

    def __init__(
        self, engine: Engine, job: Callable[[str, Planned], Submit], keep: Keep, known: Known
    ) -> None:
        self._engine, self._job, self._keep, self._known = engine, job, keep, known
        self.on = True
        self.allowed: Callable[[], bool] = lambda: True
        """Whether the machine may work ahead now: it may not on battery."""
        self._target: CompletionRequest | None = None
        self._task: asyncio.Task[None] | None = None
        self._asked: deque[int] = deque(maxlen=_ASKED)
        self._numbers = itertools.count(1)
        self._begun = self._dropped = self._generated = self._used = 0

    @property
    def resting(self) -> bool:
        """Whether nothing is asked in advance now."""
        return self._task is None or self._task.done()

    def after(
        self, planner: Planner, planned: Planned, asked: CompletionRequest, completion: Completion
    ) -> None:
        """`asked` is answered: what is asked in advance still stands ahead of it, or other work begins."""
        ahead = None if self.resting else self._target
        if ahead and key(ahead) == key(asked) and ahead.prefix.startswith(asked.prefix):
            return
        self.drop()
        if self.on and self.allowed():
            self._task = asyncio.create_task(self._work(planner, planned, asked, completion), name="prefetch")

    def drop(self) -> None:
        """Somebody asks something else: the engine is theirs."""
        if self._task is not None and not self._task.done():
            self._dropped += 1
            self._task.cancel()
        self._task = self._target = None

    def use(self, tokens: int) -> None:
        """An answer that was asked for in advance was given."""
        self._used += tokens

    async def close(self) -> None:
        """End it."""
        task = self._task
        self.drop()
        if task is not None:
            await asyncio.wait([task])

    def facts(self) -> dict[str, Any]:
        """For status: questions begun, and dropped; tokens generated, of them given, and not (yet) given."""
        return {
            "on": self.on and self.allowed(),
            "begun": self._begun,
            "dropped": self._dropped,
            "generated": self._generated,
            "used": self._used,
            "wasted": self._generated - self._used,
        }

    async def _work(
        self, planner: Planner, planned: Planned, asked: CompletionRequest, completion: Completion
    ) -> None:
        for request in likely(asked, completion):
            known = hash((key(request), kind(request), request.prefix, request.suffix))
            if known in self._asked:
                continue
            with contextlib.suppress(Loading, NotSupported):
                plan = planner.ahead(planned, request)
                if not self._known(planner, request, plan):
                    self._target = request
                    generation = await self._answer(planner, plan)
                    if generation is not None:
                        self._keep(request, plan, generation)
            self._asked.append(known)
            await asyncio.sleep(0)  # to plan the next one is not to be added to this turn of the loop

    async def _answer(self, planner: Planner, planned: Planned) -> Generation | None:
        """The engine's answer, which nobody waits for."""
        job = self._job(f"{CLIENT}.{next(self._numbers)}", planned)
        job = msgspec.structs.replace(job, lane="warm", client=CLIENT)
        self._begun += 1
        said = ""
        generation = None
        try:
            async with contextlib.aclosing(self._engine.stream(job)) as events:
                async for event in events:
                    if isinstance(event, Generation):
                        generation = event
                    else:
                        said += event
        finally:
            work = generation.counters.generated if generation else planner.layout.count(said)
            self._generated += work
        return generation


def likely(asked: CompletionRequest, completion: Completion) -> Iterator[CompletionRequest]:
    """The questions of who takes the answer to `asked`, takes its first line, goes on below it; likeliest
    first. The limits of time are those of nobody: left out."""
    text, _ = normalise(completion.text)
    suffix = asked.suffix[completion.replace.end - completion.replace.start :]
    untimed = msgspec.structs.replace(
        asked.limits, milliseconds=None, milliseconds_after_line=None, deadline=None
    )
    first = text[: text.find("\n", len(text) - len(text.lstrip("\n")))] if "\n" in text.strip("\n") else ""
    rest, line = suffix.partition("\n")[0], asked.prefix[asked.prefix.rfind("\n") + 1 :] + text
    below = text + "\n" if not rest.strip() and line.strip() else ""
    for added, after in ((text, suffix), (first, asked.suffix), (below, suffix)):
        if added:
            yield msgspec.structs.replace(
                asked, prefix=asked.prefix + added, suffix=after, limits=untimed, whole=False
            )
