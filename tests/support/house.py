"""A house with real doors on real sockets over a scripted engine, and raw clients to knock with."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from support.scripted import PROFILE, ScriptedEngine

from daemon import instance, replay
from daemon.documents.mirror import Mirror
from daemon.documents.opening import known
from daemon.doors.house import TRAFFIC, House, Patience, Traffic
from daemon.doors.http import Served, build, serve
from daemon.engine.frames import Submit
from daemon.errors import NotSupported
from daemon.nouns import Completion, CompletionRequest
from daemon.observe.acceptance import Acceptance
from daemon.observe.ledger import Ledger
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Doors, Recall, Server, Settings


class Recorder:
    """The real pipeline, with a note of what the doors asked it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.requests: list[CompletionRequest] = []
        self.refuse = False

    async def complete(
        self, request: CompletionRequest, on_text: Callable[[str], Awaitable[None]] | None = None
    ) -> Completion:
        self.requests.append(request)
        if self.refuse:
            raise NotSupported("the model in /home/somebody/models/x.gguf cannot do that")
        return await self.pipeline.complete(request, on_text)


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def events(self) -> list[Any]:
        data = (line[6:] for line in self.body.split(b"\n") if line.startswith(b"data: "))
        return [json.loads(event) for event in data if event != b"[DONE]"]

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]


@dataclass
class Standing:
    """An open house."""

    engine: ScriptedEngine
    pipeline: Recorder
    house: House
    served: Served
    mirror: Mirror
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    clock: list[float] = field(default_factory=lambda: [0.0])
    """Seconds by which the clock is ahead of whoever follows what becomes of answers."""
    state: dict[str, Any] = field(default_factory=dict)
    """More for the body of status."""

    @property
    def metrics(self) -> Metrics:
        return self.house.metrics

    @property
    def traffic(self) -> Traffic:
        return self.served.runner.app[TRAFFIC]

    async def connect(self, unix: bool = False) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if unix:
            return await asyncio.open_unix_connection(str(self.served.socket_path))
        return await asyncio.open_connection("127.0.0.1", self.served.port)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str | None] | None = None,
        *,
        unix: bool = False,
    ) -> Reply:
        """One request on its own connection. A header given as None is left out."""
        reader, writer = await self.connect(unix)
        try:
            writer.write(head_and_body(method, path, body, headers))
            return await read_reply(reader)
        finally:
            writer.close()


def head_and_body(
    method: str, path: str, body: Any = None, headers: dict[str, str | None] | None = None
) -> bytes:
    raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
    sent: dict[str, str | None] = {"Host": "127.0.0.1:8012", "User-Agent": "test"}
    if method == "POST":
        sent |= {"Content-Type": "application/json", "Content-Length": str(len(raw))}
    sent |= headers or {}
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value is not None)
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + raw


async def read_reply(reader: asyncio.StreamReader, seconds: float = 10.0) -> Reply:
    async with asyncio.timeout(seconds):
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in lines if line)
        headers = {name.lower(): value for name, _, value in pairs}
        if headers.get("transfer-encoding") == "chunked":
            body = await _chunks(reader)
        else:
            body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Reply(int(first.split()[1]), headers, body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return body


@contextlib.asynccontextmanager
async def standing(
    script: Callable[[Submit], str] | str = "answer()",
    *,
    server: Server | None = None,
    patience: Patience | None = None,
    loaded: bool = True,
    doors: Doors | None = None,
    found: bool = False,
    recall: Recall | None = None,
) -> AsyncIterator[Standing]:
    """An open house on port 0 and on a Unix socket in a folder of its own, whose path is short for macOS.
    `found`: on the socket of FORETYPE_HOME, as a daemon of this build. Without `recall` all answers are runs.
    """
    with tempfile.TemporaryDirectory(prefix="ft") as folder:
        settings = Settings(
            server=server or Server(port=0), doors=doors or Doors(), recall=recall or Recall(on=False)
        )
        socket = instance.prepare_runtime() / "daemon.sock" if found else Path(folder, "d.sock")
        async with _standing(Path(folder), socket, script, settings, patience, loaded) as house:
            yield house


@contextlib.asynccontextmanager
async def _standing(
    folder: Path,
    socket: Path,
    script: Callable[[Submit], str] | str,
    settings: Settings,
    patience: Patience | None,
    loaded: bool,
) -> AsyncIterator[Standing]:
    engine = ScriptedEngine(
        script if callable(script) else lambda job: script, loaded=loaded, vocabulary=folder / "vocabulary"
    )
    metrics = Metrics()
    pipeline = Pipeline(engine, settings, metrics)
    mirror = pipeline.mirror
    ledger = Ledger(folder / "state" / "ledger.db", settings.ledger)
    ledger.start()
    pipeline.record = lambda *passed: ledger.add(
        replay.entry(*passed, profile=engine.profile or PROFILE, build="b")
    )
    pipeline.unplanned = lambda *passed: ledger.add(
        replay.unplanned(*passed, profile=engine.profile, build="b")
    )
    clock = [0.0]
    feedback = Acceptance(
        ledger,
        lambda path: document.text if (document := known(mirror, path)) else None,
        clock=lambda: time.time() + clock[0],
    )
    recorder = Recorder(pipeline)
    stopped = asyncio.Event()
    state: dict[str, Any] = {}

    async def status() -> dict[str, Any]:
        return {"pid": 1, **state}

    house = House(
        pipeline=recorder,
        settings=settings,
        status=status,
        hello=lambda: {
            "name": "foretype",
            "version": "0",
            "build": instance.build_id(),
            "pid": 1,
            "started": 2.0,
        },
        stop=stopped.set,
        engine=engine,
        metrics=metrics,
        documents=mirror,
        ledger=ledger,
        feedback=feedback,
        patience=patience or Patience(),
    )
    served = await serve(build(house), house, socket, 0)
    try:
        yield Standing(engine, recorder, house, served, mirror, stopped, clock, state)
    finally:
        engine.go_on()
        await served.close()
        await pipeline.close()
        await engine.close()
        feedback.close()
        await asyncio.to_thread(ledger.close)
