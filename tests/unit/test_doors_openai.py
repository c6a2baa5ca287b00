"""OpenAI's and Mistral's calls as Continue, minuet, Zed and strict clients make them."""

import asyncio
from typing import Any

import pytest
from support.house import Reply, Standing, head_and_body, read_reply, standing

from daemon.engine.frames import Submit
from daemon.nouns import Extra
from daemon.settings import Server

RENDERED = "<|fim_prefix|>def f():\n    <|fim_suffix|>\n<|fim_middle|>"
PATHS = ["/v1/completions", "/fim/completions", "/v1/fim/completions"]


async def ask(house: Standing, path: str = "/v1/completions", **body: Any) -> Reply:
    return await house.ask("POST", path, {"model": "any", "prompt": "a\nb", "suffix": "\nc", **body})


async def test_the_whole_object_for_strict_clients() -> None:
    async with standing("one\ntwo") as house:
        reply = await ask(house)
        answer = reply.json
        assert b'"text":"one\\ntwo"' in reply.body
        assert (answer["object"], answer["model"]) == ("text_completion", "scripted")
        assert answer["id"].startswith("cmpl-")
        assert isinstance(answer["created"], int)
        (choice,) = answer["choices"]
        assert (choice["index"], choice["finish_reason"], choice["logprobs"]) == (0, "stop", None)
        usage = answer["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert usage["completion_tokens"] == 2
        (asked,) = house.pipeline.requests
        assert (asked.prefix, asked.suffix, asked.door) == ("a\nb", "\nc", "openai")
        assert (asked.context, asked.replaces, asked.rendered) == ("auto", False, "")


async def test_a_stream_ends_in_done() -> None:
    async with standing("one two three") as house:
        reply = await ask(house, stream=True)
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.body.endswith(b"\n\ndata: [DONE]\n\n")
        *pieces, last = reply.events
        assert "".join(piece["choices"][0]["text"] for piece in pieces) == "one two three"
        assert {piece["choices"][0]["finish_reason"] for piece in pieces} == {None}
        assert last["choices"][0]["text"] == ""
        assert last["choices"][0]["finish_reason"] == "stop"
        assert len({event["id"] for event in reply.events}) == 1
        assert not any("usage" in event for event in reply.events)


async def test_usage_of_a_stream_when_it_is_asked_for() -> None:
    async with standing("one two") as house:
        events = (await ask(house, stream=True, stream_options={"include_usage": True})).events
        *others, last = events
        assert all(event["usage"] is None and len(event["choices"]) == 1 for event in others)
        assert last["choices"] == []
        assert last["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize("path", PATHS[1:])
async def test_mistral_shapes(path: str) -> None:
    async with standing("one two") as house:
        answer = (await ask(house, path)).json
        assert answer["object"] == "chat.completion"
        assert answer["choices"][0]["message"]["content"] == "one two"
        assert answer["usage"]["completion_tokens"] == 2
        *pieces, last = (await ask(house, path, stream=True, random_seed=7)).events
        assert "".join(piece["choices"][0]["delta"]["content"] for piece in pieces) == "one two"
        assert last["object"] == "chat.completion.chunk"
        assert last["choices"][0]["delta"]["content"] == ""
        assert (last["choices"][0]["finish_reason"], last["usage"]["completion_tokens"]) == ("stop", 2)
        assert [(asked.door, asked.sampling.seed) for asked in house.pipeline.requests] == [
            ("fim", 0),
            ("fim", 7),
        ]


def by_seed(job: Submit) -> str:
    return ["zero", "one", "one", "three"][job.sampling.seed]


async def test_n_texts_that_differ() -> None:
    async with standing(by_seed) as house:
        choices = (await ask(house, n=4)).json["choices"]
        assert [choice["text"] for choice in choices] == ["zero", "one", "three"]
        assert [choice["index"] for choice in choices] == [0, 1, 2]
        events = (await ask(house, n=4, stream=True)).events
        texts = ["", "", ""]
        for event in events:
            (choice,) = event["choices"]
            texts[choice["index"]] += choice["text"]
        assert texts == ["zero", "one", "three"]
        assert sum(event["choices"][0]["finish_reason"] is not None for event in events) == 3


@pytest.mark.parametrize(
    ("body", "reason", "text"),
    [
        ({"stop": "two"}, "stop", "one\n"),
        ({"stop": ["x", "\n"]}, "stop", "one"),
        ({"stop": None, "max_tokens": 1}, "length", "one"),
        ({"stop": [], "max_tokens": -1}, "stop", "one\ntwo"),
        ({"max_tokens": 0}, "stop", ""),
        ({"stop": [None, "two"]}, "stop", "one\n"),
    ],
)
async def test_ends(body: dict[str, Any], reason: str, text: str) -> None:
    async with standing("one\ntwo") as house:
        (choice,) = (await ask(house, lines="free", **body)).json["choices"]
        assert (choice["finish_reason"], choice["text"]) == (reason, text)


async def test_what_is_unknown_odd_or_null_is_no_matter() -> None:
    async with standing() as house:
        odd = {
            "best_of": 3, "user": 5, "logit_bias": [], "frequency_penalty": "x", "presence_penalty": None,
            "echo": False, "logprobs": None, "temperature": None, "top_p": None, "n": None, "seed": None,
            "stream": None, "stream_options": None, "max_tokens": None, "tools": {}, "model": None,
        }  # fmt: skip
        for path in PATHS:
            assert (await ask(house, path, **odd)).status == 200
        first = house.pipeline.requests[0]
        assert (first.sampling.temperature, first.limits.tokens) == (0.0, 64)


async def test_any_bearer_is_good_while_no_token_is_set() -> None:
    async with standing() as house:
        body = {"prompt": "x"}
        for bearer in ("Bearer undefined", "Bearer ", "Bearer", "Basic x"):
            reply = await house.ask("POST", "/v1/completions", body, {"Authorization": bearer})
            assert reply.status == 200
    async with standing(server=Server(port=0, token="t")) as house:
        reply = await house.ask(
            "POST", "/v1/completions", {"prompt": "x"}, {"Authorization": "Bearer undefined"}
        )
        assert (reply.status, reply.json["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("body", "prefix", "suffix"),
    [
        ({"prompt": "", "suffix": "\nx = 1\n"}, "", "\nx = 1\n"),
        ({"prompt": None, "suffix": "\nx"}, "", "\nx"),
        ({"prompt": ["only"], "suffix": None}, "only", ""),
        ({"prompt": "", "suffix": ""}, "", ""),
        ({"prompt": [], "suffix": ""}, "", ""),
        ({"prompt": "a\r\nb", "suffix": "\r\nc"}, "a\nb", "\nc"),
        ({"prompt": RENDERED, "suffix": ""}, "def f():\n    ", "\n"),
        ({"prompt": [RENDERED], "suffix": None}, "def f():\n    ", "\n"),
        ({"prompt": RENDERED, "suffix": "\nx"}, RENDERED, "\nx"),
        ({"prompt": "x = '<|fim_prefix|>'", "suffix": None}, "x = '<|fim_prefix|>'", ""),
    ],
)
async def test_where_the_cursor_is(body: dict[str, Any], prefix: str, suffix: str) -> None:
    async with standing() as house:
        assert (await ask(house, **body)).status == 200
        (asked,) = house.pipeline.requests
        assert (asked.prefix, asked.suffix) == (prefix, suffix)
        control = {
            token for job in house.engine.jobs for token in memoryview(job.tokens).cast("i") if token > 255
        }
        assert control <= {256, 257, 258}, "markers come from our own layout alone"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"prompt": None, "suffix": None}, "`prompt`"),
        ({"prompt": ["a", "b"]}, "several texts"),
        ({"prompt": [1, 2]}, "token ids"),
        ({"prompt": [[1]]}, "token ids"),
        ({"prompt": [None]}, "`prompt`"),
        ({"prompt": 5}, "$.prompt"),
        ({"prompt": None, "messages": [{"role": "user", "content": "hi"}]}, "chat"),
        ({"messages": []}, "chat"),
        ({"echo": True}, "`echo`"),
        ({"logprobs": 3}, "`logprobs`"),
        ({"max_tokens": "many"}, "$.max_tokens"),
        ({"n": 1e300}, "`n`"),
        ({"stop": ["x"] * 65}, "`stop`"),
    ],
)
async def test_what_is_refused_says_why(path: str, body: dict[str, Any], named: str) -> None:
    async with standing() as house:
        reply = await ask(house, path, **body)
        assert reply.status == 400
        error = reply.json["error"]
        assert named in error["message"]
        assert (error["param"], error["code"], error["type"]) == (None, "invalid_request", "invalid_request")
        assert not house.engine.jobs


