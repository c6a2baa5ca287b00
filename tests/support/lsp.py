"""An editor that speaks raw JSON-RPC, and a text as an editor holds it: the oracle of synchronisation."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from daemon.doors import client
from daemon.doors.lsp import serve
from daemon.doors.lsplink import Link
from daemon.settings import Index

GHOSTS = {"textDocument": {"inlineCompletion": {}}, "window": {"workDoneProgress": True}}


class Frames:
    """A writer of frames that hands them to a reader."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def write(self, data: bytes) -> None:
        self._reader.feed_data(data)

    def close(self) -> None:
        self._reader.feed_eof()


def frame(message: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


@dataclass
class Editor:
    """`send` takes bytes for the server's stdin, `reader` gives those of its stdout."""

    send: Callable[[bytes], None]
    reader: asyncio.StreamReader
    said: list[dict[str, Any]] = field(default_factory=list)
    """Notifications of the server."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Its requests; each is answered with null."""
    stray: list[dict[str, Any]] = field(default_factory=list)
    """Its answers to what was no request."""
    waiting: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    ended: bool = False

    async def listen(self) -> None:
        """Until the server ends. Whatever is no frame fails here."""
        while (head := await self.reader.readline()) != b"":
            length = 0
            while head.strip():
                name, _, value = head.decode("ascii").strip().partition(": ")
                assert name in ("Content-Length", "Content-Type"), head
                length = int(value) if name == "Content-Length" else length
                head = await self.reader.readline()
            await self._take(json.loads(await self.reader.readexactly(length)))
        self.ended = True
        async with self.changed:
            self.changed.notify_all()

    async def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            future = self.waiting.pop(message["id"], None)
            if future is None:
                self.stray.append(message)
            else:
                future.set_result(message)
        elif "id" in message:
            self.asked.append(message)
            self.send(frame({"id": message["id"], "result": None}))
        else:
            self.said.append(message)
        async with self.changed:
            self.changed.notify_all()

    def tell(self, method: str, params: Any = None) -> None:
        self.send(frame({"method": method, "params": params}))

    def begin(self, method: str, params: Any = None) -> tuple[int, asyncio.Future[dict[str, Any]]]:
        """A request: its id, and the whole response to come."""
        number = next(self.numbers)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        future = self.waiting[number]
        self.send(frame({"id": number, "method": method, "params": params}))
        return number, future

    async def ask(self, method: str, params: Any = None, seconds: float = 30.0) -> Any:
        """The result of a request."""
        _, future = self.begin(method, params)
        response = await asyncio.wait_for(future, seconds)
        assert "error" not in response, response
        return response["result"]

    async def heard(self, probe: Callable[[], object], seconds: float = 30.0) -> None:
        """Until `probe` is true of what the server said."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: bool(probe()))

    def messages(self) -> list[str]:
        """What was to be shown to the person."""
        return [m["params"]["message"] for m in self.said if m["method"] == "window/showMessage"]

    def logged(self) -> list[str]:
        """What was to be found by whoever looks for it."""
        return [m["params"]["message"] for m in self.said if m["method"] == "window/logMessage"]

    async def initialize(self, capabilities: Any = None, **more: Any) -> dict[str, Any]:
        """The server's capabilities."""
        params = {"processId": None, "rootUri": None, "capabilities": capabilities or GHOSTS, **more}
        result: dict[str, Any] = await self.ask("initialize", {"clientInfo": {"name": "test"}, **params})
        self.tell("initialized", {})
        return result["capabilities"]

    def open(self, uri: str, text: str, version: int = 1, language: str = "python") -> None:
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, version: int | None, *changes: dict[str, Any]) -> None:
        document = {"uri": uri, "version": version}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)})

    async def ghost(self, uri: str, line: int, character: int, kind: int = 2, **context: Any) -> list[Any]:
        """The inline completions at a place."""
        params = place(uri, line, character) | {"context": {"triggerKind": kind, **context}}
        items: list[Any] = (await self.ask("textDocument/inlineCompletion", params))["items"]
        return items


def place(uri: str, line: int, character: int) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> dict[str, Any]:
    """A partial change of a document."""
    ends = [{"line": line, "character": character} for line, character in (start, end)]
    return {"range": {"start": ends[0], "end": ends[1]}, "text": text}


@contextlib.asynccontextmanager
async def editor(index: Index | None = None) -> AsyncIterator[Editor]:
    """An editor and its language server in this process; the server looks for a daemon as it always does."""
    there, here = asyncio.StreamReader(), asyncio.StreamReader()
    link = Link(client.address)
    running = asyncio.create_task(serve(there, Frames(here), link, index or Index(on=False)))
    one = Editor(there.feed_data, here)
    listening = asyncio.create_task(one.listen())
    try:
        yield one
    finally:
        if link.starting is not None:
            await asyncio.wait([link.starting])  # else it would start a daemon once the house is gone
        if not running.done():
            there.feed_eof()
        await asyncio.wait_for(running, 10)
        here.feed_eof()
        await listening


class Server(Editor):
    """An editor with its server in a process of its own."""

    process: asyncio.subprocess.Process


@contextlib.asynccontextmanager
async def started(command: list[str], environment: Mapping[str, str]) -> AsyncIterator[Server]:
    """An editor that has started its language server; it hangs up at the end."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment
    )
    assert process.stdin
    assert process.stdout
    one = Server(process.stdin.write, process.stdout)
    one.process = process
    listening = asyncio.create_task(one.listen())
    try:
        yield one
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 10)
        await listening  # fails on whatever was no frame
