"""The measuring client against real sockets: chunks, plain bodies, refusals, and closing in mid-answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from daemon.bench import wire
from daemon.errors import BadRequest, EngineFailed, Overloaded

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Fetch = Callable[..., Awaitable[Any]]


async def waited(*request: Any) -> Any:
    return await asyncio.to_thread(wire.waited, *request)


both = pytest.mark.parametrize("fetch", [wire.fetch, waited])


@asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[wire.Endpoint]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield wire.Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])


def plain(status: str, body: bytes) -> Handler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    return handle


def chunked(*pieces: bytes) -> Handler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return handle


async def test_events_survive_any_cut_between_chunks() -> None:
    sent = b': hello\n\ndata: {"n":1}\r\n\r\ndata:{"n":2}\n\ndata: [DONE]\n\n{"n":3}'
    for size in (1, 7, len(sent)):
        pieces = [sent[i : i + size] for i in range(0, len(sent), size)]
        async with served(chunked(*pieces)) as endpoint:
            assert [e["n"] async for e in wire.events(endpoint, "/x", b"{}")] == [1, 2, 3]


@both
async def test_a_whole_body_is_decoded(fetch: Fetch) -> None:
    async with served(plain("200 OK", b'{"a":"\xc3\xa9"}')) as endpoint:
        assert await fetch(endpoint, "GET", "/x") == {"a": "é"}


@both
@pytest.mark.parametrize(
    ("status", "kind"),
    [("503 Service Unavailable", EngineFailed), ("429 Too Many Requests", Overloaded)],
)
async def test_a_refusal_says_what_was_answered(fetch: Fetch, status: str, kind: type[Exception]) -> None:
    async with served(plain(status, b'{"error":"loading"}')) as endpoint:
        with pytest.raises(kind, match="loading"):
            await fetch(endpoint, "GET", "/x")


@both
async def test_what_is_not_json_is_an_error(fetch: Fetch) -> None:
    async with served(plain("200 OK", b"<html>")) as endpoint:
        with pytest.raises(EngineFailed, match="JSON"):
            await fetch(endpoint, "GET", "/x")


@both
async def test_nobody_listening_is_an_error(fetch: Fetch) -> None:
    async with served(plain("200 OK", b"{}")) as endpoint:
        pass
    with pytest.raises(EngineFailed, match="/x"):
        await fetch(endpoint, "GET", "/x")


@both
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
)
async def test_a_server_that_hangs_up_is_an_error(fetch: Fetch, answer: bytes) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with served(handle) as endpoint:
        with pytest.raises(EngineFailed):
            await fetch(endpoint, "GET", "/x")


async def test_leaving_closes_the_connection_at_once() -> None:
    gone = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{"n":1}\n\r\n')
        assert await reader.read() == b""
        gone.set()

    async with served(handle) as endpoint:
        async with aclosing(wire.events(endpoint, "/x", b"")) as events:
            async for event in events:
                assert event == {"n": 1}
                break
        async with asyncio.timeout(5):
            await gone.wait()


@both
async def test_the_request_names_its_host_and_length(fetch: Fetch) -> None:
    heads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(2))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()

    async with served(handle) as endpoint:
        await fetch(endpoint, "POST", "/x", b"{}")
    first, *rest = heads[0].decode().split("\r\n")
    assert first == "POST /x HTTP/1.1"
    assert f"Host: 127.0.0.1:{endpoint.port}" in rest
    assert "Content-Type: application/json" in rest
    assert rest[-1] == "{}"


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "127.0.0.1:8080", "http://", "http://a:99999"])
def test_only_http_urls_are_taken(url: str) -> None:
    with pytest.raises(BadRequest):
        wire.Endpoint.parse(url)


def test_a_url_keeps_its_base_path() -> None:
    assert wire.Endpoint.parse("http://localhost:8080/base/") == wire.Endpoint("localhost", 8080, "/base")
