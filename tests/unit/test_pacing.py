"""Who waits for the next key, for how long, and what that spares; time is the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.scripted import PROFILE
from support.typed import Typing, gone

from daemon.machine import EngineProfile
from daemon.nouns import CompletionRequest, Limits
from daemon.pacing import Pacing

SLOW = msgspec.structs.replace(PROFILE, verify=((1, 30.0), (5, 60.0)))
"""A common answer takes 240 ms."""
FAST = msgspec.structs.replace(PROFILE, verify=((1, 5.0),))


class Clock:
    """Time that goes on when it is told to, and what is due then."""

    def __init__(self) -> None:
        self.now = 100.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        self._due.append((self.now + seconds, action))

    async def go(self, seconds: float) -> None:
        """Let everybody do what they can, time pass, and everybody do what they then can."""
        await self._settle()
        self.now += seconds
        due = [one for one in self._due if one[0] <= self.now + 1e-9]
        self._due = [one for one in self._due if one not in due]
        for _, action in sorted(due, key=lambda one: one[0]):
            action()
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(8):
            await asyncio.sleep(0)


class Typist:
    """Asks through a Pacing; `answers` says whether each is answered before the next key."""

    def __init__(self, profile: EngineProfile | None = SLOW, most_ms: int = 150) -> None:
        self.clock = Clock()
        self.pacing = Pacing(most_ms, lambda: self.clock.now, self.clock.later)
        self.profile = profile
        self.begun: list[str] = []
        self.spared: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.answers = asyncio.Event()

    def press(self, text: str, client: str = "me", **fields: Any) -> asyncio.Task[None]:
        request = CompletionRequest(id=text, client=client, door="d", prefix=text, **fields)
        self.tasks.append(asyncio.create_task(self._asked(request, self.answers)))
        return self.tasks[-1]

    async def _asked(self, request: CompletionRequest, answers: asyncio.Event) -> None:
        pace = await self.pacing.turn(request, self.profile)
        if pace.late:
            self.spared.append(request.prefix)
            return
        self.begun.append(request.prefix)
        await answers.wait()
        pace.answered = True

    async def type(self, keys: int, gap: float = 0.08, **fields: Any) -> None:
        """Press `keys` keys, none answered before the next unless `answers` is set."""
        for _ in range(keys):
            self.press(f"{len(self.tasks)}", **fields)
            await self.clock.go(gap)

    def wait_ms(self, client: str = "me") -> float:
        found: float = self.pacing.facts()["clients"][client]["wait_ms"]
        return found

    def why(self, client: str = "me") -> str:
        found: str = self.pacing.facts()["clients"][client]["why"]
        return found

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_a_client_whose_answers_come_too_late_waits_for_its_next_key() -> None:
    me = Typist()
    await me.type(3)
    assert me.begun == ["0", "1", "2"]
    await me.type(5)
    assert me.wait_ms() == pytest.approx(88.0)
    assert "a key takes 80 ms" in me.why()
    assert me.begun == ["0", "1", "2"]
    await me.clock.go(0.02)
    assert me.begun == ["0", "1", "2", "7"]
    assert me.spared == ["3", "4", "5", "6"]
    facts = me.pacing.facts()
    assert (facts["waits"], facts["spared"]) == (5, 4)
    assert facts["waited_ms"] == pytest.approx(420.0)
    await me.close()


async def test_a_sequential_replay_never_waits() -> None:
    me = Typist()
    me.answers.set()
    await me.type(30)
    assert len(me.begun) == 30
    assert me.wait_ms() == 0.0
    assert me.pacing.facts()["waits"] == 0


@pytest.mark.parametrize(
    ("profile", "gap", "most_ms", "why"),
    [
        (FAST, 0.08, 150, "an answer takes 40 ms"),
        (PROFILE, 0.08, 150, "an answer takes 0 ms"),
        (None, 0.08, 150, "no model"),
        (SLOW, 0.2, 150, "nothing is gained"),
        (SLOW, 0.3, 150, "an answer takes 240 ms"),
        (SLOW, 0.001, 150, "nothing is gained"),
        (SLOW, 0.08, 0, "debounce_ms is 0"),
        (SLOW, 0.08, 50, "nothing is gained"),
        (SLOW, 0.7, 150, "too little is known"),
    ],
)
async def test_nobody_waits_where_it_spares_nothing(
    profile: EngineProfile | None, gap: float, most_ms: int, why: str
) -> None:
    me = Typist(profile, most_ms)
    await me.type(12, gap)
    assert len(me.begun) == 12
    assert why in me.why()
    await me.close()


async def test_no_wait_is_longer_than_the_setting() -> None:
    for gap in range(1, 300, 7):
        me = Typist()
        await me.type(12, gap / 1000)
        assert 0.0 <= me.wait_ms() <= 150.0
        await me.close()


async def test_after_a_pause_the_first_key_is_not_kept_waiting() -> None:
    me = Typist()
    await me.type(6)
    await me.clock.go(2.0)
    me.press("after a pause")
    await me.clock.go(0.0)
    assert me.begun[-1] == "after a pause"
    await me.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"manual": True},
        {"cache": False},
        {"margins": True},
        {"anchor_lines": 3},
        {"context": "now"},
        {"limits": Limits(deadline=500)},
        {"warm": True},
    ],
)
async def test_who_asks_by_hand_or_measures_is_not_kept_waiting(fields: dict[str, Any]) -> None:
    me = Typist()
    await me.type(6)
    me.press("now", **fields)
    await me.clock.go(0.0)
    assert me.begun[-1] == "now"
    await me.close()


async def test_one_question_asked_several_times_waits_once_and_none_ends_another() -> None:
    me = Typist()
    await me.type(6)
    for fields in ({}, {}, {}, {"alternative": True, "limits": Limits(deadline=500)}):
        me.press("same", **fields)
    await me.clock.go(0.08)
    assert me.begun.count("same") == 0
    await me.clock.go(0.02)
    assert me.begun.count("same") == 4
    assert "same" not in me.spared
    await me.close()


async def test_asking_by_hand_ends_the_wait_of_the_same_question() -> None:
    me = Typist()
    await me.type(6)
    me.press("same")
    await me.clock.go(0.01)
    me.press("same", manual=True)
    await me.clock.go(0.0)
    assert me.begun[-2:] == ["same", "same"]
    await me.close()


async def test_clients_are_paced_apart_and_few_are_remembered() -> None:
    me = Typist()
    await me.type(8)
    me.press("other", client="you")
    await me.clock.go(0.0)
    assert me.begun[-1] == "other"
    for number in range(300):
        me.press("x", client=f"client {number}")
    await me.clock.go(0.0)
    assert len(me.pacing._clients) == 256
    assert len(me.pacing.facts()["clients"]) == 4
    await me.close()


async def test_who_leaves_while_waiting_leaves_nothing_behind() -> None:
    me = Typist()
    await me.type(6)
    gone, here = me.press("same"), me.press("same")
    await me.clock.go(0.0)
    gone.cancel()
    await me.clock.go(0.11)
    assert gone.cancelled()
    assert me.begun[-1] == "same"
    assert not here.done()
    await me.close()


async def test_the_pipeline_begins_no_run_for_what_is_superseded_while_it_waits(tmp_path: Path) -> None:
    typing, clock = Typing(tmp_path), Clock()
    typing.engine.made = SLOW
    typing.pipeline.pacing = Pacing(150, lambda: clock.now, clock.later)
    typing.engine.hold()
    tasks = []
    for typed in ("to", "nam", "re", "tot", "name"):
        tasks.append(asyncio.create_task(typing.pipeline.complete(typing.ask(typed))))
        await clock.go(0.08)
    await typing.engine.until(lambda: len(typing.engine.jobs) >= 1)
    before = len(typing.engine.jobs)
    for typed in ("total", "names", "report"):
        tasks.append(asyncio.create_task(typing.pipeline.complete(typing.ask(typed))))
        await clock.go(0.08)
    typing.engine.go_on()
    await clock.go(0.05)
    done = await asyncio.gather(*tasks)
    assert [one.stop for one in done[-3:]] == ["superseded", "superseded", "eos"]
    assert len(typing.engine.jobs) == before + 1
    assert done[-1].text == "(total, names, width=80)"
    rows = [completion.id for *_, completion in typing.rows]
    assert sorted(rows + [over.id for _, over in typing.unplanned]) == [one.id for one in done]
    typing.engine.hold()
    for typed in ("tota", "name"):
        tasks.append(asyncio.create_task(typing.pipeline.complete(typing.ask(typed))))
        await clock.go(0.08)
    await gone(tasks[-1])
    assert typing.unplanned[-1][1].stop == "cancelled", "who leaves while waiting leaves a row"
    typing.engine.go_on()
    await asyncio.gather(*tasks[:-1])
    await typing.pipeline.close()


async def test_who_types_unevenly_waits_as_long_as_most_keys_take_or_not_at_all() -> None:
    me = Typist()
    for gap in (0.06, 0.06, 0.06, 0.06, 0.06, 0.12, 0.12, 0.12):
        await me.type(1, gap)
    me.press("now")
    await me.clock.go(0.0)
    assert me.wait_ms() == pytest.approx(132.0)
    await me.close()
    me = Typist()
    for gap in (0.06, 0.06, 0.06, 0.06, 0.06, 0.3, 0.3, 0.3):
        await me.type(1, gap)
    me.press("now")
    await me.clock.go(0.0)
    assert me.wait_ms() == 0.0
    await me.close()
