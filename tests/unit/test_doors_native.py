"""The native dialect: documents and cursors in, everything known out, bad input named."""

import json
from typing import Any

import pytest
from support.house import Standing, standing

from daemon.doors.native import outer
from daemon.nouns import Extra


async def error(house: Standing, body: Any, status: int = 400) -> str:
    reply = await house.ask("POST", "/v1/complete", body)
    assert reply.status == status
    assert not house.pipeline.requests
    assert set(reply.json["error"]) == {"code", "message", "type"}
    return str(reply.json["error"]["message"])


async def test_a_document_and_a_cursor() -> None:
    async with standing("total") as house:
        body = {
            "text": "def f():\n    return \n",
            "cursor": {"line": 1, "character": 11},
            "path": "src/a.py",
            "language": "python",
            "client": "me",
            "extras": [{"filename": "b.py", "text": "x = 1"}, {"text": ""}],
            "max_tokens": 9,
            "time_ms": 700,
            "deadline_ms": 900,
            "lines": "free",
            "stop": ["\n\n", ""],
            "temperature": 0.5,
            "top_p": 0.8,
            "seed": 3,
            "anchor_lines": -1,
            "heal": False,
            "context": "now",
            "window": "complex",
            "cache": False,
            "invented": {"ignored": True},
        }
        answer = (await house.ask("POST", "/v1/complete", body)).json
        asked = house.pipeline.requests[0]
        assert (asked.prefix, asked.suffix) == ("def f():\n    return ", "\n")
        assert (asked.path, asked.language, asked.client, asked.door) == (
            "src/a.py",
            "python",
            "me",
            "native",
        )
        assert asked.extras == (Extra(text="x = 1", filename="b.py"),)
        assert (asked.limits.tokens, asked.limits.milliseconds, asked.limits.lines) == (9, 700, "free")
        assert (asked.limits.stop, asked.limits.deadline) == (("\n\n",), 900)
        assert (asked.sampling.temperature, asked.sampling.top_p, asked.sampling.seed) == (0.5, 0.8, 3)
        assert (asked.anchor_lines, asked.heal, asked.cache) == (-1, False, False)
        assert (asked.context, asked.window) == ("now", "complex")
        assert answer["text"] == "total"
        assert answer["replace"] == {"start": 20, "end": 20}
        assert answer["stop"] == "eos"
        assert answer["id"] == asked.id
        assert answer["model"] == "scripted"
        assert answer["counters"]["prompt"] == answer["counters"]["reused"] + answer["counters"]["evaluated"]
        assert {"stop_word", "note", "reason", "trims", "timings", "segments"} <= answer.keys()
        assert "raw" not in answer


async def test_defaults_come_from_the_settings() -> None:
    async with standing() as house:
        await house.ask("POST", "/v1/complete", {"prefix": "x"}, {"User-Agent": "editor/1"})
        await house.ask("POST", "/v1/complete", {"suffix": "y"}, {"x-client-id": "c7"})
        first, second = house.pipeline.requests
        defaults = house.house.settings.complete
        assert (first.limits.tokens, first.limits.milliseconds) == (defaults.max_tokens, defaults.time_ms)
        assert (first.limits.lines, first.sampling.temperature) == (defaults.lines, 0.0)
        assert first.client == "native:editor/1"
        assert (second.client, second.prefix, second.suffix) == ("c7", "", "y")


@pytest.mark.parametrize(
    ("text", "cursor", "prefix", "suffix", "clamped"),
    [
        ("", {"line": 0, "character": 0}, "", "", False),
        ("", {"offset": 0}, "", "", False),
        ("ab\ncd", {"line": 9, "character": 9}, "ab\ncd", "", True),
        ("ab\ncd", {"line": 0, "character": 99}, "ab", "\ncd", True),
        ("ab\ncd", {"line": -1, "character": 0}, "", "ab\ncd", True),
        ("ab\ncd", {"offset": 99}, "ab\ncd", "", True),
        ("ab\ncd", {"offset": -5}, "", "ab\ncd", True),
        ("a😀b", {"line": 0, "character": 3}, "a😀", "b", False),
        ("a😀b", {"line": 0, "character": 5, "encoding": "utf-8"}, "a😀", "b", False),
        ("a😀b", {"line": 0, "character": 2, "encoding": "utf-32"}, "a😀", "b", False),
    ],
)
async def test_cursors(text: str, cursor: dict[str, Any], prefix: str, suffix: str, clamped: bool) -> None:
    async with standing() as house:
        answer = (await house.ask("POST", "/v1/complete", {"text": text, "cursor": cursor})).json
        asked = house.pipeline.requests[0]
        assert (asked.prefix, asked.suffix) == (prefix, suffix)
        assert answer["clamped"] is clamped
        assert answer["replace"]["start"] == len(prefix)


async def test_offsets_answer_for_the_text_as_it_was_sent() -> None:
    async with standing() as house:
        body = {"text": "\ufeffa\r\nb\r\nc\r\n", "cursor": {"line": 2, "character": 1}}
        answer = (await house.ask("POST", "/v1/complete", body)).json
        assert house.pipeline.requests[0].prefix == "a\nb\nc"
        assert house.pipeline.requests[0].newline == "\r\n"
        assert answer["replace"] == {"start": 8, "end": 8}
        halves = {"prefix": "a\r\nb\r", "suffix": "\nc"}
        answer = (await house.ask("POST", "/v1/complete", halves)).json
        assert (house.pipeline.requests[1].prefix, house.pipeline.requests[1].suffix) == ("a\nb", "\nc")
        assert answer["replace"] == {"start": 4, "end": 4}


