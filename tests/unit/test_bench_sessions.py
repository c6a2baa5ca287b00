"""Recorded sessions: only what a keystroke caused is replayed."""

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.bench import keystrokes, sessions
from daemon.errors import BadRequest


def body(prompt: str, predict_ms: int = 250, n_predict: int = 128, suffix: str = "\n") -> dict[str, Any]:
    return {
        "input_prefix": "def f():\n", "prompt": prompt, "input_suffix": suffix, "n_predict": n_predict,
        "t_max_predict_ms": predict_ms,
    }  # fmt: skip


def write(folder: Path, bodies: list[dict[str, Any]]) -> Path:
    path = folder / "session.jsonl"
    rows = [{"t": float(n), "path": "/infill", "body": b} for n, b in enumerate(bodies)]
    rows.insert(0, {"t": 0.0, "path": "/health", "body": None})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_follow_ups_and_warm_ups_are_left_out(tmp_path: Path) -> None:
    recorded = [body("    r"), body("    return 1", 1000), body("    re"), body("", 1, n_predict=0)]
    session = sessions.load(write(tmp_path, recorded))
    assert [entry.speculative for entry in session] == [False, True, False, False]
    assert [entry.head for entry in sessions.keystrokes(session)] == ["    r", "    re"]
    assert session[0].prefix == "def f():\n    r"


def test_a_growing_line_counts_as_typing(tmp_path: Path) -> None:
    recorded = [body("a"), body("ab"), body("a"), body("a", suffix="x"), body("z", suffix="x")]
    questions = keystrokes.from_session(sessions.load(write(tmp_path, recorded)))
    assert [question.typed for question in questions] == [False, True, True, False, False]


def test_a_damaged_row_is_named_by_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, [body("a")])
    path.write_text(path.read_text(encoding="utf-8") + '{"t": 1, "path": "/infill"}\n', encoding="utf-8")
    with pytest.raises(BadRequest, match=r"session\.jsonl:3"):
        sessions.load(path)


def test_a_missing_session_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"none\.jsonl"):
        sessions.load(tmp_path / "none.jsonl")
