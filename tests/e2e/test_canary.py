"""Canary secrets in every place from which text could reach a model: they are found in nothing that is shown,
kept or sent. Whatever new keeps or shows text gets a line in `shown_or_kept` or in `prompts`."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import random
import string
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.living import Home, home, until

from daemon.doors import client
from daemon.engine.client import EngineClient, EngineModel
from daemon.engine.frames import Report, Submit
from daemon.engine.protocol import EngineState
from daemon.machine import EngineProfile
from daemon.nouns import Completion, CompletionRequest, Extra, Generation, Limits
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Settings
from indexer.frames import DATABASE
from indexer.read import Reader
from indexer.tokens import to_ids
from indexer.vocabulary import load

__all__ = ["home"]

RANDOM = random.Random(11)
Places = Iterator[tuple[str, bytes]]


def drawn(count: int) -> str:
    return "".join(RANDOM.choice(string.ascii_letters + string.digits) for _ in range(count))


def key() -> list[str]:
    """Lines of a private key's body."""
    body = base64.b64encode(RANDOM.randbytes(300)).decode()
    return [body[at : at + 64] for at in range(0, len(body), 64)]


def pem(body: list[str], kind: str) -> str:
    return "\n".join([f"-----BEGIN {kind} KEY-----", *body, f"-----END {kind} KEY-----", ""])


ENVIRONMENT, RSA, PEM = "cnry" + drawn(20), key(), key()
SOURCE, CLIPBOARD, EDIT, URL = ("cnry" + drawn(24) for _ in range(4))
FILES = {
    ".env": f"DATABASE_PASSWORD={ENVIRONMENT}\n",
    "deploy/id_rsa": pem(RSA, "OPENSSH PRIVATE"),
    "deploy/server.pem": pem(PEM, "PRIVATE"),
    "app/settings.py": f'PORT = 8012\ndb_password = "{SOURCE}"\n\n\ndef port():\n    return PORT\n',
    "app/orders.py": "from app.settings import port\n\n\ndef total(order):\n    return \n\n\nX = 1\n",
}
DENIED = [ENVIRONMENT, *RSA, *PEM]
ALL = [*DENIED, SOURCE, CLIPBOARD, EDIT, URL]
OFFERED = (
    Extra(text=FILES[".env"], filename=".env"),
    Extra(text=FILES[".env"], filename="notes"),
    Extra(text=FILES["deploy/id_rsa"], filename="deploy/id_rsa"),
    Extra(text=FILES["deploy/server.pem"], filename=""),
    Extra(text="\n".join(RSA[1:4]), filename="paste.txt"),
    Extra(text=FILES["app/settings.py"], filename="app/settings.py"),
    Extra(text=f"export API_TOKEN={CLIPBOARD}\n", kind="clipboard"),
    Extra(
        text=f"def connect():\n    url = 'postgres://app:{URL}@db/x'\n    return url\n", filename="app/db.py"
    ),
    Extra(text=f"def login():\n    secret_key = '{EDIT}'\n    return secret_key\n", filename="app/login.py"),
)
"""As clients offer them: open files and pieces of them, the clipboard, what was edited last."""
PREFIX, SUFFIX = FILES["app/orders.py"].split("return \n")
PREFIX += "return "


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text, encoding="utf-8")
    return tmp_path / "project"


def leaks(places: Places, canaries: list[str]) -> list[str]:
    return [f"{name}: {c[:8]}…" for name, data in places for c in canaries if c.encode() in data]


class Recording:
    """The real engine; a note is taken of what it is asked and of what it answers."""

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine
        self.jobs: list[Submit] = []
        self.texts: list[str] = []

    @property
    def state(self) -> EngineState:
        return self._engine.state

    @property
    def profile(self) -> EngineProfile | None:
        return self._engine.profile

    @property
    def vocabulary(self) -> tuple[str, str]:
        return self._engine.vocabulary

    async def stream(self, job: Submit) -> AsyncGenerator[str | Generation, None]:
        self.jobs.append(job)
        async with contextlib.aclosing(self._engine.stream(job)) as events:
            async for event in events:
                self.texts.append(event if isinstance(event, str) else event.text)
                yield event

    def supersede(self, job_id: str) -> None:
        self._engine.supersede(job_id)

    def follow(self, job_id: str) -> None:
        self._engine.follow(job_id)

    async def report(self) -> Report | None:
        return await self._engine.report()

    async def close(self) -> None:
        await self._engine.close()


@pytest.fixture
async def engine(tiny_model: Path) -> AsyncIterator[Recording]:
    found = EngineClient(Settings(), EngineModel("tiny", tiny_model, "canary"))
    await found.start()
    await asyncio.wait_for(found.ready.wait(), 60)
    yield Recording(found)
    await found.close()


def prompts(engine: Recording, pieces: list[bytes], metrics: Metrics, answers: list[Completion]) -> Places:
    """What the engine was given, and all that a completion leaves behind in the daemon."""
    for job in engine.jobs:
        text = b"".join(pieces[number] for number in to_ids(job.tokens))
        yield f"prompt {job.id}", text + "\n".join((job.line, job.suffix, *job.above)).encode()
    yield "generations", "".join(engine.texts).encode()
    yield "metrics", json.dumps(metrics.snapshot()).encode()
    for answer in answers:
        yield f"completion {answer.id}", repr(answer).encode()