@pytest.mark.parametrize(
    ("text", "inner", "expected"),
    [("abc", 2, 2), ("\r\n\r\n\r\nx", 3, 6), ("a\r\nb\nc\r\n", 4, 5), ("\ufeff\r\n", 1, 3), ("\r\n", 0, 0)],
)
def test_outer(text: str, inner: int, expected: int) -> None:
    assert outer(text, inner) == expected


async def test_a_warm_up_generates_nothing() -> None:
    async with standing() as house:
        for body in ({"prefix": "x", "warm": True}, {"prefix": "x", "max_tokens": 0}):
            answer = (await house.ask("POST", "/v1/complete", body)).json
            assert (answer["text"], answer["stop"]) == ("", "warm")
        assert all(asked.warm for asked in house.pipeline.requests)


async def test_a_stream_is_pieces_and_then_the_whole() -> None:
    async with standing("one two three") as house:
        reply = await house.ask("POST", "/v1/complete", {"prefix": "x", "stream": True, "raw": True})
        assert reply.headers["content-type"] == "text/event-stream"
        *pieces, last = reply.events
        assert len(pieces) == 3
        assert "".join(piece["text"] for piece in pieces) == last["text"] == "one two three"
        assert last["done"] is True
        assert last["raw"] == "one two three"


async def test_a_stream_that_fails_before_it_begins_is_a_plain_error() -> None:
    async with standing(loaded=False) as house:
        for body in ({"prefix": "x", "stream": True}, {"prefix": "x"}):
            reply = await house.ask("POST", "/v1/complete", body)
            assert reply.status == 503
            assert (reply.json["error"]["code"], reply.json["error"]["type"]) == (503, "unavailable")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"prefix": 1}, "$.prefix"),
        ({"text": "x", "cursor": {"line": "1"}}, "$.cursor.line"),
        ({"text": "x", "cursor": {"line": 1, "encoding": "latin-1"}}, "$.cursor.encoding"),
        ({"text": "x"}, "cursor"),
        ({"text": "x", "cursor": {}}, "offset"),
        ({}, "prefix"),
        ({"prefix": "x", "max_tokens": -1}, "max_tokens"),
        ({"prefix": "x", "max_tokens": 10**9}, "max_tokens"),
        ({"prefix": "x", "time_ms": 0}, "time_ms"),
        ({"prefix": "x", "deadline_ms": 0}, "deadline_ms"),
        ({"prefix": "x", "temperature": -1}, "temperature"),
        ({"prefix": "x", "top_p": 2}, "top_p"),
        ({"prefix": "x", "seed": 2**40}, "seed"),
        ({"prefix": "x", "stop": ["a"] * 65}, "stop"),
        ({"prefix": "x", "stop": [1]}, "$.stop[0]"),
        ({"prefix": "x", "lines": "two"}, "$.lines"),
        ({"prefix": "x", "extras": [{"filename": "a"}]}, "text"),
        ([], "object"),
        (None, "character 0"),
    ],
)
async def test_what_is_wrong_is_named(body: Any, named: str) -> None:
    async with standing() as house:
        assert named in await error(house, b"" if body is None else body)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"prefix":"secret",}', "character 19"),
        (b'{"prefix":"secret"', "character"),
        (b'{"prefix":"sec\x00ret"}', "character 14"),
        (b'{"prefix":"sec\xffret"}', "not UTF-8 at byte 14"),
        (b'{"prefix":"\xed\xa0\x80"}', "not UTF-8 at byte 11"),
        (b'{"prefix":"x","a":' + b"[" * 100_000, "nested too deeply"),
        (b'{"prefix":"x","a":' + b"9" * 5000 + b",}", "Malformed"),
        (b"not json secret", "character 0"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8 at byte 0"),
    ],
)
async def test_malformed_bodies_are_placed_and_not_quoted(raw: bytes, said: str) -> None:
    async with standing() as house:
        message = await error(house, raw)
        assert said in message
        assert "secret" not in message


async def test_nul_and_lone_surrogates_are_answered() -> None:
    async with standing() as house:
        raw = b'{"text":"a\\u0000b\\ud83dc","cursor":{"line":0,"character":4},"path":"\\udc00.py"}'
        assert (await house.ask("POST", "/v1/complete", raw)).status == 200
        asked = house.pipeline.requests[0]
        assert (asked.prefix, asked.suffix, asked.path) == ("a\0b\ufffd", "c", "\ufffd.py")
        wrong = b'{"text":"\\ud83d","cursor":5}'
        assert (await house.ask("POST", "/v1/complete", wrong)).status == 400


async def test_a_body_in_small_pieces_and_one_that_ends_early() -> None:
    async with standing() as house:
        body = json.dumps({"prefix": "x" * 50}).encode()
        chunked = {"Content-Length": None, "Transfer-Encoding": "chunked"}
        pieces = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in body) + b"0\r\n\r\n"
        assert (await house.ask("POST", "/v1/complete", pieces, chunked)).status == 200
        broken = await house.ask("POST", "/v1/complete", b"zz\r\n", chunked)
        assert broken.status == 400


async def test_hello_stop_and_status() -> None:
    async with standing() as house:
        hello = (await house.ask("GET", "/v1/hello")).json
        assert set(hello) == {"name", "version", "build", "pid", "started"}
        assert (await house.ask("GET", "/v1/status")).json["pid"] == 1
        assert not house.stopped.is_set()
        assert (await house.ask("POST", "/v1/stop", {})).status == 200
        assert house.stopped.is_set()
