"""What is answered without a run, that it is what a run would answer, and what is asked in advance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.scripted import PROFILE
from support.typed import LINES, Typing
from support.waiting import until

from daemon import replay
from daemon.engine.client import EngineClient, EngineModel
from daemon.errors import BadRequest
from daemon.nouns import Completion, CompletionRequest, Counters, Limits, Sampling
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Complete, Context, Recall, Settings

LINE = LINES[0]


@pytest.fixture
async def typing(tmp_path: Path) -> AsyncIterator[Typing]:
    """Recall without prefetch."""
    found = Typing(tmp_path, recall=Recall(prefetch=False))
    yield found
    await found.pipeline.close()


@pytest.fixture
async def ahead(tmp_path: Path) -> AsyncIterator[Typing]:
    """Recall with prefetch."""
    found = Typing(tmp_path, recall=Recall())
    yield found
    found.engine.go_on()
    await found.pipeline.close()


async def test_a_line_typed_as_it_was_shown_takes_one_run(typing: Typing) -> None:
    for size in range(3, len(LINE)):
        done = await typing.pipeline.complete(asked := typing.ask(LINE[:size]))
        assert done.text == LINE[size:] == typing.rest(asked)
        assert done.recall == ("typed" if size > 3 else "")
        assert done.counters == Counters() or size == 3
    assert len(typing.engine.jobs) == 1
    facts = typing.pipeline.recall.facts()
    assert (facts["hits"]["typed"], facts["misses"]) == (len(LINE) - 4, 1)
    assert facts["hit_rate"] == (len(LINE) - 4) / (len(LINE) - 3)
    assert facts["saved_ms"] > 0 < facts["bytes"] <= facts["ceiling"]


async def test_every_request_leaves_a_row(typing: Typing) -> None:
    first = await typing.pipeline.complete(typing.ask("total = "))
    done = await typing.pipeline.complete(asked := typing.ask("total = su"))
    row = typing.rows[1]
    assert (row[0].request.id, row[3]) == (asked.id, done)
    assert done.language == first.language == "python"
    entry = replay.entry(*row, profile=PROFILE, build="b")
    assert (entry.recall, entry.stop, entry.counters, entry.prompt) == ("typed", "eos", Counters(), 0)
    assert entry.anchor == done.reason == f"typed: from the answer to {first.id}"
    with pytest.raises(BadRequest, match="known already"):
        await replay.replay(typing.engine, entry)


async def test_a_known_answer_is_streamed_as_any_other(typing: Typing) -> None:
    pieces: list[str] = []

    async def on_text(text: str) -> None:
        pieces.append(text)

    await typing.pipeline.complete(typing.ask("total = "))
    done = await typing.pipeline.complete(typing.ask("total = su"), on_text)
    assert "".join(pieces) == done.text == LINE[10:]


async def test_another_word_is_a_run_and_the_way_back_is_none(typing: Typing) -> None:
    await typing.pipeline.complete(typing.ask("total = s"))
    other = await typing.pipeline.complete(wrong := typing.ask("total = se"))
    assert (other.recall, other.raw) == ("", typing.rest(wrong))
    for typed, level in (("total = s", "exact"), ("total = su", "typed"), ("total = se", "exact")):
        back = await typing.pipeline.complete(asked := typing.ask(typed))
        assert (back.recall, back.raw) == (level, typing.rest(asked))
    assert len(typing.engine.jobs) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"recall": False},
        {"cache": False},
        {"margins": True},
        {"anchor_lines": 2},
        {"context": "now"},
        {"warm": True},
        {"window": "simple"},
        {"alternative": True},
        {"sampling": Sampling(temperature=0.4, seed=3)},
        {"limits": Limits(lines="line", tokens=3)},
    ],
    ids=lambda more: next(iter(more)),
)
async def test_what_measures_or_asks_otherwise_is_a_run(typing: Typing, more: dict[str, Any]) -> None:
    await typing.pipeline.complete(typing.ask("total = "))
    done = await typing.pipeline.complete(typing.ask("total = su", **more))
    assert (done.recall, len(typing.engine.jobs)) == ("", 2)


async def test_what_a_limit_cut_is_no_answer_further_on(typing: Typing) -> None:
    limits = Limits(lines="line", tokens=3)
    first = await typing.pipeline.complete(typing.ask("total = ", limits=limits))
    again = await typing.pipeline.complete(typing.ask("total = ", limits=limits))
    assert (first.stop, again.stop, again.recall, again.text) == ("limit", "limit", "exact", first.text)
    assert (await typing.pipeline.complete(typing.ask("total = su", limits=limits))).recall == ""


async def test_nothing_is_kept_of_denied_files_and_of_those_switched_off(tmp_path: Path) -> None:
    typing = Typing(tmp_path, recall=Recall(prefetch=False))
    for _ in range(2):
        done = await typing.pipeline.complete(typing.ask("total = ", path="/project/.env"))
        assert done.recall == ""
    assert typing.pipeline.recall.facts()["answers"] == 0
    await typing.pipeline.complete(typing.ask("total = "))
    assert typing.pipeline.recall.facts()["answers"] == 1
    (tmp_path / "project").mkdir()
    typing.pipeline._projects._settings = Settings(complete=Complete(on=False))
    assert (await typing.pipeline.complete(typing.ask("total = "))).stop == "off"
    assert typing.pipeline.recall.facts()["answers"] == 0
    await typing.pipeline.close()


async def test_nothing_is_kept_once_a_secret_stands_in_the_text(typing: Typing) -> None:
    whole = {"path": "/project/notes", "whole": True}
    await typing.pipeline.complete(typing.ask("total = ", **whole))
    assert typing.pipeline.recall.facts()["answers"] == 1
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n"
    suffix = "\n" + key
    for _ in range(2):
        done = await typing.pipeline.complete(typing.ask("total = ", suffix=suffix, **whole))
        assert done.recall == ""
    assert typing.pipeline.recall.facts()["answers"] == 0


async def test_where_nothing_is_to_be_answered_memory_is_silent_too(typing: Typing) -> None:
    await typing.pipeline.complete(typing.ask("total = "))
    typing.pipeline.recall.hushed = lambda planned: planned.around.zone == "code"
    assert (await typing.pipeline.complete(typing.ask("total = "))).recall == ""


async def resting(typing: Typing) -> None:
    await until(lambda: typing.pipeline.recall.prefetch.resting, 5)


async def test_the_next_line_is_asked_for_before_it_is_begun(ahead: Typing) -> None:
    await ahead.pipeline.complete(ahead.ask(LINE[:8]))
    await resting(ahead)
    assert {job.lane for job in ahead.engine.jobs[1:]} == {"warm"}
    jobs = len(ahead.engine.jobs)
    taken = await ahead.pipeline.complete(ahead.ask(LINE))
    below = await ahead.pipeline.complete(asked := ahead.ask(LINE + "\n"))
    further = await ahead.pipeline.complete(ahead.ask(LINE + "\n" + below.text[:3]))
    assert (taken.recall, below.recall, further.recall) == ("typed", "prefetched", "prefetched")
    assert below.text == ahead.rest(asked)
    assert further.text == below.text[3:]
    await resting(ahead)
    assert [job.lane for job in ahead.engine.jobs[jobs:] if job.lane != "warm"] == []
    facts = ahead.pipeline.recall.facts()["prefetch"]
    assert facts["begun"] >= 2
    assert facts["generated"] == facts["used"] + facts["wasted"]
    assert facts["used"] >= 1


async def test_work_ahead_goes_on_while_it_is_typed_along_and_ends_when_not(ahead: Typing) -> None:
    await ahead.pipeline.complete(ahead.ask(LINE[:8]))
    ahead.engine.hold()
    await ahead.engine.until(lambda: len(ahead.engine.jobs) == 2)
    job = ahead.engine.jobs[1].id
    assert (await ahead.pipeline.complete(ahead.ask(LINE[:12]))).recall == "typed"
    assert job not in ahead.engine.ends
    task = asyncio.create_task(ahead.pipeline.complete(wrong := ahead.ask(LINE[:12] + "~")))
    await ahead.engine.until(lambda: job in ahead.engine.ends)
    assert ahead.engine.ends[job] == "cancelled"
    ahead.engine.go_on()
    assert (await task).raw == ahead.rest(wrong)
    assert ahead.pipeline.recall.facts()["prefetch"]["dropped"] >= 1


async def test_nothing_is_asked_in_advance_where_it_may_not(tmp_path: Path) -> None:
    typing = Typing(tmp_path, recall=Recall())
    typing.pipeline.recall.prefetch.allowed = lambda: False
    await typing.pipeline.complete(typing.ask(LINE[:8]))
    assert typing.pipeline.recall.prefetch.resting
    assert len(typing.engine.jobs) == 1
    assert typing.pipeline.recall.facts()["prefetch"]["on"] is False
    await typing.pipeline.close()


async def test_nothing_is_remembered_when_it_is_off(tmp_path: Path) -> None:
    typing = Typing(tmp_path)
    for _ in range(2):
        assert (await typing.pipeline.complete(typing.ask("total = "))).recall == ""
    facts = typing.pipeline.recall.facts()
    assert (facts["on"], facts["answers"], facts["misses"]) == (False, 0, 0)
    await typing.pipeline.close()


async def test_with_a_real_engine_a_known_answer_is_that_of_a_fresh_run(tiny_model: Path) -> None:
    engine = EngineClient(Settings(), EngineModel("tiny", tiny_model, "0" * 64))
    await engine.start()
    await asyncio.wait_for(engine.ready.wait(), 60)
    pipeline = Pipeline(engine, Settings(context=Context(idle=False)), Metrics())
    numbers, pairs = iter(range(10_000)), list[tuple[Completion, Completion]]()

    async def ask(prefix: str, limits: Limits, recall: bool = True) -> Completion:
        request = CompletionRequest(
            id=str(next(numbers)), client="a", door="test", prefix=prefix, path="/w/a.py", limits=limits,
            recall=recall,
        )  # fmt: skip
        return await pipeline.complete(request)

    for number in range(30):
        prefix = f"def total_{number}(items):\n    order = {number}\n    price ="
        said = (await ask(prefix, Limits(lines="free", tokens=24), recall=False)).raw
        limits = Limits(lines="free", tokens=40, stop=(said[10:11] or "x",))
        whole = await ask(prefix, limits)
        for size in [*range(1, len(whole.raw)), 2, 0]:
            known = await ask(prefix + whole.raw[:size], limits)
            if known.recall:
                pairs.append((known, await ask(prefix + whole.raw[:size], limits, recall=False)))
    await pipeline.close()
    await engine.close()
    assert len(pairs) > 30
    assert {known.recall for known, _ in pairs} >= {"typed", "exact"}
    unequal = [(a.raw, b.raw) for a, b in pairs if (a.text, a.stop) != (b.text, b.stop)]
    assert not unequal
