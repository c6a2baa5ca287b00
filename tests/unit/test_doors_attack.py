"""Bodies that no honest client sends, at the doors of every dialect: refused in its shape, or answered."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import Any, NamedTuple

import msgspec
import pytest
from support.house import Reply, Standing, head_and_body, standing
from support.scripted import VOCABULARY

from daemon.doors import completion, feedback, infill, native, ollama, openai, tabby
from daemon.doors import documents as mirrored
from indexer.tokens import to_ids

MARKS = "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>c<|file_sep|>d"


class Door(NamedTuple):
    """`text` names the field that holds a document, `kinds` what its bodies are."""

    path: str
    body: dict[str, Any]
    kind: Any
    text: str = ""
    stream: str = ""
    """The field that asks for a stream."""


DOORS = {
    "infill": Door(
        "/infill", {"input_prefix": "x = ", "input_suffix": "\n"}, infill.Ask, "input_prefix", "stream"
    ),
    "completion": Door("/completion", {"prompt": "x = "}, completion.Ask, "prompt", "stream"),
    "openai": Door("/v1/completions", {"prompt": "x = ", "suffix": "\n"}, openai.Ask, "prompt", "stream"),
    "fim": Door("/v1/fim/completions", {"prompt": "x = ", "suffix": "\n"}, openai.Ask, "prompt", "stream"),
    "ollama": Door("/api/generate", {"prompt": "x = ", "suffix": "\n"}, ollama.Ask, "prompt", "stream"),
    "tabby": Door("/v1/completions", {"segments": {"prefix": "x = "}}, tabby.Ask),
    "native": Door("/v1/complete", {"prefix": "x = ", "suffix": "\n"}, native.Ask, "prefix", "stream"),
    "show": Door("/api/show", {"name": "x"}, ollama.Ask),
    "events": Door("/v1/events", {"type": "view", "completion_id": "x"}, tabby.Event),
    "feedback": Door("/v1/feedback", {"id": "x", "kind": "shown"}, feedback.Told),
    "documents": Door("/v1/documents", {"event": "open", "path": "/p/a.py", "text": "x"}, mirrored.Told),
}
ASKING = [name for name, door in DOORS.items() if door.text]
RAW = [
    b"", b"{", b"[]", b"null", b'"x"', b"3", b"\xff\xfe{}", b"\xef\xbb\xbf{", b'{"prompt": "a",}', b"{}{}",
    b'{"prompt": NaN}', b"[" * 100_000, b'{"a":' * 50_000, b'{"prompt": "\xc3"}', b'{"segments": "\xc3("}',
    b'{"input_prefix": "\xed\xa0"}', b"\x00" * 64, b'{"prompt": "\\ud8"}', b'{"seed": 1e999}',
]  # fmt: skip
VALUES: list[Any] = [
    3, -1, 0, 1.5, 1e308, 2**63, -(2**63), "x", "", "\x00", [], {}, [None], [[1]], ["x", 3], {"a": 1}, True,
    False, None, {"prefix": 3}, {"prefix": None, "edit_history": {"current_version": 3}}, "x" * 10_000,
]  # fmt: skip


def well_shaped(path: str, reply: Reply) -> None:
    """An error of the dialect that is spoken at `path`, which quotes nothing and blames nobody's bug."""
    assert 400 <= reply.status < 500 or reply.status in (501, 503), reply
    error = reply.json["error"]
    assert list(reply.json) == ["error"]
    if path.startswith("/api/"):
        assert isinstance(error, str)
    elif path.startswith(("/v1/completions", "/v1/fim/")):
        assert set(error) == {"message", "type", "param", "code"}
        assert isinstance(error["code"], str)
    else:
        assert set(error) == {"code", "message", "type"}
        assert error["code"] == reply.status
    assert b"\n" not in reply.body


async def alive(house: Standing) -> None:
    reply = await house.ask("POST", "/infill", {"input_prefix": "y = "}, {"User-Agent": "another"})
    assert (reply.status, reply.json["content"]) == (200, "answer()")
    assert house.engine.late == 0
    async with asyncio.timeout(5):
        await house.traffic.empty.wait()


@pytest.mark.parametrize("name", DOORS)
async def test_bodies_that_are_none(name: str) -> None:
    path = DOORS[name].path
    async with standing() as house:
        for raw in RAW:
            reply = await house.ask("POST", path, raw)
            if reply.status != 200:
                well_shaped(path, reply)
        await alive(house)


