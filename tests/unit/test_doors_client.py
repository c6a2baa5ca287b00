"""The commands' client against real doors: answers, errors, and nobody there."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.house import Standing, standing

from daemon.doors import client
from daemon.doors.client import Address
from daemon.errors import BadRequest, ForetypeError, Loading, NotRunning, NotSupported, Unauthorized
from daemon.settings import Server


def addresses(house: Standing, token: str = "") -> tuple[Address, Address]:
    return Address(house.served.socket_path, 0, token), Address(None, house.served.port, token)


async def request(at: Address, method: str, path: str, body: Any = None) -> dict[str, Any]:
    return await asyncio.to_thread(client.request, method, path, body, at=at)


async def test_answers_come_over_both_sockets_whatever_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://192.0.2.1:9")
    async with standing() as house:
        for at in addresses(house):
            assert (await request(at, "GET", "/v1/hello"))["name"] == "foretype"
            assert (await request(at, "POST", "/v1/complete", {"prefix": "x"}))["text"] == "answer()"
        assert (await request(at, "POST", "/v1/stop")) == {"stopping": True}


async def test_errors_come_back_as_what_they_were() -> None:
    async with standing(server=Server(port=0, token="t")) as house:
        right, wrong = addresses(house, "t")[0], addresses(house, "x")[1]
        with pytest.raises(Unauthorized, match="token"):
            await request(wrong, "GET", "/v1/hello")
        with pytest.raises(BadRequest, match=r"\$\.prefix") as caught:
            await request(right, "POST", "/v1/complete", {"prefix": 1})
        assert caught.value.status == 400
        house.pipeline.refuse = True
        with pytest.raises(NotSupported):
            await request(right, "POST", "/infill", {})
        house.pipeline.refuse, house.engine.loaded = False, False
        with pytest.raises(Loading):
            await request(right, "POST", "/infill", {})
        with pytest.raises(ForetypeError, match="nothing at this address") as unknown:
            await request(right, "GET", "/nowhere")
        assert unknown.value.status == 404


async def test_a_stream_is_read_as_it_comes_and_closing_it_cancels() -> None:
    async with standing("one two three") as house:
        at = addresses(house)[0]
        events = await asyncio.to_thread(lambda: list(client.stream("/v1/complete", {"prefix": "x"}, at=at)))
        assert [event.get("text") for event in events] == ["one", " two", " three", "one two three"]
        with pytest.raises(BadRequest):
            await asyncio.to_thread(lambda: list(client.stream("/v1/complete", {"prefix": 1}, at=at)))
    async with standing(lambda job: "word " * 100_000) as house:

        def first() -> dict[str, Any]:
            ask = {"prefix": "x", "lines": "free", "max_tokens": 4096, "time_ms": 60_000}
            with closing(client.stream("/v1/complete", ask, at=addresses(house)[0])) as stream:  # type: ignore[type-var]
                return next(stream)

        assert (await asyncio.to_thread(first)) == {"text": "word"}
        await house.engine.until(lambda: bool(house.engine.ends))
        assert set(house.engine.ends.values()) == {"cancelled"}


def test_nobody_there(tmp_path: Path) -> None:
    for at in (Address(tmp_path / "d.sock"), Address(None, 0), Address(None, 1)):
        with pytest.raises(NotRunning, match=r"no daemon is running\. `foretype up`"):
            client.request("GET", "/v1/status", at=at)
        with pytest.raises(NotRunning):
            list(client.stream("/v1/complete", {}, at=at))


async def test_somebody_else_there() -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answers.pop())
        writer.close()

    answers = [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"]
    async with await asyncio.start_server(other, "127.0.0.1", 0) as server:
        at = Address(None, server.sockets[0].getsockname()[1])
        for said in ("no Foretype daemon", "hung up", "hung up"):
            with pytest.raises(NotRunning, match=said):
                await request(at, "GET", "/v1/hello")


async def test_a_daemon_that_does_not_answer_in_time() -> None:
    async with standing() as house:
        house.engine.hold()
        with pytest.raises(NotRunning, match="in time"):
            await asyncio.to_thread(
                client.request, "POST", "/infill", {}, timeout=0.2, at=addresses(house)[0]
            )


def test_the_address_is_this_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path))
    assert client.address().token == ""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text('[server]\ntoken = "t"\n', encoding="utf-8")
    assert client.address().token == "t"
    assert str(client.address().socket_path).endswith("daemon.sock")
    (tmp_path / "config" / "config.toml").write_text("broken", encoding="utf-8")
    assert client.address().token == ""
