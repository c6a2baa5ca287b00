"""Ollama's dialect as Continue, Zed and twinny speak it."""

import asyncio
from datetime import datetime
from typing import Any

import msgspec
import pytest
from support.house import Reply, Standing, head_and_body, standing
from support.scripted import PROFILE

from daemon.machine import FimIds
from daemon.settings import Server

RENDERED = "<fim_prefix>def f():\n    <fim_suffix>\n<fim_middle>"
NUMBERS = {
    "total_duration", "load_duration",
    "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration",
}  # fmt: skip


async def generate(house: Standing, **body: Any) -> Reply:
    return await house.ask("POST", "/api/generate", {"model": "qwen2.5-coder:3b", "prompt": "a\nb", **body})


async def test_one_object() -> None:
    async with standing("one\ntwo") as house:
        reply = await generate(house, suffix="\nc", stream=False)
        assert reply.headers["content-type"].startswith("application/json")
        answer = reply.json
        assert (answer["response"], answer["done"], answer["done_reason"]) == ("one\ntwo", True, "stop")
        assert answer["model"] == "scripted"
        assert datetime.fromisoformat(answer["created_at"]).tzinfo is not None
        assert all(isinstance(answer[name], int) for name in NUMBERS)
        assert (answer["eval_count"], answer["context"]) == (2, [])
        assert answer["prompt_eval_count"] > 0
        (asked,) = house.pipeline.requests
        assert (asked.prefix, asked.suffix, asked.door) == ("a\nb", "\nc", "ollama")


async def test_lines_unless_the_client_wants_none() -> None:
    async with standing("one two three") as house:
        for stream in ({}, {"stream": True}, {"stream": None}):
            reply = await generate(house, **stream)
            assert reply.headers["content-type"] == "application/x-ndjson"
            assert reply.body.endswith(b"}\n")
            *pieces, last = reply.lines
            assert "".join(piece["response"] for piece in pieces) == "one two three"
            assert not any(piece["done"] for piece in pieces)
            assert (last["done"], last["response"], last["done_reason"]) == (True, "", "stop")
            assert last.keys() >= NUMBERS


async def test_options() -> None:
    async with standing("one\ntwo") as house:
        plain = {"num_predict": 7, "temperature": 0.2, "top_p": 0.5, "top_k": 3, "seed": 9, "stop": ["\n"]}
        odd = {
            "num_ctx": 8192,
            "num_thread": None,
            "mirostat": "x",
            "use_mmap": [],
            "num_predict": -1,
            "seed": None,
        }
        assert (await generate(house, options=plain, stream=False)).json["response"] == "one"
        assert (await generate(house, options=odd, stream=False)).status == 200
        assert (await generate(house, options={"stop": "two"}, stream=False)).json["response"] == "one"
        first, second, _ = house.pipeline.requests
        assert (first.limits.tokens, first.limits.stop) == (7, ("\n",))
        assert (first.sampling.temperature, first.sampling.top_p) == (0.2, 0.5)
        assert (first.sampling.top_k, first.sampling.seed) == (3, 9)
        assert (second.limits.tokens, second.sampling.seed) == (64, 0)
        short = await generate(house, options={"num_predict": 1}, lines="free", stream=False)
        assert (short.json["response"], short.json["done_reason"]) == ("one", "length")


@pytest.mark.parametrize("keep", [1800, "5m", -1, None, {}, []])
async def test_what_is_odd_or_unknown_is_no_matter(keep: Any) -> None:
    async with standing() as house:
        odd = {"keep_alive": keep, "format": "", "context": [1], "images": None, "system": 5, "template": "x"}
        assert (await generate(house, **odd, raw=True, options=None, think=False, suffix=None)).status == 200


async def test_a_rendered_prompt_is_taken_apart() -> None:
    async with standing() as house:
        reply = await generate(house, prompt=RENDERED, raw=True, stream=False)
        assert reply.json["response"] == "answer()"
        (asked,) = house.pipeline.requests
        assert (asked.prefix, asked.suffix) == ("def f():\n    ", "\n")
        assert house.metrics.total("rendered", "starcoder") == 1


@pytest.mark.parametrize("body", [{"prompt": ""}, {"prompt": None}, {"prompt": "", "suffix": ""}])
async def test_no_text_loads_the_model(body: dict[str, Any]) -> None:
    async with standing() as house:
        for keep, reason in ((1800, "load"), (0, "unload")):
            reply = await generate(house, **body, keep_alive=keep)
            assert reply.headers["content-type"].startswith("application/json")
            assert (reply.json["done"], reply.json["response"], reply.json["done_reason"]) == (
                True,
                "",
                reason,
            )
        assert not house.pipeline.requests
    async with standing(loaded=False) as house:
        reply = await generate(house, **body)
        assert (reply.status, reply.json) == (503, {"error": "Loading model"})


