"""Who waits unplanned while the engine has enough to do, and what becomes of them."""

from __future__ import annotations

import asyncio
import random

from support.typed import Typing, begun, gone, typing
from support.waiting import until

from daemon.nouns import Completion, Limits
from daemon.runs.gate import Gate
from daemon.runs.seats import Turn, question
from daemon.settings import Engine

__all__ = ["typing"]

MOST = 2 * Engine().concurrency


def turn(typing: Typing, name: str) -> Turn:
    asked = typing.ask("total", name)
    return Turn(name, asked, question(asked), 0.0)


async def crowd(typing: Typing) -> list[asyncio.Task[Completion]]:
    """As many people as are planned for at once, each in a file of its own."""
    tasks = []
    for n in range(MOST):
        tasks.append(await begun(typing, typing.ask("total = s", f"crowd-{n}", path=f"/project/{n}.py")))
    return tasks


def waiting(typing: Typing, name: str = "late", **more: object) -> asyncio.Task[Completion]:
    return asyncio.create_task(typing.pipeline.complete(typing.ask("names", name, 1, **more)))


async def paused() -> None:
    """Until everything that can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_who_waits_is_not_planned_and_answered_in_the_end(typing: Typing) -> None:
    tasks = await crowd(typing)
    late = waiting(typing)
    await paused()
    assert len(typing.engine.jobs) == MOST
    typing.engine.go_on()
    done = await late
    assert (done.stop, done.raw) == ("eos", typing.lines[1].removeprefix("names"))
    assert done.timings.total >= done.timings.queued > 0.0, "the wait at the gate is told"
    assert {(await task).stop for task in tasks} == {"eos"}


async def test_a_newer_request_ends_the_wait_and_the_place_is_kept_by_nobody(typing: Typing) -> None:
    tasks = await crowd(typing)
    first, second = waiting(typing), waiting(typing)
    assert (await first).stop == "superseded"
    assert typing.metrics.total("unplanned", "superseded") == 1
    assert len(typing.engine.jobs) == MOST
    await gone(second)
    assert [(asked.client, done.stop) for asked, done in typing.unplanned] == [
        ("late", "superseded"), ("late", "cancelled"),
    ]  # fmt: skip
    await gone(tasks[0])
    third = waiting(typing, "other")
    await typing.engine.until(lambda: len(typing.engine.jobs) > MOST)
    typing.engine.go_on()
    assert (await third).stop == "eos"


async def test_who_types_on_leaves_its_place_to_others_at_once(typing: Typing) -> None:
    """The engine may not say for a while what became of the older request."""
    await crowd(typing)
    late = waiting(typing)
    await paused()
    newer = asyncio.create_task(
        typing.pipeline.complete(typing.ask("names", "crowd-0", 1, path="/project/new.py"))
    )
    await typing.engine.until(lambda: len(typing.engine.jobs) == MOST + 1)
    assert typing.engine.jobs[-1].client == "late", "it came first"
    typing.engine.go_on()
    assert [(await late).stop, (await newer).stop] == ["eos", "eos"]


async def test_nobody_waits_beyond_the_deadline(typing: Typing) -> None:
    await crowd(typing)
    done = await waiting(typing, limits=Limits(lines="line", deadline=1.0))
    assert (done.stop, done.text) == ("time", "")
    assert typing.metrics.total("unplanned", "time") == 1
    [(_, told)] = typing.unplanned
    assert (told, told.timings.total >= 1.0) == (done, True)


async def test_only_keystrokes_wait(typing: Typing) -> None:
    """The other lanes of the engine have places of their own."""
    await crowd(typing)
    long = waiting(typing, limits=Limits(lines="free", tokens=600))
    await typing.engine.until(lambda: len(typing.engine.jobs) == MOST + 1)
    alternative = waiting(typing, "another", alternative=True)
    await typing.engine.until(lambda: len(typing.engine.jobs) == MOST + 2)
    typing.engine.go_on()
    await asyncio.gather(long, alternative)


async def test_a_gate_never_holds_more_and_never_forgets_anybody(typing: Typing) -> None:
    """Random comings and goings against a plain list of who came when."""
    chance, gate, most = random.Random(3), Gate(3), 3
    came: list[tuple[Turn, asyncio.Task[bool]]] = []
    for n in range(600):
        if chance.random() < 0.55:
            one = turn(typing, f"{n}")
            came.append((one, asyncio.create_task(gate.let_in(one))))
        elif came:
            one, task = came.pop(chance.randrange(len(came)))
            if chance.random() < 0.5:
                task.cancel()
            gate.leave(one)
        await paused()
        inside = [task.done() for _, task in came]
        assert inside == [True] * min(most, len(came)) + [False] * max(0, len(came) - most)
    for one, _ in came:
        gate.leave(one)
    await asyncio.gather(*(task for _, task in came))
    await until(lambda: all(task.done() for _, task in came), 5)
