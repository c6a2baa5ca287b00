"""Editors tell what is open, over real sockets, under the rules of every door."""

import zlib
from typing import Any

import pytest
from support.house import Standing, standing

PATH = "/v1/documents"


async def tell(house: Standing, **body: Any) -> None:
    reply = await house.ask("POST", PATH, body, {"User-Agent": "editor/1"})
    assert (reply.status, reply.json) == (200, {})


async def test_the_life_of_a_document() -> None:
    async with standing() as house:
        await tell(house, event="open", path="a.py", text="x = 1\r\n", version=1, invented=True)
        assert [(d.path, d.text, d.open, d.language) for d in house.mirror.documents()] == [
            ("a.py", "x = 1\n", True, "python")
        ]
        await tell(house, event="change", path="a.py", text="x = 12\n", version=3)
        await tell(house, event="change", path="a.py", text="x = stale\n", version=2)
        assert [d.text for d in house.mirror.documents()] == ["x = 12\n"]
        await tell(house, event="visit", path="a.py", line=0)
        await tell(house, event="focus", path="a.py")
        await tell(house, event="accepted", path="a.py", text="x = 12\n")
        assert {region.kind for region in house.mirror.recent()} == {"edited", "visited", "accepted"}
        await tell(house, event="close", path="a.py")
        assert house.mirror.documents() == ()
        assert len(house.mirror.recent()) == 3


async def test_clients_are_kept_apart() -> None:
    async with standing() as house:
        await tell(house, event="open", path="a.py", text="x\n", client="one", version=7)
        await tell(house, event="open", path="a.py", text="xy\n", client="two", version=1)
        await tell(house, event="close", path="a.py", client="one")
        assert [(d.text, d.open) for d in house.mirror.documents()] == [("xy\n", True)]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"event": "open", "path": "a.py"}, "`open` needs `text`"),
        ({"event": "accepted", "path": "a.py"}, "`accepted` needs `text`"),
        ({"event": "close", "path": ""}, "`path`"),
        ({"event": "close", "path": "a\0b"}, "`path`"),
        ({"event": "save", "path": "a.py"}, "event"),
        ({"path": "a.py"}, "event"),
        ({"event": "visit", "path": "a.py", "line": -3}, "`line`"),
        ({"event": "open", "path": "a.py", "text": 3}, "text"),
        ([], "object"),
    ],
)
async def test_what_is_wrong_is_named(body: Any, named: str) -> None:
    async with standing() as house:
        reply = await house.ask("POST", PATH, body)
        assert reply.status == 400
        assert named in reply.json["error"]["message"]
        assert house.mirror.documents() == ()


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.test:8012"}, {"Origin": "http://evil.test"}, {"Content-Type": "text/plain"}]
)
async def test_the_door_is_guarded(headers: dict[str, str | None]) -> None:
    async with standing() as house:
        body = {"event": "open", "path": "a.py", "text": "x\n"}
        assert (await house.ask("POST", PATH, body, headers)).status in (403, 415)
        assert house.mirror.documents() == ()


async def test_lone_surrogates_and_secrets() -> None:
    async with standing() as house:
        raw = b'{"event":"open","path":"a.py","text":"s = \'\\ud83d\'\\n"}'
        assert (await house.ask("POST", PATH, raw)).status == 200
        assert house.mirror.documents()[0].text == "s = '\ufffd'\n"
        await tell(house, event="open", path="app/.env", text="KEY=canary\n")
        await tell(house, event="accepted", path="app/.env", text="KEY=canary\n")
        assert [d.path for d in house.mirror.documents()] == ["a.py"]
        assert not any("canary" in region.text for region in house.mirror.recent())


def edited(text: str, was: int, *edits: tuple[int, int, str], **more: Any) -> dict[str, Any]:
    """An `edit` that makes `text` the version after `was`."""
    changes = [{"start": start, "end": end, "text": new} for start, end, new in edits]
    proof = {"length": len(text), "crc32": zlib.crc32(text.encode())}
    return {
        "event": "edit",
        "path": "a.py",
        "base": was,
        "version": was + 1,
        "edits": changes,
        **proof,
        **more,
    }


async def test_edits_move_the_copy_and_answers_come_by_version() -> None:
    async with standing("2)") as house:
        await tell(house, event="open", path="a.py", text="\ufeffx = 1\r\n", version=1, client="c")
        await tell(house, **edited("\ufeffx = (😀1\r\n", 1, (5, 5, "("), (6, 6, "😀")), client="c")
        assert [d.text for d in house.mirror.documents()] == ["x = (😀1\n"]
        ask = {"path": "a.py", "version": 2, "cursor": {"offset": 8}, "client": "c"}
        reply = await house.ask("POST", "/v1/complete", ask)
        assert (reply.status, reply.json["replace"]["start"]) == (200, 8)
        request = house.pipeline.requests[-1]
        assert (request.prefix, request.suffix, request.whole) == ("x = (😀1", "\n", True)
        for wrong in ({"version": 1}, {"client": "d"}, {"path": "b.py"}, {"crc32": 1}):
            reply = await house.ask("POST", "/v1/complete", {**ask, **wrong})
            assert (reply.status, reply.json["error"]["type"]) == (409, "resync")


async def test_an_edit_that_does_not_fit_silences_the_document() -> None:
    async with standing("2") as house:
        await tell(house, event="open", path="a.py", text="x = 1\n", version=1, client="c")
        body = edited("other", 1, (0, 0, "a"), client="c")
        for _ in range(2):
            reply = await house.ask("POST", PATH, body)
            assert (reply.status, reply.json["error"]["type"]) == (409, "resync")
            ask = {"path": "a.py", "version": 1, "cursor": {"offset": 0}, "client": "c"}
            assert (await house.ask("POST", "/v1/complete", ask)).status == 409
        await tell(house, event="change", path="a.py", text="x = 2\n", version=2, client="c")
        ask["version"] = 2
        assert (await house.ask("POST", "/v1/complete", ask)).status == 200


async def test_what_may_not_be_kept_is_not_held_either() -> None:
    async with standing("2") as house:
        await tell(house, event="open", path="app/.env", text="KEY=canary\n", version=1, client="c")
        body = edited("aKEY=canary\n", 1, (0, 0, "a"), client="c", path="app/.env")
        reply = await house.ask("POST", PATH, body)
        assert (reply.status, reply.json["error"]["type"]) == (409, "not_kept")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"crc32": None}, "`crc32`"),
        ({"base": None}, "`base`"),
        ({"edits": []}, "`edits`"),
        ({"version": 1}, "`version`"),
        ({"edits": [{"start": "a", "end": 1}]}, "start"),
    ],
)
async def test_what_an_edit_lacks_is_named(change: dict[str, Any], named: str) -> None:
    async with standing() as house:
        await tell(house, event="open", path="a.py", text="", version=1, client="c")
        reply = await house.ask("POST", PATH, edited("a", 1, (0, 0, "a"), client="c", **change))
        assert reply.status == 400
        assert named in reply.json["error"]["message"]
