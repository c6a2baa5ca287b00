"""Recorded client sessions: the requests that an editor really sent. Pure besides loading."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daemon.errors import BadRequest

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


def load(path: Path) -> list[Recorded]:
    """All /infill requests of a .jsonl recording, in order. Raises BadRequest naming file and line."""
    try:
        rows = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadRequest(f"the session {path} cannot be read: {error.strerror}", "Check the path") from error
    found = []
    for number, row in enumerate(rows, 1):
        try:
            entry = json.loads(row)
            if entry["path"] == "/infill":
                found.append(parse(float(entry["t"]), entry["body"]))
        except (ValueError, KeyError, TypeError) as error:
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