async def test_no_prompt_holds_a_canary(engine: Recording) -> None:
    metrics, answers = Metrics(), []
    pipeline = Pipeline(engine, Settings(), metrics)
    typed = ["", "to", "total(", "total(order"]
    for number, (text, extras) in enumerate((t, OFFERED[at:]) for t in typed for at in (0, 4)):
        request = CompletionRequest(
            id=str(number),
            client=f"editor {len(extras)}",
            door="test",
            prefix=PREFIX + text,
            suffix=SUFFIX,
            path="app/orders.py",
            extras=extras,
            limits=Limits(tokens=8),
            context="now",
        )
        answers.append(await pipeline.complete(request))
    await pipeline.close()
    pieces = load(Path(engine.vocabulary[0])).pieces
    places = list(prompts(engine, pieces, metrics, answers))
    assert leaks(iter(places), ALL) == []
    shown = places[0][1].decode()
    for kept in ("REDACTED", "PORT = 8012", "def connect():", "def login():", "export API_TOKEN="):
        assert kept in shown
    assert "DATABASE_PASSWORD=REDACTED" in shown
    assert metrics.total("redacted", "denied file") == 2 * len(typed)
    assert metrics.total("redacted") > 10 * len(typed)


def shown_or_kept(home: Home, told: dict[str, str]) -> Places:
    """What people and programs are told, and every file that the daemon and its children wrote."""
    for name, text in told.items():
        yield name, text.encode()
    for file in sorted(home.folder.rglob("*")):
        if file.is_file() and file.suffix != ".gguf":
            yield str(file.relative_to(home.folder)), file.read_bytes()


def index(home: Home) -> Path:
    (database,) = home.folder.rglob(DATABASE)
    return database


def ask(home: Home, project: Path) -> dict[str, Any]:
    """Completions from two doors; their whole answers."""
    at = client.Address(home.socket)
    extras = [{"text": extra.text, "filename": extra.filename} for extra in OFFERED]
    native = {"prefix": PREFIX, "suffix": SUFFIX, "path": "app/orders.py", "extras": extras, "max_tokens": 8}
    other = {
        "input_prefix": PREFIX,
        "input_suffix": SUFFIX,
        "input_extra": extras,
        "prompt": "",
        "n_predict": 8,
    }
    whole = {
        "text": PREFIX + SUFFIX,
        "cursor": {"offset": len(PREFIX)},
        "path": str(project / "app" / "orders.py"),
        "extras": [{"text": extra.text, "filename": extra.filename, "kind": extra.kind} for extra in OFFERED],
        "context": "now",
        "max_tokens": 8,
    }
    pieces = [{"body": extra.text, "filepath": extra.filename} for extra in OFFERED]
    found = {"declarations": pieces, "relevant_snippets_from_changed_files": pieces, "clipboard": CLIPBOARD}
    segments = {
        "segments": {"prefix": PREFIX, "suffix": SUFFIX, "filepath": "app/orders.py", **found},
        "debug_options": {"return_prompt": True, "return_snippets": True},
    }
    login = {"path": str(project / "app" / "login.py"), "text": OFFERED[-1].text, "event": "open"}
    answers = {
        "document": client.request("POST", "/v1/documents", login, 60, at),
        "native": client.request("POST", "/v1/complete", native, 60, at),
        "infill": client.request("POST", "/infill", other, 60, at),
        "context": client.request("POST", "/v1/complete", whole, 60, at),
        "tabby": client.request("POST", "/v1/completions", segments, 60, at),
    }
    for name in ("native", "infill", "context"):
        explained = client.request("GET", f"/v1/ledger/{answers[name]['id']}", None, 60, at)
        answers[f"ledger {name}"] = explained
    return answers


def test_nothing_that_the_daemon_shows_or_keeps_holds_a_canary(
    home: Home, project: Path, tiny_model: Path
) -> None:
    home.up("--model", str(tiny_model))
    told = {"index add": home.run("index", "add", str(project)).stdout}
    until(lambda: home.status()["model"]["phase"] == "ready", 60)
    told |= {name: json.dumps(answer) for name, answer in ask(home, project).items()}
    place = f"{project}/app/orders.py:5:12"
    told["complete"] = home.run("complete", place, "--json", "--max-tokens", "8").stdout
    told["status"] = json.dumps(home.status())
    told["status for people"] = home.run("status").stdout
    told["index status"] = home.run("index", "status", str(project)).stdout
    told |= {f"logs {name}": home.run("logs", name).stdout for name in ("daemon", "engine", "indexer")}
    told["audit"] = home.run("audit").stdout
    told["stats"] = home.run("stats", "--json").stdout
    assert json.loads(told["status"])["redacted"]["denied file"] >= 2
    assert "export API_TOKEN=" in told["ledger context"]
    assert "secret_key = " in told["ledger context"]
    with Reader(index(home)) as reader:
        rows = {row.path: row.reason for row in reader.files()}
        assert rows["app/settings.py"] == ""
        for name in (".env", "deploy/id_rsa", "deploy/server.pem"):
            assert rows.get(name, "denied") == "denied"
            assert reader.chunks(name) == ()
    home.run("down")
    until(lambda: not home.socket.exists())
    places = list(shown_or_kept(home, told))
    assert {"complete", "status", "logs daemon"} <= {name for name, data in places if data}
    indexed = str(index(home).relative_to(home.folder).parent)
    assert leaks(((n, d) for n, d in places if not n.startswith(indexed)), ALL) == []
    assert leaks(iter(places), DENIED) == []