async def test_only_a_suffix_is_a_question() -> None:
    async with standing() as house:
        assert (await generate(house, prompt="", suffix="\nx = 1", stream=False)).json[
            "response"
        ] == "answer()"
        (asked,) = house.pipeline.requests
        assert (asked.prefix, asked.suffix) == ("", "\nx = 1")


async def test_show_says_that_a_suffix_is_understood() -> None:
    async with standing() as house:
        for body in ({"name": "qwen2.5-coder:3b"}, {"model": "x", "verbose": True}, {}):
            facts = (await house.ask("POST", "/api/show", body)).json
            assert ".Suffix" in facts["template"]
            assert facts["capabilities"] == ["completion", "insert"]
            assert facts["parameters"] == "num_ctx 8192"
            assert facts["model_info"]["general.architecture"] == "script"
            assert facts["model_info"]["script.context_length"] == 8192
            assert facts["details"]["format"] == "gguf"
    async with standing(loaded=False) as house:
        facts = (await house.ask("POST", "/api/show", {"name": "x"})).json
        assert ".Suffix" in facts["template"], "a client asks once, and perhaps too early"


async def test_a_model_that_cannot_insert_does_not_say_so() -> None:
    async with standing() as house:
        replace = msgspec.structs.replace
        house.engine.made = replace(PROFILE, model=replace(PROFILE.model, fim=FimIds()))
        facts = (await house.ask("POST", "/api/show", {"name": "x"})).json
        assert (".Suffix" in facts["template"], facts["capabilities"]) == (False, ["completion"])


async def test_what_is_there() -> None:
    async with standing() as house:
        for path in ("/api/tags", "/api/ps"):
            (model,) = (await house.ask("GET", path)).json["models"]
            assert (model["name"], model["model"], model["digest"]) == ("scripted", "scripted", "0" * 64)
            assert datetime.fromisoformat(model.get("modified_at") or model["expires_at"]).tzinfo is not None
        assert (await house.ask("GET", "/api/version")).json["version"].count(".") == 2
    async with standing(loaded=False) as house:
        for path in ("/api/tags", "/api/ps"):
            assert (await house.ask("GET", path)).json == {"models": []}


@pytest.mark.parametrize(
    ("path", "body", "status", "named"),
    [
        ("/api/generate", {"prompt": 5}, 400, "$.prompt"),
        ("/api/generate", {"prompt": "x", "options": {"num_predict": "many"}}, 400, "$.options.num_predict"),
        ("/api/generate", {"messages": []}, 400, "chat"),
        ("/api/chat", {"messages": []}, 400, "does not chat"),
        ("/api/pull", {}, 404, "nothing at this address"),
    ],
)
async def test_errors_are_a_text(path: str, body: dict[str, Any], status: int, named: str) -> None:
    async with standing() as house:
        reply = await house.ask("POST", path, body)
        assert (reply.status, list(reply.json)) == (status, ["error"])
        assert named in reply.json["error"]


async def test_the_guard_speaks_the_dialect_too() -> None:
    async with standing(server=Server(port=0, token="t")) as house:
        assert (await generate(house)).json == {
            "error": "The token is missing or wrong. Send `Authorization: Bearer <server.token>`"
        }
    async with standing() as house:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        reply = await house.ask("POST", "/api/generate", {"prompt": "x"}, form)
        assert (reply.status, list(reply.json)) == (415, ["error"])


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_dropped_connection_ends_the_work(streaming: bool) -> None:
    async with standing("word " * 1000) as house:
        house.engine.hold()
        _, writer = await house.connect()
        writer.write(head_and_body("POST", "/api/generate", {"prompt": "x", "stream": streaming}))
        await house.engine.until(lambda: len(house.engine.jobs) == 1)
        writer.transport.abort()
        await house.engine.until(lambda: bool(house.engine.ends))
        assert set(house.engine.ends.values()) == {"cancelled"}


async def test_the_end_of_the_daemon_is_told_in_a_line() -> None:
    async with standing("word " * 1000) as house:
        house.engine.hold_after = 5
        asked = asyncio.create_task(generate(house, lines="free"))
        await house.engine.until(lambda: house.engine.held)
        await house.served.close()
        *_, last = (await asked).lines
        assert (last["done"], last["done_reason"]) == (True, "stop")
