"""Recorded client sessions: the requests that an editor really sent. Pure besides loading."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from daemon.errors import BadRequest

T = TypeVar("T")
FOLLOW_UP_MS = 1000
"""llama.vim gives its first request 250 ms and its speculative follow-up 1,000 ms to predict."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request of a session. `time` in seconds."""

    time: float
    lines: str
    head: str
    suffix: str
    speculative: bool
    """Asks for what comes after an answer that nobody has accepted yet."""
    warm: bool
    """Asks for evaluation only."""

    @property
    def prefix(self) -> str:
        """Everything before the cursor."""
        return self.lines + self.head


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as its client sent it; no body is empty."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def load(path: Path) -> list[Recorded]:
    """All /infill requests of a .jsonl recording, in order. Raises BadRequest naming file and line."""
    found = _rows(path, lambda row: parse(float(row["t"]), row["body"]) if row["path"] == "/infill" else None)
    return [entry for entry in found if entry is not None]


def load_sent(path: Path) -> list[Sent]:
    """All requests of a recording, in order. Raises BadRequest naming file and line."""
    return _rows(path, _sent)


def _sent(row: dict[str, Any]) -> Sent:
    body = b"" if row["body"] is None else json.dumps(row["body"], ensure_ascii=False).encode()
    return Sent(
        str(row["method"]), str(row["path"]), {str(k): str(v) for k, v in row["headers"].items()}, body
    )


def _rows(path: Path, read: Callable[[dict[str, Any]], T]) -> list[T]:
    try:
        rows = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadRequest(f"the session {path} cannot be read: {error.strerror}", "Check the path") from error
    found = []
    for number, row in enumerate(rows, 1):
        try:
            found.append(read(json.loads(row)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRequest(f"{path}:{number} is not a recorded request: {error!r}") from error
    return found


def parse(time: float, body: dict[str, Any]) -> Recorded:
    """One body as llama.vim sends it."""
    return Recorded(
        time=time,
        lines=str(body["input_prefix"]),
        head=str(body.get("prompt", "")),
        suffix=str(body["input_suffix"]),
        speculative=int(body.get("t_max_predict_ms", 0)) >= FOLLOW_UP_MS,
        warm=int(body.get("n_predict", 1)) == 0,
    )


def keystrokes(session: list[Recorded]) -> list[Recorded]:
    """Only what a keystroke caused: no speculative follow-ups, no warm-ups."""
    return [entry for entry in session if not entry.speculative and not entry.warm]
