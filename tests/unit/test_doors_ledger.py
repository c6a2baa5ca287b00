"""Rows of real requests at real doors: exact sums, explanations, replays, and nothing for strangers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.house import Standing, head_and_body, standing

from daemon import replay
from daemon.engine.client import EngineClient, EngineModel
from daemon.engine.frames import Submit
from daemon.nouns import CompletionRequest, Extra, Limits
from daemon.observe import audit
from daemon.observe.ledger import Ledger
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Ledger as LedgerSettings
from daemon.settings import Settings
from indexer import vocabulary

SECRET = "canary_in_the_document"
BODY = {
    "text": f"import x\n\ndef {SECRET}():\n    total = pri\n    return total\n",
    "cursor": {"line": 3, "character": 15},
    "path": "src/pay.py",
    "language": "python",
    "client": "me",
    "extras": [{"filename": "b.py", "text": "price = 1"}],
}


async def row(house: Standing, name: str) -> Any:
    reply = await house.ask("GET", f"/v1/ledger/{name}")
    assert reply.status == 200, reply.body
    return reply.json


async def test_the_row_of_an_answer_explains_it() -> None:
    async with standing("price * 2") as house:
        answer = (await house.ask("POST", "/v1/complete", BODY)).json
        told = await row(house, answer["id"])
        assert told == await row(house, answer["id"].removeprefix("cmpl-")[:6])
        assert (told["path"], told["language"], told["client"]) == ("src/pay.py", "python", "me")
        assert (told["door"], told["model"], told["build"]) == ("native", "scripted", "b")
        assert told["counters"] == answer["counters"]
        assert told["anchor"] == answer["reason"] != ""
        spelled = "".join(segment["text"] for segment in told["prompt"])
        job = house.engine.jobs[0]
        assert [i for s in told["prompt"] for i in s["ids"]] == list(memoryview(job.tokens).cast("i"))
        names = ("<|repo_name|>", "<|file_sep|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
        assert [spelled.index(name) for name in names] == sorted(spelled.index(name) for name in names)
        assert SECRET in spelled
        assert "price = 1" in spelled
        assert told["answer"]["must"] == " pri"
        assert told["answer"]["text"] == answer["text"]
        sums = (await house.ask("GET", "/v1/ledger")).json["composition"]
        assert sums["wrong"] == []
        assert {"tier": "P4", "kind": "extra", "source": "b.py"}.items() <= sums["sources"][0].items()


async def test_infill_answers_carry_an_id_too() -> None:
    async with standing() as house:
        answer = (await house.ask("POST", "/infill", {"input_prefix": "x = ", "n_cmpl": 1})).json
        assert (await row(house, answer["id"]))["door"] == "infill"


async def test_rows_quote_no_source_text() -> None:
    async with standing("price") as house:
        await house.ask("POST", "/v1/complete", {**BODY, "stop": [SECRET]})
        reply = await house.ask("GET", "/v1/ledger?last=5")
        assert len(reply.json["entries"]) == 1
        for text in (SECRET, "price", "return"):
            assert text not in reply.body.decode()


async def test_superseded_and_abandoned_requests_leave_a_row() -> None:
    async with standing("one two three") as house:
        house.engine.hold()
        older = asyncio.create_task(house.ask("POST", "/v1/complete", BODY))
        await house.engine.until(lambda: len(house.engine.jobs) == 1)
        _, writer = await house.connect()
        writer.write(head_and_body("POST", "/v1/complete", {**BODY, "max_tokens": 5}))
        await house.engine.until(lambda: len(house.engine.jobs) == 2)
        writer.close()
        assert (await older).json["stop"] == "superseded"
        await house.engine.until(lambda: len(house.engine.ends) == 2)
        body = (await house.ask("GET", "/v1/ledger")).json
        assert {entry["stop"] for entry in body["entries"]} == {"superseded", "cancelled"}
        assert body["composition"]["wrong"] == []
        for entry in body["entries"]:
            assert sum(segment["tokens"] for segment in entry["segments"]) == entry["counters"]["prompt"] > 0


async def test_a_thousand_requests_sum_exactly() -> None:
    random_ = random.Random(4)
    text = "".join(f"def f{n}(a, b):\n    return a * {n} + b  # äöü\n\n" for n in range(40))
    async with standing(lambda job: "answer(1)\n") as house:
        at = 200
        for number in range(1000):
            at = random_.randrange(len(text)) if random_.random() < 0.1 else min(len(text), at + 1)
            extras = tuple(Extra(text="x = 1\n" * n, filename=f"{n}.py") for n in range(number % 3))
            await house.pipeline.complete(
                CompletionRequest(
                    id=f"cmpl-{number}", client="c", door="d", prefix=text[:at], suffix=text[at:],
                    extras=extras, limits=Limits(tokens=8), warm=number % 50 == 0,
                )
            )  # fmt: skip
        entries = await house.house.ledger.last(1000)
        assert [entry.id for entry in entries] == [f"cmpl-{n}" for n in range(1000)]
        evaluated = sum(len(job.tokens) // 4 for job in house.engine.jobs if not job.id.startswith("idle"))
        sums = audit.composition(entries)
        assert sums["wrong"] == []
        assert all(entry.prompt == entry.counters.prompt > 0 for entry in entries)
        assert sum(part["tokens"] for part in sums["kinds"]) == sums["prompt"] == evaluated
        assert sums["prompt"] == sums["reused"] + sums["evaluated"]
        assert house.house.ledger.state["dropped"] == 0


async def test_replay_says_whether_the_answer_is_the_same() -> None:
    answers = itertools.chain(["price * 2", "price * 2"], itertools.repeat("price + 2"))
    async with standing(lambda job: next(answers)) as house:
        name = (await house.ask("POST", "/v1/complete", BODY)).json["id"]
        same = (await house.ask("POST", f"/v1/ledger/{name}/replay", {})).json
        assert (same["same"], same["why"], same["recorded"]) == (True, "", "price * 2")
        first, second = house.engine.jobs
        assert (second.tokens, second.must, second.suffix) == (first.tokens, first.must, first.suffix)
        assert (second.above, second.line, second.cache) == (first.above, first.line, False)
        assert second.limits.milliseconds is None
        other = (await house.ask("POST", f"/v1/ledger/{name}/replay", {})).json
        assert (other["same"], other["at"], other["replayed"]) == (False, 6, "price + 2")
        assert "after 6 characters" in other["why"]


async def test_what_cannot_be_explained_or_replayed_is_said() -> None:
    async with standing() as house:
        cases: list[tuple[str, str, str]] = [("GET", "/v1/ledger?last=x", "`last`")]
        cases += [("GET", f"/v1/ledger?last={n}", "`last`") for n in (0, 10_001)]
        cases += [("GET", "/v1/ledger/none", "no request"), ("POST", "/v1/ledger/none/replay", "no request")]
        warm = (await house.ask("POST", "/v1/complete", {**BODY, "warm": True})).json["id"]
        cases += [("POST", f"/v1/ledger/{warm}/replay", "only warmed")]
        for method, path, said in cases:
            reply = await house.ask(method, path, {} if method == "POST" else None)
            assert (reply.status, said in reply.json["error"]["message"]) == (400, True), path
        stranger = await house.ask("GET", "/v1/ledger", headers={"Host": "evil.example"})
        page = await house.ask("GET", f"/v1/ledger/{warm}", headers={"Origin": "http://127.0.0.1"})
        assert (stranger.status, page.status) == (403, 403)


@contextlib.asynccontextmanager
async def real(model: Path, folder: Path) -> AsyncIterator[tuple[Pipeline, EngineClient, Ledger]]:
    """The tiny model in its own process, behind the real pipeline and ledger."""
    settings = Settings()
    client = EngineClient(settings, EngineModel("tiny", model, "ledger"))
    ledger = Ledger(folder / "l.db", LedgerSettings())
    pipeline = Pipeline(client, settings, Metrics())

    def record(*passed: Any) -> None:
        assert client.profile is not None
        ledger.add(replay.entry(*passed, profile=client.profile, build="b"))

    pipeline.record = record
    ledger.start()
    await client.start()
    await asyncio.wait_for(client.ready.wait(), 60)
    try:
        yield pipeline, client, ledger
    finally:
        await pipeline.close()
        await client.close()
        ledger.close(5)


async def test_the_real_engine_gives_the_same_answer_again(tiny_model: Path, tmp_path: Path) -> None:
    async with real(tiny_model, tmp_path) as (pipeline, client, ledger):
        asks = ("def total(items):\n    ret", "class Order:\n    price = ", "import ")
        for number, prefix in enumerate(asks):
            for typed in ("", "x", "xy"):  # the second and third reuse what the first evaluated
                await pipeline.complete(
                    CompletionRequest(
                        id=f"cmpl-{number}{typed}-", client="c", door="d", prefix=prefix + typed,
                        suffix="\n\nprint(total)\n", limits=Limits(lines="free", tokens=12),
                    )
                )  # fmt: skip
        for entry in await ledger.last(9):
            assert entry.prompt == entry.counters.prompt == entry.counters.reused + entry.counters.evaluated
            found = await ledger.find(entry.id)
            verdict = await replay.replay(client, found)
            assert verdict.same, verdict
            assert verdict.counters.reused == 0
            assert verdict.counters.evaluated == entry.counters.prompt
        content = found.content
        assert content is not None
        assert content.generated
        pieces = vocabulary.load(Path(client.vocabulary[0])).pieces
        text = "".join(segment["text"] for segment in audit.explanation(found, pieces)["prompt"])
        assert text.startswith("<|fim_prefix|>")
        assert text.endswith("<|fim_middle|>") or "import" in text
        altered = msgspec.structs.replace(
            content, text=content.text[:3] + "§", generated=content.generated[:4] + b"\1\0\0\0"
        )
        other = await replay.replay(client, msgspec.structs.replace(found, content=altered))
        assert not other.same
        assert other.at == 3
        assert other.token == 1
        assert other.margin is not None


@pytest.mark.parametrize("stop", ["time", "superseded"])
async def test_an_answer_that_was_ended_early_is_compared_as_far_as_it_went(stop: str) -> None:
    script: Callable[[Submit], str] = lambda job: "price * 2 + 1"  # noqa: E731
    async with standing(script) as house:
        name = (await house.ask("POST", "/v1/complete", BODY)).json["id"]
        whole = await house.house.ledger.find(name)
        assert whole.content is not None
        replace = msgspec.structs.replace
        for text, same in (("price *", True), ("price /", False)):
            cut = replace(whole, stop=stop, content=replace(whole.content, text=text))
            verdict = await replay.replay(house.engine, cut)
            assert verdict.same == same
            assert ("as far as it went" in verdict.why) == same