@pytest.mark.parametrize("name", DOORS)
async def test_fields_of_other_types(name: str) -> None:
    door = DOORS[name]
    async with standing() as house:
        for found in msgspec.structs.fields(door.kind):
            for value in VALUES:
                reply = await house.ask("POST", door.path, {**door.body, found.encode_name: value})
                if reply.status != 200:
                    well_shaped(door.path, reply)
        await alive(house)


@pytest.mark.parametrize("name", DOORS)
async def test_bodies_beyond_the_limit_are_refused_unread(name: str) -> None:
    door = DOORS[name]
    async with standing() as house:
        reply = await house.ask("POST", door.path, {**door.body, "more": "x" * (8 * 2**20)})
        assert reply.status == 413
        well_shaped(door.path, reply)
        await alive(house)


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize(
    "text", ["x" * 7_000_000, "x = 1\n" * 1_000_000, "<|fim_suffix|>" * 400_000, "function." * 700_000]
)
async def test_large_documents_stop_nobody(name: str, text: str) -> None:
    door = DOORS[name]
    async with standing() as house:
        asking = asyncio.create_task(house.ask("POST", door.path, {**door.body, door.text: text}))
        slowest = 0.0
        while not asking.done():
            begun = time.perf_counter()
            assert (await house.ask("GET", "/health")).status == 200
            slowest = max(slowest, time.perf_counter() - begun)
        if (reply := await asking).status != 200:
            well_shaped(door.path, reply)
        assert slowest < 5, "others were answered meanwhile"
        await alive(house)


@pytest.mark.parametrize("name", [*ASKING, "tabby"])
@pytest.mark.parametrize("where", ["before", "after", "beside"])
async def test_marks_in_a_text_stay_text(name: str, where: str) -> None:
    door = DOORS[name]
    body = dict(door.body)
    if name == "tabby":
        body["segments"] = {
            "prefix": MARKS if where == "before" else "x",
            "suffix": MARKS if where == "after" else "y",
        }
        if where == "beside":
            body["segments"] |= {"declarations": [{"filepath": "b.py", "body": MARKS}]}
    elif where == "before":
        body |= {door.text: f"# {MARKS}\nx = "}
    elif name == "infill":
        body |= (
            {"input_suffix": MARKS}
            if where == "after"
            else {"input_extra": [{"text": MARKS, "filename": "b"}]}
        )
    elif name == "native":
        body |= {"suffix": MARKS} if where == "after" else {"extras": [{"text": MARKS, "filename": "b"}]}
    elif where == "after" and "suffix" in body:
        body |= {"suffix": MARKS}
    async with standing() as house:
        assert (await house.ask("POST", door.path, body)).status == 200
        (job,) = house.engine.jobs
        controls = Counter(one for one in to_ids(job.tokens) if one >= 256)
        for mark in ("fim_prefix", "fim_suffix", "fim_middle"):
            assert controls[VOCABULARY.control[f"<|{mark}|>"]] == 1


@pytest.mark.parametrize("name", [*ASKING, "tabby"])
async def test_twenty_that_are_equal_share_the_work(name: str) -> None:
    door = DOORS[name]
    async with standing() as house:
        house.engine.hold()
        tasks = [asyncio.create_task(house.ask("POST", door.path, door.body)) for _ in range(20)]
        await house.engine.until(lambda: len(house.pipeline.requests) == 20 and bool(house.engine.jobs))
        house.engine.go_on()
        replies = [await task for task in tasks]
        assert {reply.status for reply in replies} == {200}
        assert len({json.dumps(text_of(reply)) for reply in replies}) == 1
        assert len(house.engine.jobs) <= 2
        await alive(house)


def text_of(reply: Reply) -> Any:
    """What an answer shows, whatever its shape."""
    if b"\n" in reply.body:
        return "".join(line["response"] for line in reply.lines)
    found = reply.json
    for key in ("content", "text", "response"):
        if key in found:
            return found[key]
    (choice,) = found["choices"]
    return choice.get("text") or choice["message"]["content"]


@pytest.mark.parametrize("name", [name for name in ASKING if DOORS[name].stream])
async def test_who_hangs_up_in_a_stream_ends_the_work(name: str) -> None:
    door = DOORS[name]
    async with standing("word " * 1000) as house:
        house.engine.hold_after = 5
        reader, writer = await house.connect()
        body = {**door.body, "stream": True, "lines": "free"}
        writer.write(head_and_body("POST", door.path, body))
        async with asyncio.timeout(5):
            await reader.readuntil(b"word")
        writer.transport.abort()
        await house.engine.until(lambda: bool(house.engine.ends))
        assert set(house.engine.ends.values()) == {"cancelled"}
        assert house.engine.late == 0
        async with asyncio.timeout(5):
            await house.traffic.empty.wait()
