"""llama-server's `/completion`, prompts that are evaluated as sent, and who else asks about one document."""

import asyncio
from typing import Any

import pytest
from support.house import Reply, Standing, standing
from support.scripted import VOCABULARY

from daemon.settings import Doors

P, S = "def f(x):\n    return ", "\n\nprint(f(1))\n"
RENDERED = f"<|fim_prefix|>{P}<|fim_suffix|>{S}<|fim_middle|>"
OFF, ON = {"X-Foretype-Context": "off"}, {"X-Foretype-Context": " On "}


async def completion(house: Standing, path: str = "/completion", **body: Any) -> Reply:
    return await house.ask("POST", path, {"prompt": RENDERED, **body}, {"Authorization": "Bearer undefined"})


def ids(text: str) -> list[int]:
    """Of a rendered prompt, by hand: a byte is a token, and every name its control id."""
    for name, token in VOCABULARY.control.items():
        text = text.replace(name, chr(0xE000 + token))
    return [t for c in text for t in ([ord(c) - 0xE000] if ord(c) >= 0xE000 else c.encode())]


def evaluated(house: Standing) -> list[int]:
    return list(memoryview(house.engine.jobs[-1].tokens).cast("i"))


@pytest.mark.parametrize("path", ["/completion", "/completions"])
async def test_the_whole_reply_and_the_stream(path: str) -> None:
    async with standing("one two") as house:
        answer = (await completion(house, path, n_predict=8)).json
        assert (answer["content"], answer["stop"], answer["stop_type"]) == ("one two", True, "eos")
        assert (answer["prompt"], answer["model"]) == (RENDERED, "scripted")
        assert answer["timings"]["predicted_n"] == answer["tokens_predicted"] == 2
        *pieces, last = (await completion(house, path, stream=True)).events
        assert "".join(piece["content"] for piece in pieces) == "one two"
        assert (last["content"], last["stop"]) == ("", True)
        assert (await completion(house, path, response_fields=["content"])).json == {"content": "one two"}
        asked = house.pipeline.requests[0]
        assert (asked.prefix, asked.suffix, asked.door, asked.limits.tokens) == (P, S, "completion", 8)


async def test_several_and_none() -> None:
    async with standing(lambda job: f"text {job.sampling.seed}") as house:
        answers = (await completion(house, n_cmpl=3)).json
        assert [answer["content"] for answer in answers] == ["text 0", "text 1", "text 2"]
        assert (await completion(house, n_predict=0)).json["content"] == ""
        assert house.pipeline.requests[-1].warm


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"prompt": None}, "`prompt`"),
        ({"prompt": ["a", "b"]}, "several texts"),
        ({"prompt": [1, 2, 3]}, "token ids"),
        ({"prompt": {"prompt_string": "x"}}, "$.prompt"),
        ({"messages": []}, "chat"),
        ({"n_predict": "many"}, "$.n_predict"),
    ],
)
async def test_what_is_refused_says_why(body: dict[str, Any], named: str) -> None:
    async with standing() as house:
        reply = await completion(house, **body)
        assert (reply.status, reply.json["error"]["code"]) == (400, 400)
        assert named in reply.json["error"]["message"]


async def test_odd_fields_are_no_matter() -> None:
    async with standing() as house:
        odd = {
            "mirostat": "x",
            "logit_bias": 5,
            "id_slot": None,
            "grammar": None,
            "n_probs": [],
            "image_data": {},
        }
        assert (await completion(house, **odd, stop=None, cache_prompt=None)).status == 200


CALLS = [
    ("/completion", {"prompt": RENDERED, "n_predict": 9}),
    ("/v1/completions", {"prompt": RENDERED, "max_tokens": 9}),
    ("/fim/completions", {"prompt": RENDERED, "suffix": "", "max_tokens": 9}),
    ("/api/generate", {"prompt": RENDERED, "raw": True, "stream": False, "options": {"num_predict": 9}}),
]


@pytest.mark.parametrize(("path", "body"), CALLS)
async def test_as_sent_by_header(path: str, body: dict[str, Any]) -> None:
    async with standing("one\ntwo\nthree") as house:
        ours = await house.ask("POST", path, body)
        assert evaluated(house) != ids(RENDERED), "our own order"
        reply = await house.ask("POST", path, body, OFF)
        assert (ours.status, reply.status) == (200, 200)
        assert evaluated(house) == ids(RENDERED)
        job = house.engine.jobs[-1]
        assert (job.must, job.limits.lines, job.limits.tokens) == (b"", "free", 9)
        asked = house.pipeline.requests[-1]
        assert (asked.prefix, asked.suffix, asked.context, asked.rendered) == (P, S, "none", RENDERED)
        assert "three" in reply.body.decode()
        assert house.metrics.total("rendered", "as sent") == 1


