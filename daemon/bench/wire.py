"""A small HTTP client for measurements: one connection per request, as curl-based editors make it.

Loopback only, no proxies, no redirects. Its own work per event is a few microseconds, so that it does not
disturb what it measures. asyncio sets TCP_NODELAY. `waited` is for times of a millisecond or two, where the
turns of the client's own loop would be a tenth of what is measured.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from daemon.errors import BadRequest, EngineFailed, Overloaded

T = TypeVar("T")
CONNECT_S = 10.0
READ_S = 600.0
"""A server that is silent for longer than this has failed; a prompt of 3,000 tokens may take minutes."""
HEAD_LIMIT = 2**20
_OF_A_CONNECTION = ("host", "connection", "content-length", "transfer-encoding")
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens. `base` is put before every path."""

    host: str
    port: int
    base: str = ""
    token: str = ""

    @classmethod
    def parse(cls, url: str) -> Endpoint:
        """From an http URL. Raises BadRequest for anything else."""
        parts = urlsplit(url)
        try:
            port = parts.port or 80
        except ValueError as error:
            raise BadRequest(f"{url} has no usable port") from error
        if parts.scheme != "http" or not parts.hostname:
            raise BadRequest(
                f"{url} is not an http URL", "Give http://127.0.0.1:PORT of a running llama-server"
            )
        return cls(parts.hostname, port, parts.path.rstrip("/"))

    def head(self, method: str, path: str, length: int, headers: Mapping[str, str] | None = None) -> bytes:
        """The request's head; `headers` in place of our own, besides what belongs to a connection."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        lines = [f"{method} {self.base}{path} HTTP/1.1", f"Host: {host}:{self.port}", "Connection: close"]
        if length:
            lines.append(f"Content-Length: {length}")
        if headers is not None:
            lines += [f"{k}: {v}" for k, v in headers.items() if k.lower() not in _OF_A_CONNECTION]
        elif length:
            lines.append("Content-Type: application/json")
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. `kind` is its content type."""

    status: int
    kind: str
    body: bytes


async def _within(work: Awaitable[T], seconds: float, what: str) -> T:
    try:
        return await asyncio.wait_for(work, seconds)
    except TimeoutError as error:
        raise EngineFailed(f"{what} took longer than {seconds:.0f} s") from error
    except (OSError, EOFError) as error:  # IncompleteReadError is an EOFError
        raise EngineFailed(f"{what} failed: {error}") from error


async def stream(
    endpoint: Endpoint, method: str, path: str, body: bytes = b""
) -> AsyncGenerator[bytes, None]:
    """The body's pieces as they come. Closing the generator closes the connection at once.

    Raises EngineFailed when the connection fails or the status is not 200.
    """
    what = f"{method} {path} on port {endpoint.port}"
    opening = asyncio.open_connection(endpoint.host, endpoint.port, limit=HEAD_LIMIT)
    reader, writer = await _within(opening, CONNECT_S, what)
    try:
        writer.write(endpoint.head(method, path, len(body)) + body)
        status, headers = _head(await _within(reader.readuntil(b"\r\n\r\n"), READ_S, what))
        pieces = _chunks(reader, what) if "chunked" in headers.get("transfer-encoding", "") else None
        async with aclosing(pieces or _plain(reader, headers, what)) as body_pieces:
            if status != 200:
                raise _refused(status, what, b"".join([piece async for piece in body_pieces]))
            async for piece in body_pieces:
                yield piece
    finally:
        writer.transport.abort()


def _refused(status: int, what: str, body: bytes) -> EngineFailed | Overloaded:
    kind = Overloaded if status == 429 else EngineFailed
    return kind(f"{what} was answered {status}: {body[:300].decode('utf-8', 'replace')}")


def _head(raw: bytes) -> tuple[int, dict[str, str]]:
    first, *rest = raw.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in rest if line)
    return int(first.split(" ", 2)[1]), {k.strip().lower(): v.strip().lower() for k, _, v in pairs}


