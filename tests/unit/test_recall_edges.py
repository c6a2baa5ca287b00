"""What recall must not do: answer one question with another's text, and work for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.typed import Typing
from support.waiting import until

from daemon.engine.frames import Submit
from daemon.nouns import Limits
from daemon.power import Policy
from daemon.recall.remainder import remainder
from daemon.recall.shown import Answer
from daemon.settings import Complete, Recall, Settings
from daemon.settings import Power as PowerSettings


@pytest.fixture
async def ahead(tmp_path: Path) -> AsyncIterator[Typing]:
    """Recall with prefetch."""
    found = Typing(tmp_path, recall=Recall())
    yield found
    found.engine.go_on()
    await found.pipeline.close()


async def resting(typing: Typing) -> None:
    await until(lambda: typing.pipeline.recall.prefetch.resting, 5)


async def test_a_rendered_prompt_is_evaluated_each_time_and_nothing_in_advance(ahead: Typing) -> None:
    fim = "<|fim_prefix|># 0\n{}<|fim_suffix|>\n<|fim_middle|>"
    for typed in ("total = ", "names = "):  # another prompt that shows the same document
        asked = ahead.ask("total = ", rendered=fim.format(typed), context="none")
        done = await ahead.pipeline.complete(asked)
        await resting(ahead)
        assert (done.recall, done.raw) == ("", ahead._rest(f"# 0\n{typed}"))
    assert len(ahead.engine.jobs) == 2


async def test_nothing_is_asked_ahead_of_what_was_superseded(ahead: Typing) -> None:
    ahead.engine.hold_after = 2
    older = asyncio.create_task(ahead.pipeline.complete(ahead.ask("total = ")))
    await ahead.engine.until(lambda: ahead.engine.held)
    ahead.engine.hold_after = 0
    newer = asyncio.create_task(ahead.pipeline.complete(ahead.ask("names = ", line=1)))
    assert (await older).stop == "superseded"
    assert ahead.pipeline.recall.prefetch.resting
    ahead.engine.go_on()
    await newer


async def test_what_was_superseded_is_not_what_the_person_sees(tmp_path: Path) -> None:
    typing = Typing(tmp_path, recall=Recall(prefetch=False))
    await typing.pipeline.complete(typing.ask("total = "))
    typing.engine.hold_after = 2
    older = asyncio.create_task(typing.pipeline.complete(typing.ask("names = ", line=1)))
    await typing.engine.until(lambda: typing.engine.held)
    known = await typing.pipeline.complete(typing.ask("total = su"))
    assert (known.recall, (await older).stop) == ("typed", "superseded")
    typing.engine.hold_after = 0
    typing.engine.go_on()
    await typing.pipeline.complete(typing.ask("total = su" + known.text))
    assert [one.text for one in typing.pipeline.mirror.recent() if one.kind == "accepted"] == [known.text]
    await typing.pipeline.close()


async def test_what_is_asked_ahead_in_a_file_ends_when_it_is_switched_off(ahead: Typing) -> None:
    await ahead.pipeline.complete(ahead.ask("total = "))
    ahead.engine.hold()
    await ahead.engine.until(lambda: len(ahead.engine.jobs) == 2)
    ahead.pipeline._projects._settings = Settings(complete=Complete(on=False))
    assert (await ahead.pipeline.complete(ahead.ask("total = "))).stop == "off"
    await ahead.engine.until(lambda: len(ahead.engine.ends) == 2)
    ahead.engine.go_on()
    await resting(ahead)
    assert ahead.pipeline.recall.facts()["answers"] == 0


async def test_on_battery_idle_work_is_not_taken_up_again(tmp_path: Path) -> None:
    typing = Typing(tmp_path, recall=Recall())
    await typing.pipeline.complete(typing.ask("total = "))
    assert not typing.pipeline.resting
    typing.pipeline.power = Policy(PowerSettings(), battery_now=lambda: True)
    await typing.pipeline.complete(typing.ask("total = "))
    assert typing.pipeline.resting
    assert (await typing.pipeline.complete(typing.ask("total = su"))).recall == "typed"
    assert typing.pipeline.resting
    await typing.pipeline.close()


async def test_an_answer_that_is_known_loads_the_model_for_the_next_one(tmp_path: Path) -> None:
    typing = Typing(tmp_path, recall=Recall(prefetch=False))
    await typing.pipeline.complete(typing.ask("total = "))
    await typing.engine.unload("idle")
    assert (await typing.pipeline.complete(typing.ask("total = su"))).recall == "typed"
    assert typing.engine.state.phase == "ready"
    await typing.pipeline.close()


@pytest.mark.parametrize(("closes", "known"), [(")", "a, b"), ("", None)])
def test_who_can_replace_a_bracket_may_want_more_than_who_cannot(closes: str, known: str | None) -> None:
    limits = Limits(lines="auto")
    answer = Answer(
        id="1", kind=0, before="f(", after=")", text="a, b", stop="closed", stop_word="", context=(0, 0),
        lines=limits.lines, tokens=limits.tokens, middle=0, written=b"", ms=1.0,
    )  # fmt: skip
    found = remainder(answer, "", Submit(id="2", tokens=b"", line="f(", closes=closes, limits=limits), len)
    assert (found.text if found else None) == known
