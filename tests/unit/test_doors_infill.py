"""llama-server's dialect as llama.vim and llama.vscode use it; every drop-in trap is a test."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.house import Reply, Standing, standing

from daemon.doors import several
from daemon.engine.frames import Submit
from daemon.nouns import Extra
from daemon.settings import Recall

SESSION = Path(__file__).parent.parent / "data" / "wire" / "llama_vim_session.jsonl"
FIELDS = [
    "content",
    "timings/prompt_n",
    "timings/prompt_ms",
    "timings/prompt_per_token_ms",
    "timings/prompt_per_second",
    "timings/predicted_n",
    "timings/predicted_ms",
    "timings/predicted_per_token_ms",
    "timings/predicted_per_second",
    "truncated",
    "tokens_cached",
]
VIM = re.compile(r'"content"\s*:"')
"""How llama.vim decides whether an answer holds a text."""


async def infill(house: Standing, **body: Any) -> Reply:
    return await house.ask(
        "POST", "/infill", {"input_prefix": "a\n", "prompt": "b", "input_suffix": "\nc", **body}
    )


async def test_the_whole_reply() -> None:
    async with standing("one\ntwo") as house:
        reply = await infill(house)
        answer = reply.json
        assert answer["content"] == "one\ntwo"
        assert (answer["stop"], answer["stop_type"], answer["stopping_word"]) == (True, "eos", "")
        assert answer["has_new_line"] is True
        assert answer["truncated"] is False
        assert (answer["id_slot"], answer["index"], answer["tokens"]) == (0, 0, [])
        assert (answer["model"], answer["prompt"]) == ("scripted", "a\nb")
        assert answer["tokens_predicted"] == 2
        assert answer["tokens_evaluated"] == answer["timings"]["prompt_n"] + answer["timings"]["cache_n"] > 0
        assert answer["tokens_cached"] == answer["tokens_evaluated"] + 2
        assert answer["timings"].keys() >= {f.split("/")[1] for f in FIELDS if "/" in f}
        assert answer["generation_settings"]["temperature"] == 0.0
        asked = house.pipeline.requests[0]
        assert (asked.prefix, asked.suffix, asked.path) == ("a\nb", "\nc", None)


async def test_prompt_n_counts_evaluated_tokens() -> None:
    async with standing() as house:
        await infill(house)
        again = (await infill(house, prompt="b.c")).json
        assert again["timings"]["prompt_n"] == 2, "the two new characters that are not healed"
        assert again["timings"]["cache_n"] == again["tokens_evaluated"] - 2


async def test_compact_json_on_one_line() -> None:
    async with standing('say "hi"\n') as house:
        for fields in (None, FIELDS):
            raw = (await infill(house, response_fields=fields)).body.decode()
            assert raw.startswith("{")
            assert "\n" not in raw
            assert '"content":"' in raw


async def test_response_fields_are_flattened_to_one_key() -> None:
    async with standing() as house:
        answer = (await infill(house, response_fields=[*FIELDS, "timings/none", "content/x", "none"])).json
        assert list(answer) == FIELDS
        assert (await infill(house, response_fields=[""])).json == {}
        assert (await infill(house, response_fields=["timings"])).json["timings"]["prompt_n"] >= 0
        assert "timings" in (await infill(house, response_fields=[])).json


@pytest.mark.parametrize("when", [[1, 2], 3, 4.5, "now", None, {"a": 1}])
async def test_the_time_of_a_chunk_may_be_anything(when: Any) -> None:
    async with standing() as house:
        extra = [
            {"text": "x = 1", "time": when, "filename": "a.py"},
            {"text": "y", "filename": None},
            {"text": ""},
        ]
        assert (await infill(house, input_extra=extra, unknown=[{}], lora=[{"id": 0}])).status == 200
        assert house.pipeline.requests[0].extras == (Extra(text="x = 1", filename="a.py"), Extra(text="y"))


async def test_a_warm_up() -> None:
    async with standing() as house:
        warm = await infill(house, n_predict=0, samplers=[], t_max_predict_ms=1, response_fields=[""])
        assert (warm.status, warm.json) == (200, {})
        assert house.pipeline.requests[0].warm
        assert (await infill(house, n_predict=0)).json["content"] == ""


async def test_limits() -> None:
    async with standing() as house:
        defaults = house.house.settings.complete
        await infill(house, n_predict=-1, n_indent=0, t_max_predict_ms=250)
        await infill(house, n_predict=128, n_indent=4, t_max_predict_ms=90_000, stop="\n")
        await infill(
            house, n_predict=12.0, n_indent=-1, t_max_predict_ms=-1, stop=["a", ""], cache_prompt=False
        )
        await infill(house, n_predict=None, stop=None, stream=None, temperature=None, seed=-1, lines="line")
        await infill(house, n_predict=2**31, temperature=0.7, top_k=5, top_p=0.99, seed=2**32 + 9)
        one, two, three, four, five = house.pipeline.requests
        assert (one.limits.tokens, one.limits.indent) == (defaults.max_tokens, None)
        assert (one.limits.milliseconds, one.limits.milliseconds_after_line) == (defaults.time_ms, 250)
        assert (two.limits.tokens, two.limits.indent, two.limits.stop) == (128, 4, ("\n",))
        assert (two.limits.milliseconds, two.limits.milliseconds_after_line) == (90_000, 90_000)
        assert (three.limits.tokens, three.limits.milliseconds_after_line) == (12, None)
        assert (three.limits.stop, three.limits.indent, three.cache) == (("a",), None, False)
        assert (four.limits.lines, four.limits.stop, four.sampling.temperature) == ("line", (), 0.0)
        assert (four.sampling.seed, four.cache) == (0, True)
        assert (five.limits.tokens, five.sampling.temperature) == (4096, 0.7)
        assert (five.sampling.top_k, five.sampling.top_p, five.sampling.seed) == (5, 0.99, 9)


@pytest.mark.parametrize(
    ("body", "kind", "word"),
    [
        ({"stop": ["two"]}, "word", "two"),
        ({"n_predict": 1}, "limit", ""),
        ({"lines": "line"}, "limit", ""),
        ({"n_predict": 0}, "limit", ""),
        ({}, "eos", ""),
    ],
)
async def test_stop_types(body: dict[str, Any], kind: str, word: str) -> None:
    async with standing("one\ntwo") as house:
        answer = (await infill(house, **body)).json
        assert (answer["stop_type"], answer["stopping_word"]) == (kind, word)


async def test_a_stream() -> None:
    async with standing("one two three") as house:
        *pieces, last = (await infill(house, stream=True)).events
        assert "".join(piece["content"] for piece in pieces) == "one two three"
        assert all(piece["stop"] is False for piece in pieces)
        assert (last["stop"], last["content"], last["stop_type"]) == (True, "", "eos")
        assert last["timings"]["predicted_n"] == 3


def by_seed(job: Submit) -> str:
    return ["zero", "one", "one", "three"][job.sampling.seed]


async def test_alternatives_are_an_array_of_different_texts() -> None:
    async with standing(by_seed) as house:
        answers = (await infill(house, n_cmpl=4)).json
        assert [answer["content"] for answer in answers] == ["zero", "one", "three"]
        assert [answer["index"] for answer in answers] == [0, 1, 2]
        first, *others = house.pipeline.requests
        assert first.sampling.temperature == 0.0
        assert {(asked.sampling.temperature, asked.client) for asked in others} == {(0.4, first.client)}
        assert [asked.sampling.seed for asked in others] == [1, 2, 3]
        assert all(asked.alternative and asked.limits.deadline for asked in others)
        assert {job.lane for job in house.engine.jobs} == {"keystroke", "alternative"}
        assert len({asked.id for asked in house.pipeline.requests}) == 4


async def test_an_answer_that_is_known_has_no_alternatives_to_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(several, "KNOWN_S", 5.0)  # this machine may be busy
    async with standing(by_seed, recall=Recall(prefetch=False)) as house:
        assert len((await infill(house, n_cmpl=4)).json) == 3
        house.engine.hold()
        assert [answer["content"] for answer in (await infill(house, n_cmpl=4)).json] == ["zero"]
        assert len(house.engine.jobs) == 4


async def test_nothing_after_the_cursor_is_ever_replaced() -> None:
    async with standing('"a", b).run()') as house:
        body = {"input_prefix": "x = f(", "input_suffix": ")\n"}
        content = (await house.ask("POST", "/infill", body)).json["content"]
        native = {"prefix": "x = f(", "suffix": ")\n"}
        answer = (await house.ask("POST", "/v1/complete", native)).json
        assert answer["replace"]["end"] > answer["replace"]["start"]
        insert = (await house.ask("POST", "/v1/complete", {**native, "replaces": False})).json
        assert insert["replace"]["end"] == insert["replace"]["start"]
        assert content == insert["text"] == '"a", b'


async def test_one_alternative_is_an_object_and_a_warm_up_has_none() -> None:
    async with standing() as house:
        assert isinstance((await infill(house, n_cmpl=1)).json, dict)
        assert (await infill(house, n_cmpl=3, n_predict=0, response_fields=[""])).json == [{}]
        assert len(house.pipeline.requests) == 2


async def test_a_superseded_request_answers_empty() -> None:
    import asyncio

    async with standing() as house:
        house.engine.hold()
        older = asyncio.create_task(infill(house, n_cmpl=3))
        await house.engine.until(lambda: len(house.engine.jobs) == 3)
        newer = asyncio.create_task(infill(house, prompt="c"))
        reply = await older
        assert reply.status == 200
        assert [answer["content"] for answer in reply.json] == [""]
        assert reply.json[0]["stop_type"] == "none"
        house.engine.go_on()
        assert (await newer).json["content"] == "answer()"
        assert [house.engine.ends[job.id] for job in house.engine.jobs[:3]] == ["superseded"] * 3


async def test_clients_are_told_apart() -> None:
    async with standing() as house:
        body = {"input_prefix": "x"}
        await house.ask("POST", "/infill", body, {"User-Agent": "curl/7"})
        await house.ask("POST", "/infill", body, {"x-client-id": "win-2"})
        await house.ask("POST", "/infill", {**body, "client": "c" * 999})
        keys = [asked.client for asked in house.pipeline.requests]
        assert keys == ["infill:curl/7", "win-2", "c" * 200]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"input_prefix": 5}, "$.input_prefix"),
        ({"prompt": [1, 2]}, "$.prompt"),
        ({"input_extra": {"text": "x"}}, "$.input_extra"),
        ({"input_extra": [{"text": 1}]}, "$.input_extra[0].text"),
        ({"n_predict": "many"}, "$.n_predict"),
        ({"n_predict": 1e300}, "n_predict"),
        ({"stop": [5]}, "$.stop"),
        ({"temperature": "hot"}, "$.temperature"),
        ({"response_fields": "content"}, "$.response_fields"),
    ],
)
async def test_wrong_types_are_named(body: dict[str, Any], named: str) -> None:
    async with standing() as house:
        reply = await infill(house, **body)
        assert reply.status == 400
        assert named in reply.json["error"]["message"]


async def test_an_empty_body_of_fields_is_answered() -> None:
    async with standing() as house:
        assert (await house.ask("POST", "/infill", {})).json["content"] == "answer()"


async def test_health_and_facts_while_loading_and_after() -> None:
    async with standing(loaded=False) as house:
        health = await house.ask("GET", "/health")
        assert health.status == 503
        loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
        assert health.json == loading
        assert (await house.ask("GET", "/props")).status == 503
        assert (await house.ask("GET", "/slots")).status == 503
        assert (await house.ask("GET", "/v1/models")).json["data"] == []
        house.engine.loaded = True
        assert (await house.ask("GET", "/health")).json == {"status": "ok"}
        props = (await house.ask("GET", "/props")).json
        assert props["default_generation_settings"]["n_ctx"] == 8192
        assert (props["total_slots"], props["model_path"]) == (1, "scripted")
        assert (await house.ask("GET", "/slots")).json[0]["is_processing"] is False
        model = (await house.ask("GET", "/v1/models")).json["data"][0]
        assert (model["id"], model["object"], model["created"]) == ("scripted", "model", 2)


async def test_the_recorded_session_is_answered_as_llama_vim_needs_it() -> None:
    records = [json.loads(line) for line in SESSION.read_text(encoding="utf-8").splitlines()]
    assert len(records) == 51
    async with standing("return total\n") as house:
        for record in records:
            headers = {"User-Agent": record["headers"]["User-Agent"], "Authorization": "Bearer "}
            reply = await house.ask(record["method"], record["path"], record["body"], headers)
            assert reply.status == 200
            raw = reply.body.decode()
            assert raw.startswith("{")
            assert list(reply.json) == [field for field in record["body"]["response_fields"] if field]
            if record["body"]["n_predict"]:
                assert VIM.search(raw)
        assert [asked.warm for asked in house.pipeline.requests] == [False] * 50 + [True]
        assert house.metrics.total("requests", "infill") == 51
        assert house.metrics.total("refused") == 0
