"""Several answers to one question, all different, from one evaluated prompt."""

from __future__ import annotations

import asyncio
import time

import msgspec
from aiohttp import web

from daemon.doors import llama
from daemon.doors.answers import MAX_MS, answer, new_id
from daemon.doors.house import OnText
from daemon.nouns import Completion, CompletionRequest

ALTERNATIVE_TEMPERATURE = 0.4
MAX_ALTERNATIVES = 8
LEAST_S = 0.05
"""Added to the time that further texts may take."""
KNOWN_S = 0.002
"""An answer that needs no run is there by then; no run is."""


async def several(
    request: web.Request, ask: CompletionRequest, wanted: float, on_text: OnText | None = None
) -> list[Completion]:
    """The answer and further texts, `wanted` together at most; all are worked on at once.

    The first is what the person waits for, and what `on_text` is told: the others are less urgent, and may
    take as long again as it did, within the request's limit. Where it was known without a run there are none:
    they would take the model each time that a key is pressed. Texts that say the same are one.
    """
    if wanted <= 1:
        return [await answer(request, ask, on_text)]
    begun = time.monotonic()
    more = 1 if ask.warm else int(min(wanted, MAX_ALTERNATIVES))
    first = asyncio.create_task(answer(request, ask, on_text))
    tasks = [first]
    try:
        await asyncio.wait(tasks, timeout=KNOWN_S)
        if not _alone(first):
            alternatives = [_alternative(ask, seed) for seed in range(1, more)]
            tasks += [asyncio.create_task(answer(request, one)) for one in alternatives]
        others = tasks[1:]
        done = await first
        if done.stop in llama.UNFINISHED or not others:
            return [done]
        taken = time.monotonic() - begun
        left = min((ask.limits.milliseconds or MAX_MS) / 1000 - taken, taken + LEAST_S)
        ready, _ = await asyncio.wait(others, timeout=max(left, 0.0))
        return _different([done, *(task.result() for task in others if task in ready and _came(task))])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _alone(first: asyncio.Task[Completion]) -> bool:
    """Whether it ended so soon that nothing else is to be asked: it failed, or was known."""
    return first.done() and (not _came(first) or bool(first.result().recall))


def _came(task: asyncio.Task[Completion]) -> bool:
    return not task.cancelled() and task.exception() is None


def _different(found: list[Completion]) -> list[Completion]:
    """The first, and what else is whole and says something else."""
    kept, texts = found[:1], {found[0].text}
    for other in found[1:]:
        if other.stop not in (*llama.UNFINISHED, "time") and other.text and other.text not in texts:
            texts.add(other.text)
            kept.append(other)
    return kept


def _alternative(ask: CompletionRequest, seed: int) -> CompletionRequest:
    replace = msgspec.structs.replace
    return replace(
        ask,
        id=new_id(),
        alternative=True,
        limits=replace(ask.limits, deadline=ask.limits.milliseconds or MAX_MS),
        sampling=replace(ask.sampling, temperature=ALTERNATIVE_TEMPERATURE, seed=seed),
    )