async def test_a_chat_is_refused_in_words() -> None:
    async with standing() as house:
        for path in ("/v1/chat/completions", "/chat/completions"):
            reply = await house.ask("POST", path, {"messages": []})
            assert reply.status == 400
            assert "does not chat" in reply.json["error"]["message"]


async def test_failures_before_and_within_a_stream() -> None:
    async with standing(loaded=False) as house:
        reply = await ask(house, stream=True)
        assert (reply.status, reply.json["error"]["code"]) == (503, "unavailable")
    async with standing("one two") as house:
        house.pipeline.refuse = True
        reply = await ask(house)
        assert (reply.status, reply.json["error"]["code"]) == (501, "not_supported")
        assert "/home" not in reply.json["error"]["message"]


async def test_three_twins_share_one_run() -> None:
    async with standing("one two") as house:
        house.engine.hold()
        twins = [
            asyncio.create_task(
                house.ask("POST", "/v1/completions", {"prompt": "a", "suffix": "b"}, {"User-Agent": "curl/8"})
            )
            for _ in range(3)
        ]
        await house.engine.until(lambda: len(house.pipeline.requests) == 3 and len(house.engine.jobs) == 1)
        house.engine.go_on()
        replies = [(await twin).json for twin in twins]
        assert [reply["choices"][0]["text"] for reply in replies] == ["one two"] * 3
        assert len(house.engine.jobs) == 1
        assert all(reply["usage"]["prompt_tokens"] > 0 for reply in replies)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("n", [1, 3])