async def _chunks(reader: asyncio.StreamReader, what: str) -> AsyncGenerator[bytes, None]:
    while True:
        line = await _within(reader.readuntil(b"\r\n"), READ_S, what)
        size = int(line.split(b";")[0], 16)
        if size == 0:
            return
        piece = await _within(reader.readexactly(size + 2), READ_S, what)
        yield piece[:-2]


async def _plain(
    reader: asyncio.StreamReader, headers: dict[str, str], what: str
) -> AsyncGenerator[bytes, None]:
    left = int(headers.get("content-length", -1))
    while left:
        piece = await _within(reader.read(left if left > 0 else 65536), READ_S, what)
        if not piece:
            return
        left -= len(piece) if left > 0 else 0
        yield piece


async def fetch(endpoint: Endpoint, method: str, path: str, body: bytes = b"") -> Any:
    """The whole body, decoded from JSON."""
    async with aclosing(stream(endpoint, method, path, body)) as pieces:
        whole = b"".join([piece async for piece in pieces])
    return _decoded(f"{method} {path} on port {endpoint.port}", whole)


def waited(endpoint: Endpoint, method: str, path: str, body: bytes = b"") -> Any:
    """As `fetch`, by a client that waits for nothing else, as curl does: an answer that has a length.

    Blocks. Raises as `stream` does.
    """
    what = f"{method} {path} on port {endpoint.port}"
    try:
        address = endpoint.host, endpoint.port
        with socket.create_connection(address, CONNECT_S) as line, line.makefile("rb") as answer:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.settimeout(READ_S)
            line.sendall(endpoint.head(method, path, len(body)) + body)
            head = itertools.takewhile(bytes.strip, iter(answer.readline, b""))
            status, headers = _head(b"".join(head))
            length = int(headers["content-length"])
            whole = answer.read(length)
    except (OSError, LookupError, ValueError) as error:
        raise EngineFailed(f"{what} failed: {error or type(error).__name__}") from error
    if status != 200:
        raise _refused(status, what, whole)
    return _decoded(what, whole)


def _decoded(what: str, whole: bytes) -> Any:
    try:
        return _decode(whole)
    except msgspec.DecodeError as error:
        raise EngineFailed(f"{what} was not answered in JSON ({len(whole)} bytes: {error})") from error


async def exchange(
    endpoint: Endpoint, method: str, path: str, body: bytes, headers: Mapping[str, str]
) -> Reply:
    """One answer whatever its status, to a request with the `headers` of another client."""
    what = f"{method} {path} on port {endpoint.port}"
    opening = asyncio.open_connection(endpoint.host, endpoint.port, limit=HEAD_LIMIT)
    reader, writer = await _within(opening, CONNECT_S, what)
    try:
        writer.write(endpoint.head(method, path, len(body), headers) + body)
        status, told = _head(await _within(reader.readuntil(b"\r\n\r\n"), READ_S, what))
        chunked = "chunked" in told.get("transfer-encoding", "")
        async with aclosing(_chunks(reader, what) if chunked else _plain(reader, told, what)) as pieces:
            whole = b"".join([piece async for piece in pieces])
        return Reply(status, told.get("content-type", ""), whole)
    finally:
        writer.transport.abort()


async def events(endpoint: Endpoint, path: str, body: bytes) -> AsyncGenerator[Any, None]:
    """POST and yield each event as decoded JSON: server-sent events (`data:`), or one object per line."""
    rest = b""
    async with aclosing(stream(endpoint, "POST", path, body)) as pieces:
        async for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                event = _event(line)
                if event is not None:
                    yield event
    last = _event(rest)
    if last is not None:
        yield last


def _event(line: bytes) -> Any:
    line = line.strip()
    if line.startswith(b"data:"):
        line = line[5:].strip()
    if not line.startswith(b"{"):
        return None  # blank, a comment, an event's name, or [DONE]
    return _decode(line)
