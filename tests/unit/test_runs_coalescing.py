"""Who shares a run, who does not, and what each is answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.typed import Typing, begun, gone, joining, typing
from support.waiting import until

from daemon.nouns import Counters, Limits, Sampling

__all__ = ["typing"]


@pytest.mark.parametrize("client", ["me", "other"])
async def test_what_is_typed_as_the_model_says_needs_no_run(typing: Typing, client: str) -> None:
    first, second = typing.ask("total = s"), typing.ask("total = sum", client)
    older = await begun(typing, first)
    newer = await joining(typing, second, "awaited")
    typing.engine.go_on()
    one, two = await older, await newer
    assert (one.raw, two.raw) == (typing.rest(first), typing.rest(second))
    assert "um" + two.text == one.text
    assert len(typing.engine.jobs) == 1
    assert (one.coalesced, two.coalesced) == ("", first.id)
    assert two.counters == Counters()
    assert one.counters.evaluated == typing.engine.work.total()
    assert two.replace.start == len(second.prefix)
    assert typing.metrics.total("runs") == 1


async def test_who_typed_something_else_gets_a_run_of_its_own(typing: Typing) -> None:
    first, second = typing.ask("total = s"), typing.ask("total = se")
    older = await begun(typing, first)
    newer = await joining(typing, second, "awaited")
    typing.engine.go_on()
    assert (await newer).raw == typing.rest(second)
    assert (await newer).coalesced == ""
    assert (await older).stop == "superseded"
    assert typing.joined("parted") == 1
    assert len(typing.engine.jobs) == 2


async def test_another_client_that_parts_leaves_the_first_in_peace(typing: Typing) -> None:
    first, second = typing.ask("total = s"), typing.ask("total = se", "other")
    older = await begun(typing, first)
    newer = await joining(typing, second, "awaited")
    typing.engine.go_on()
    assert [(await task).raw for task in (older, newer)] == [typing.rest(first), typing.rest(second)]


@pytest.mark.parametrize("ended", [True, False])
async def test_the_work_of_a_run_that_its_last_one_parts_from_is_counted(typing: Typing, ended: bool) -> None:
    typing.engine.hold_after = 0 if ended else 1
    older = await begun(typing, first := typing.ask("total = s"))
    newer = await joining(typing, typing.ask("total = sum(item.prize", "other"), "awaited")
    await gone(older)
    if ended:
        typing.engine.script = lambda job: "um(item.pri" if len(typing.engine.jobs) == 1 else "!"
    typing.engine.go_on()
    if not ended:
        await typing.engine.until(lambda: len(typing.engine.jobs) == 2)
        typing.engine.hold_after = 0
        typing.engine.go_on()
    await newer
    cancelled, unowned, own = typing.rows
    run, next_run = typing.engine.jobs
    assert (unowned[3].id, own[3].id) == (f"run-{run.id}", (await newer).id)
    assert [row[3].counters.prompt > 0 for row in typing.rows] == [False, True, True]
    assert unowned[3].counters.evaluated == (typing.engine.work[run.id] if ended else 0)
    assert own[3].counters.evaluated == typing.engine.work[next_run.id]
    assert unowned[0].request.prefix == first.prefix
    assert cancelled[3].stop == "cancelled"
    assert typing.metrics.total("tokens", "evaluated") == unowned[3].counters.evaluated


async def test_only_the_newest_of_those_that_part_gets_a_run(typing: Typing) -> None:
    requests = [typing.ask(f"total = {typed}") for typed in ("s", "se", "sel", "self")]
    tasks = [await begun(typing, requests[0])]
    tasks += [await joining(typing, request, "awaited") for request in requests[1:]]
    typing.engine.go_on()
    done = [await task for task in tasks]
    assert [one.stop for one in done[:-1]] == ["superseded"] * 3
    assert done[-1].raw == typing.rest(requests[-1])
    assert len(typing.engine.jobs) == 2


async def test_who_is_over_before_its_run_said_anything_is_given_only_what_fits(
    typing: Typing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typing.engine, "supersede", lambda job_id: None)  # too late: all is said already
    pieces: list[str] = []

    async def on_text(text: str) -> None:
        pieces.append(text)

    older = await begun(typing, typing.ask("total = s"))
    waits = asyncio.create_task(typing.pipeline.complete(typing.ask("total = se"), on_text))
    await until(lambda: typing.joined("awaited") == 1, 5)
    elsewhere = asyncio.create_task(typing.pipeline.complete(third := typing.ask("rep", line=2)))
    await typing.engine.until(lambda: len(typing.engine.jobs) == 2)
    typing.engine.go_on()
    assert ((await waits).stop, (await waits).raw, pieces) == ("superseded", "", [])
    assert (await older).counters.evaluated > 0
    assert (await elsewhere).raw == typing.rest(third)


async def test_twins_are_all_answered_and_streamed(typing: Typing) -> None:
    first = typing.ask("names = ")
    tasks, heard = [await begun(typing, first)], list[list[str]]()
    for _ in range(2):
        pieces: list[str] = []

        async def on_text(text: str, pieces: list[str] = pieces) -> None:
            pieces.append(text)

        heard.append(pieces)
        request = typing.ask("names = ")
        tasks.append(asyncio.create_task(typing.pipeline.complete(request, on_text)))
    await until(lambda: typing.joined("same") == 2, 5)
    typing.engine.go_on()
    assert {(await task).raw for task in tasks} == {typing.rest(first)}
    assert {"".join(pieces) for pieces in heard} == {tasks[0].result().text}
    assert min(len(pieces) for pieces in heard) > 1
    assert len(typing.engine.jobs) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"suffix": "\nx = 1\n"},
        {"limits": Limits(lines="line", tokens=7)},
        {"limits": Limits(lines="line", stop=(")",))},
        {"sampling": Sampling(temperature=0.4, seed=3)},
        {"path": "/project/another.py"},
        {"path": None},
        {"warm": True},
        {"cache": False},
        {"typed": "total = s\n"},
        {"typed": "total ="},
    ],
    ids=lambda more: next(iter(more)),
)
async def test_another_question_is_another_run(typing: Typing, more: dict[str, Any]) -> None:
    more = dict(more)
    older = await begun(typing, typing.ask("total = s"))
    newer = asyncio.create_task(typing.pipeline.complete(typing.ask(more.pop("typed", "total = su"), **more)))
    assert (await older).stop == "superseded"
    await typing.engine.until(lambda: len(typing.engine.jobs) == 2)
    typing.engine.go_on()
    assert (await newer).stop != "superseded"
    assert not typing.joined("awaited")


@pytest.mark.parametrize("more", [{"whole": True}, {"language": "python"}, {"replaces": False}])
async def test_who_knows_more_of_a_named_file_asks_the_same(typing: Typing, more: dict[str, Any]) -> None:
    older = await begun(typing, first := typing.ask("total = s"))
    newer = await joining(typing, typing.ask("total = s", "other", **more), "same")
    typing.engine.go_on()
    assert (await older).raw == (await newer).raw == typing.rest(first)
    assert len(typing.engine.jobs) == 1


async def test_equal_texts_of_two_clients_without_a_name_are_two_documents(typing: Typing) -> None:
    await begun(typing, typing.ask("total = s", path=None))
    asyncio.create_task(typing.pipeline.complete(typing.ask("total = s", "other", path=None)))  # noqa: RUF006
    await typing.engine.until(lambda: len(typing.engine.jobs) == 2)


async def test_after_more_than_a_moment_only_what_is_said_already_is_shared(tmp_path: Path) -> None:
    typing = Typing(tmp_path, coalesce_ms=1)
    typing.engine.hold_after = 1
    first = typing.ask("total = s")
    older = asyncio.create_task(typing.pipeline.complete(first))
    await typing.engine.until(lambda: typing.engine.held)
    later = asyncio.get_running_loop().time() + 0.002
    await until(lambda: asyncio.get_running_loop().time() > later, 5)
    newer = await joining(typing, second := typing.ask("total = sum("), "said")
    newest = asyncio.create_task(typing.pipeline.complete(third := typing.ask("total = sum(item.price f")))
    assert (await older).stop == (await newer).stop == "superseded"
    typing.engine.hold_after = 0
    typing.engine.go_on()
    assert (await newest).raw == typing.rest(third)
    assert second.prefix + (await newer).raw == first.prefix + (await older).raw
    await typing.pipeline.close()


async def test_nothing_is_shared_when_it_is_off(tmp_path: Path) -> None:
    typing = Typing(tmp_path, coalesce_ms=0)
    older = await begun(typing, typing.ask("total = s"))
    newer = await begun(typing, typing.ask("total = s"))
    typing.engine.go_on()
    assert (await older).stop == "superseded"
    assert (await newer).stop == "eos"
    await typing.pipeline.close()
