"""A private daemon for one measurement: its own folder, its own port, ended whatever happens.

The user's daemon is left alone; only the models folder is shared.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from daemon import paths
from daemon.bench import ours, wire
from daemon.bench.children import ended
from daemon.bench.outcome import Outcome
from daemon.bench.peer import Shape
from daemon.errors import BadRequest, EngineFailed, ForetypeError
from indexer import crew, tokens

READY_S = 420.0
"""Loading and measuring a large model from a slow disk."""
INDEXED_S = 1800.0
RESTED_S = 120.0
_POLL_S = 0.1
_LOOK_S = 0.05
_FAILED = ("failed", "stopped")
_POWER = {"battery": "same", "unload_minutes": 0}
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")
Section = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Rig:
    """A running daemon. `pid` is the daemon's own process."""

    endpoint: wire.Endpoint
    pid: int
    first: dict[str, Any]
    """Its status when it was ready."""
    home: Path
    """Its own folder: settings, indexes, the model's exported vocabulary."""

    async def status(self) -> dict[str, Any]:
        """Its status now."""
        found: dict[str, Any] = await wire.fetch(self.endpoint, "GET", ours.STATUS)
        return found

    async def report(self) -> dict[str, Any]:
        """What its engine has done since it was started; see engine/frames.py Report."""
        return dict((await self.status()).get("engine") or {})

    async def indexed(self) -> None:
        """Wait until all roots are searchable. Raises EngineFailed when that takes more than 30 minutes."""
        deadline = time.monotonic() + INDEXED_S
        while time.monotonic() < deadline:
            found = (await self.status()).get("index") or {}
            states = found.get("roots") or []
            if states and all(state["complete"] and state["phase"] == "ready" for state in states):
                return
            await asyncio.sleep(_POLL_S)
        raise EngineFailed(
            "the private daemon does not index the folder", "`foretype bench index --root DIR`"
        )

    async def rested(self, until: float = math.inf) -> None:
        """Wait until no idle work waits or runs, or until then by the monotonic clock.

        Raises EngineFailed when that takes more than 2 minutes.
        """
        deadline = time.monotonic() + RESTED_S
        while (now := time.monotonic()) < min(until, deadline):
            if (await self.status())["resting"]:
                return
            await asyncio.sleep(max(0.0, min(_LOOK_S, until - now)))
        if deadline < until:
            raise EngineFailed(f"idle work did not end within {RESTED_S:g} s", "See `foretype logs`")

    def counter(self) -> Callable[[str], int]:
        """The model's own count of a text's tokens. Raises BadRequest when its vocabulary cannot be used."""
        files = sorted((self.home / "cache/vocabulary").glob("*.msgpack"))
        tokenizer, note = crew.tokenizer_of(str(files[0]) if files else "")
        if tokenizer is None:
            raise BadRequest(f"the model's tokens cannot be counted: {note}", "Choose another --model")
        return lambda text: tokens.count(tokenizer.encode(text))

    @property
    def profile(self) -> dict[str, Any]:
        """What evaluation costs here and on what, gathered from the status."""
        status = self.first
        device, model, memory = (dict(status.get(key) or {}) for key in ("device", "model", "memory"))
        facts = ("name", "path", "sha256", "architecture", "trained_context")
        return {
            **(status.get("profile") or {}),
            "backend": device.get("backend", ""),
            "device": device.get("name", ""),
            "threads": device.get("threads", 0),
            "why": device.get("why", ""),
            "kv_bytes": memory.get("kv_bytes") or 0,
            "compute_bytes": memory.get("compute_bytes") or 0,
            "repacked_bytes": memory.get("repacked_bytes") or 0,
            "model": {**{key: model.get(key) for key in facts}, "weights_bytes": memory.get("weights_bytes")},
        }

    @property
    def shape(self) -> Shape:
        """What a peer must share to be comparable."""
        profile = self.profile
        return Shape(
            path=profile["model"]["path"],
            threads=profile["threads"],
            context=profile["context"],
            flash_attention=profile["flash_attention"],
            kv_type=profile["kv_type"],
            gpu=profile["backend"].upper() != "CPU",
        )

    def outcome(self, name: str, seed: int) -> Outcome:
        """An empty result that says what was measured on."""
        profile = self.profile
        model = dict(profile.pop("model", {}))
        model["path"] = Path(str(model.get("path", ""))).name
        return Outcome(name=name, seed=seed, model=model, profile=profile)


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def environment(home: Path) -> dict[str, str]:
    """Of the private daemon: its own home, the user's models, no proxies, nothing that steers Python."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON") and k.lower() not in PROXIES}
    return {**kept, "FORETYPE_HOME": str(home), "FORETYPE_MODELS": str(paths.models_dir())}


@asynccontextmanager
async def running(
    model: str | None,
    *,
    idle: bool = False,
    root: Path | None = None,
    server: Section | None = None,
    engine: Section | None = None,
    complete: Section | None = None,
    ledger: Section | None = None,
    recall: Section | None = None,
    folder: Path | None = None,
    **context: int,
) -> AsyncIterator[Rig]:
    """Start a daemon with `model` (catalogue name or path; None: the default) and wait until it can answer.

    `idle` lets it work while nobody asks: only where no other side is measured meanwhile. `root` is a folder
    to index, see Rig.indexed; `server`, `engine`, `complete`, … are sections of settings.
    Without `recall` every request is answered by the model; unless settings say otherwise every place is
    answered, and nothing waits for a key.
    Its home is in `folder`, where it stays; without one it goes with the daemon.
    Raises EngineFailed with the daemon's last words when it does not get ready.
    """
    with tempfile.TemporaryDirectory(prefix="foretype-", ignore_cleanup_errors=True) as made:
        place = folder or Path(made)
        endpoint = wire.Endpoint("127.0.0.1", free_port())
        answers: Section = {"comments": True, "strings": True, "debounce_ms": 0, **(complete or {})}
        given = {"server": server, "engine": engine, "complete": answers, "ledger": ledger, "power": _POWER}
        given |= {"context": {"idle": idle, **context}, "recall": recall or {"on": False}}
        _write(place / "home/config/config.toml", given, root)
        command = [sys.executable, "-I", "-m", "daemon.cli.main", "serve", "--port", str(endpoint.port)]
        command += ["--model", _found(model)] if model else []
        with (place / "said.log").open("w+b") as log:
            child = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment(place / "home"), cwd=place,
            )  # fmt: skip
            try:
                yield Rig(endpoint, child.pid, await _ready(child, endpoint, log), place / "home")
            finally:
                await ended(child)


def _write(file: Path, sections: Mapping[str, Section | None], root: Path | None) -> None:
    """The settings file of the private daemon."""
    index: Section = {} if root is None else {"on": True, "battery": "run", "roots": [str(root)]}
    lines = []
    for name, values in {**sections, "index": index}.items():
        lines += [
            f"[{name}]",
            *(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in (values or {}).items()),
        ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _found(model: str) -> str:
    path = Path(model).expanduser()
    return str(path.resolve()) if path.is_file() else model


async def _ready(
    child: asyncio.subprocess.Process, endpoint: wire.Endpoint, log: IO[bytes]
) -> dict[str, Any]:
    deadline = time.monotonic() + READY_S
    why = "it did not answer"
    while time.monotonic() < deadline and child.returncode is None:
        try:
            status: dict[str, Any] = await wire.fetch(endpoint, "GET", ours.STATUS)
        except ForetypeError as error:
            why = error.message
        else:
            model = status.get("model") or {}
            if model.get("phase") == "ready":
                return status
            why = f"its engine is {model.get('phase')}: {model.get('detail') or model.get('remedy')}"
            if model.get("phase") in _FAILED:
                break
        await asyncio.sleep(_POLL_S)
    log.seek(0)
    words = [line for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
    said = f" ({words[-1].strip()})" if words else ""
    raise EngineFailed(f"the private daemon is not ready: {why}{said}", "`foretype doctor` checks the parts")
