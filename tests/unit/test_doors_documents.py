"""Editors tell what is open, over real sockets, under the rules of every door."""

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
