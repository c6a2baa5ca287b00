"""`foretype complete FILE:LINE:COL`: one completion in the terminal, with what it cost."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daemon import lifecycle
from daemon.cli import common
from daemon.documents import positions
from daemon.doors import client
from daemon.errors import BadRequest, EngineFailed, Loading, ModelError
from daemon.settings import Settings

_POLL_S = 0.1
_TIME_MS = 60_000
"""A person who asked once waits longer than an editor does at each key."""
_ABOVE = 3
"""Lines shown above the cursor's."""
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


def register(subparsers: Any) -> None:
    """Add the command."""
    words = "complete at a place in a file and show the ghost text"
    parser = subparsers.add_parser(
        "complete", help=words, description=f"{words}; starts the daemon if none runs"
    )
    parser.add_argument(
        "place", metavar="FILE:LINE[:COL]", help="line and column from 1; no column: the line's end"
    )
    parser.add_argument("--json", action="store_true", help="the daemon's whole answer")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="most tokens to generate")
    parser.add_argument("--lines", choices=("auto", "line", "block", "free"), help="how much to answer")
    parser.add_argument("--no-recall", action="store_true", help="ask the model, whatever is known already")
    parser.add_argument("--stdin", action="store_true", help="read the text from stdin; FILE only names it")
    common.add_settings(parser)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    file, line, column = _place(arguments.place)
    text = _read(file, arguments.stdin)
    offset = _offset(text, line, column, arguments.place)
    settings = common.load(arguments)
    lifecycle.up(common.serve_arguments(arguments), settings.server.token)
    at = dataclasses.replace(client.address(), token=settings.server.token)
    _wait_for_model(settings, at)
    body: dict[str, Any] = {
        "path": str(file.absolute()),
        "text": text,
        "cursor": {"offset": offset},
        "client": "foretype complete",
        "trigger": "manual",
        "recall": not arguments.no_recall,
        "time_ms": max(settings.complete.time_ms, _TIME_MS),
    }
    if arguments.max_tokens is not None:
        body["max_tokens"] = arguments.max_tokens
    if arguments.lines:
        body["lines"] = arguments.lines
    began = time.perf_counter()
    answer = client.request("POST", "/v1/complete", body, _patience(settings), at)
    elapsed = (time.perf_counter() - began) * 1000
    if answer.get("stop") == "engine":
        raise EngineFailed(
            f"the engine failed: {answer.get('note') or 'no reason given'}", "`foretype status`"
        )
    if arguments.json:
        print(json.dumps(answer, ensure_ascii=False, indent=2))
    else:
        for shown in _picture(text, offset, answer):
            print(shown)
        print(_costs(answer, elapsed))
    return 0


def _patience(settings: Settings) -> float:
    """Seconds for the answer: its time limit, and some for waiting behind others."""
    return max(settings.complete.time_ms, _TIME_MS) / 1000 + 30.0


def _place(text: str) -> tuple[Path, int, int | None]:
    """FILE:LINE or FILE:LINE:COL; the file's name may hold colons itself (drive letters)."""
    head, _, last = text.rpartition(":")
    file, _, middle = head.rpartition(":")
    if file and middle.isdecimal() and last.isdecimal():
        return Path(file).expanduser(), int(middle), int(last)
    if head and last.isdecimal():
        return Path(head).expanduser(), int(last), None
    raise BadRequest(f"{text!r} is no place in a file", "Write FILE:LINE:COL, for example src/orders.py:10:5")


def _read(file: Path, from_stdin: bool) -> str:
    if from_stdin:
        return positions.decode(sys.stdin.buffer.read())
    try:
        return positions.decode(file.read_bytes())
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror or error}", "Check the path") from error


def _offset(text: str, line: int, column: int | None, place: str) -> int:
    """The cursor's offset. A line that does not exist is an error; a column beyond the line means its end."""
    index = positions.LineIndex(text)
    if not 1 <= line <= len(index.starts):
        raise BadRequest(f"{place}: there is no line {line}", f"The file has {len(index.starts)} lines")
    if column is None:
        return index.line_end(line - 1)
    return index.offset(line - 1, column - 1, "utf-32")[0]


def _wait_for_model(settings: Settings, at: client.Address) -> None:
    """Until the engine is ready, with progress on a terminal. Raises ModelError, EngineFailed or Loading."""
    deadline = time.monotonic() + settings.engine.load_timeout_s
    told = ""
    while True:
        model = client.request("GET", "/v1/status", at=at).get("model", {})
        if model.get("phase") in ("ready", "unloaded"):  # the request loads it
            break
        if model.get("phase") == "failed":
            kind = ModelError if model.get("remedy") else EngineFailed
            raise kind(
                model.get("detail") or "the engine failed",
                model.get("remedy") or "See `foretype logs engine`",
            )
        if time.monotonic() > deadline:
            raise Loading("the model does not get ready", "`foretype status` shows what it waits for")
        told = _progress(f"{model.get('detail') or model.get('phase')} {model.get('share', 0.0):.0%}", told)
        time.sleep(_POLL_S)
    if told and sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _progress(text: str, told: str) -> str:
    if text != told and sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif not told:
        common.note("waiting for the model …")
    return text


def _picture(text: str, offset: int, answer: dict[str, Any]) -> Iterator[str]:
    """The lines around the cursor with the ghost text in its place, dim on a terminal."""
    replace = answer.get("replace", {})
    start, end = replace.get("start", offset), replace.get("end", offset)
    ghost = str(answer.get("text", "")).replace("\r\n", "\n").replace("\r", "\n")
    before = text[:start].replace("\r\n", "\n").split("\n")
    after = text[end:].replace("\r\n", "\n").split("\n")[0]
    number = len(before)
    shown = before[-1 - _ABOVE : -1]
    for above, line in enumerate(shown, number - len(shown)):
        yield f"{above:>5} │ {line}"
    dim, plain = (_DIM, _PLAIN) if _colours() else ("", "")
    lines = ghost.split("\n")
    for row, line in enumerate(lines):
        head = before[-1] if row == 0 else ""
        tail = after if row == len(lines) - 1 else ""
        gutter = f"{number:>5} │ " if row == 0 else f"{'':>5} ┆ "
        yield f"{gutter}{head}{dim}{line}{plain}{tail}"


def _colours() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _costs(answer: dict[str, Any], elapsed: float) -> str:
    times, work = answer.get("timings", {}), answer.get("counters", {})
    if not answer.get("text"):
        note = f"; {answer['note']}" if answer.get("note") else ""
        return f"nothing to show (stop: {answer.get('stop')}{note}) after {elapsed:.0f} ms"
    if known := answer.get("recall"):
        return f"known already ({known}), no model ran: {elapsed:.0f} ms; `--no-recall` asks the model"
    prompt = (
        f"{work.get('prompt', 0)} = {work.get('reused', 0)} reused + {work.get('evaluated', 0)} evaluated"
    )
    first = f"the first after {times.get('first', 0.0):.0f} ms"
    return (
        f"{work.get('generated', 0)} tokens in {elapsed:.0f} ms, {first}; "
        f"prompt {prompt}; stop: {answer.get('stop')}"
    )