async def test_a_dropped_connection_ends_the_work(streaming: bool, n: int) -> None:
    async with standing("word " * 1000) as house:
        house.engine.hold()
        _, writer = await house.connect()
        body = {"prompt": "x", "stream": streaming, "n": n}
        writer.write(head_and_body("POST", "/v1/completions", body))
        await house.engine.until(lambda: len(house.engine.jobs) == n)
        writer.transport.abort()
        await house.engine.until(lambda: len(house.engine.ends) == n)
        assert set(house.engine.ends.values()) == {"cancelled"}
        async with asyncio.timeout(5):
            await house.traffic.empty.wait()


async def test_what_is_superseded_shows_nothing() -> None:
    async with standing() as house:
        house.engine.hold()
        older = asyncio.create_task(ask(house))
        await house.engine.until(lambda: len(house.engine.jobs) == 1)
        newer = asyncio.create_task(ask(house, prompt="elsewhere"))
        (choice,) = (await older).json["choices"]
        assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("", "stop", "superseded")
        house.engine.go_on()
        assert (await newer).json["choices"][0]["text"] == "answer()"


async def test_a_kept_connection_serves_one_call_after_another() -> None:
    async with standing("one two") as house:
        reader, writer = await house.connect()
        for streaming in (True, False, True):
            writer.write(head_and_body("POST", "/v1/completions", {"prompt": "x", "stream": streaming}))
            assert (await read_reply(reader)).status == 200
        writer.close()


async def test_other_files_of_a_rendered_prompt_are_context() -> None:
    async with standing() as house:
        prompt = f"<|repo_name|>r\n<|file_sep|>lib/a.py\nA = 1\n<|file_sep|>src/b.py\n{RENDERED}"
        assert (await ask(house, prompt=prompt, suffix=None)).status == 200
        (asked,) = house.pipeline.requests
        assert (asked.path, asked.prefix) == ("src/b.py", "def f():\n    ")
        assert asked.extras == (Extra(text="A = 1\n", filename="lib/a.py"),)
        assert house.metrics.total("rendered", "qwen") == 1