async def test_as_sent_by_setting_concerns_rendered_prompts_alone() -> None:
    async with standing(doors=Doors(retemplate=False)) as house:
        await completion(house)
        assert evaluated(house) == ids(RENDERED)
        await completion(house, prompt="MARK = '<|fim_prefix|>'\nx")
        assert [token for token in evaluated(house) if token > 255] == [256, 258, 257]
        assert bytes(token for token in evaluated(house) if token < 256) == b"MARK = '<|fim_prefix|>'\n"
        await house.ask("POST", "/completion", {"prompt": RENDERED}, ON)
        assert evaluated(house) != ids(RENDERED)
        assert house.metrics.total("rendered") == 2


@pytest.mark.parametrize(
    "prompt",
    [
        "x = 1\ny = ",
        "<|im_start|>user\nhi<|im_end|>\n",
        "<|repo_name|>r\n<|file_sep|>a.py\nx\r\n<|fim_prefix|>",
        "é<|fim_prefix|><|fim_prefix|>é",
    ],
)
async def test_any_text_goes_as_sent_when_it_is_asked_for(prompt: str) -> None:
    async with standing() as house:
        reply = await house.ask("POST", "/completion", {"prompt": prompt}, OFF)
        assert reply.json["content"] == "answer()"
        assert evaluated(house) == ids(prompt)


async def test_with_a_suffix_the_header_only_leaves_our_context_out() -> None:
    async with standing() as house:
        for path, body in (
            ("/v1/completions", {"prompt": RENDERED, "suffix": "x"}),
            ("/infill", {"input_prefix": RENDERED, "input_suffix": "x"}),
        ):
            assert (await house.ask("POST", path, body, OFF)).status == 200
            asked = house.pipeline.requests[-1]
            assert (asked.context, asked.rendered, asked.prefix) == ("none", "", RENDERED)
            control = [token for token in evaluated(house) if token > 255]
            assert control == [256, 258, 257]


async def test_a_prompt_beyond_the_context_is_refused() -> None:
    async with standing() as house:
        reply = await house.ask("POST", "/completion", {"prompt": "x" * 9000}, OFF)
        assert (reply.status, "does not fit" in reply.json["error"]["message"]) == (501, True)


async def test_what_was_sent_is_counted_and_remembered() -> None:
    async with standing() as house:
        await house.ask("POST", "/completion", {"prompt": RENDERED}, OFF)
        native = {"prefix": P, "suffix": S, "client": "other"}
        answer = (await house.ask("POST", "/v1/complete", native)).json
        assert answer["counters"]["prompt"] == sum(segment["tokens"] for segment in answer["segments"])
        assert answer["reason"] != "as the client rendered it"


async def test_all_dialects_ask_for_one_document_at_once() -> None:
    async with standing("one two") as house:
        house.engine.hold()
        calls = [
            *CALLS,
            ("/v1/complete", {"prefix": P, "suffix": S, "max_tokens": 9, "replaces": False}),
            (
                "/infill",
                {"input_prefix": "def f(x):\n", "prompt": "    return ", "input_suffix": S, "n_predict": 9},
            ),
        ]
        asked = [
            asyncio.create_task(house.ask("POST", path, {**body, "path": "/shop/a.py"}))
            for path, body in calls
        ]
        await house.engine.until(lambda: len(house.pipeline.requests) == len(calls))
        house.engine.go_on()
        replies = [await task for task in asked]
        assert {reply.status for reply in replies} == {200}
        assert all(b"one two" in reply.body for reply in replies)
        assert len(house.engine.jobs) == 1, "six clients, one run"
        assert {request.door for request in house.pipeline.requests} == {
            "completion", "openai", "fim", "ollama", "native", "infill",
        }  # fmt: skip


async def test_the_path_of_a_rendered_prompt_is_completed_by_what_is_open() -> None:
    text = "".join(f"def area_{n}(radius):\n    return radius * {n} + offset_{n}\n\n" for n in range(9))
    here = text.index("offset_4")
    prompt = f"<|file_sep|>src/area.py\n<|fim_prefix|>{text[:here]}<|fim_suffix|>{text[here:]}<|fim_middle|>"
    async with standing() as house:
        opened = {"event": "open", "path": "/shapes/src/area.py", "text": text, "client": "editor"}
        assert (await house.ask("POST", "/v1/documents", opened)).status == 200
        async with asyncio.timeout(10):
            while not house.metrics.total("path", "recovered"):  # it is looked for beside the loop
                assert (await completion(house, prompt=prompt)).status == 200
        (entry,) = await house.house.ledger.last(1)
        assert entry.path == "/shapes/src/area.py"
        assert house.pipeline.requests[-1].path == "src/area.py"
