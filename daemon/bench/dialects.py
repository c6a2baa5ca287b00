"""What clients of each dialect need of an answer: without it they show nothing, or believe in no server.

Each rule is one that a client's own code has; see the sources of llama.vim, tabby-agent, Zed and Continue.
Reasons quote no text of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from daemon.bench.sessions import Sent
from daemon.bench.wire import Reply

T = TypeVar("T")
_COMPACT = re.compile(rb'"content"\s*:"')
"""What llama.vim looks for; an answer with a blank behind the colon is dropped without a word."""
_CONTROL = ("<|fim_", "<|file_sep|>", "<|repo_name|>", "<|endoftext|>")


class _Choice(msgspec.Struct):
    index: int
    text: str


class _Ended(_Choice):
    finish_reason: str


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class _OpenAI(msgspec.Struct):
    id: str
    object: str
    created: int
    model: str
    choices: list[_Ended]
    usage: _Usage


class _Piece(msgspec.Struct):
    choices: list[_Choice]


class _Tabby(msgspec.Struct):
    id: str
    choices: list[_Choice]


class _TabbyHealth(msgspec.Struct):
    model: str
    device: str
    arch: str
    cpu_info: str
    cpu_count: int
    cuda_devices: list[str]
    version: dict[str, str]


class _Settings(msgspec.Struct):
    disable_client_side_telemetry: bool


class _Status(msgspec.Struct):
    status: str


class _Line(msgspec.Struct):
    model: str
    created_at: str
    response: str
    done: bool


class Wrong(Exception):
    """An answer that its client cannot use, and why."""


def dialect(sent: Sent) -> str:
    """Whose request it is; the path of those that no rule is known for."""
    path = sent.path.partition("?")[0]
    if path == "/v1/completions":
        return "tabby" if b'"segments"' in sent.body else "openai"
    return _NAMES.get(path, path)


def check(sent: Sent, reply: Reply) -> str:
    """The text that the client shows, empty where it asks for none. Raises Wrong."""
    if reply.status != 200:
        raise Wrong(f"status {reply.status}")
    rule = _RULES.get(dialect(sent))
    text = rule(_decoded(sent.body or b"{}", dict[str, Any]), reply.body) if rule is not None else ""
    if any(word in text for word in _CONTROL):
        raise Wrong("a control token in the text")
    return text


def _decoded(raw: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.MsgspecError as error:
        raise Wrong(str(error)) from error


def _infill(asked: dict[str, Any], raw: bytes) -> str:
    """One line that begins with a brace; each field asked for under its whole path."""
    if asked.get("n_predict") == 0:
        return ""  # nobody looks at it
    if not raw.startswith(b"{") or b"\n" in raw:
        raise Wrong("not one line that begins with a brace")
    if not _COMPACT.search(raw):
        raise Wrong('no "content":" without a blank')
    found = _decoded(raw, dict[str, Any])
    for field in asked.get("response_fields") or ():
        kind = str if field == "content" else bool if field == "truncated" else (int, float)
        if not isinstance(found.get(field), kind):
            raise Wrong(f"no {field}")
    return str(found["content"])


def _openai(asked: dict[str, Any], raw: bytes) -> str:
    if asked.get("stream"):
        return _streamed(raw)
    return "".join(choice.text for choice in _decoded(raw, _OpenAI).choices[:1])


def _streamed(raw: bytes) -> str:
    *events, last = [line for line in raw.split(b"\n") if line]
    if last != b"data: [DONE]":
        raise Wrong("a stream without its end")
    pieces = [_decoded(event.removeprefix(b"data: "), _Piece) for event in events]
    return "".join(choice.text for piece in pieces for choice in piece.choices)


def _tabby(asked: dict[str, Any], raw: bytes) -> str:
    found = _decoded(raw, _Tabby)
    if not found.id.startswith("cmpl-"):
        raise Wrong("an id that is none")
    if [choice.index for choice in found.choices] != list(range(len(found.choices))):
        raise Wrong("choices out of order")
    return "".join(choice.text for choice in found.choices[:1])


def _events(asked: dict[str, Any], raw: bytes) -> str:
    if raw:
        raise Wrong("a body")
    return ""


def _tabby_health(asked: dict[str, Any], raw: bytes) -> str:
    if not _decoded(raw, _TabbyHealth).model:
        raise Wrong("no model")
    return ""


def _settings(asked: dict[str, Any], raw: bytes) -> str:
    _decoded(raw, _Settings)
    return ""


def _health(asked: dict[str, Any], raw: bytes) -> str:
    if _decoded(raw, _Status).status != "ok":
        raise Wrong("not ok")
    return ""


def _ollama(asked: dict[str, Any], raw: bytes) -> str:
    lines = [_decoded(line, _Line) for line in raw.splitlines()]
    if [line.done for line in lines] != [False] * (len(lines) - 1) + [True]:
        raise Wrong("not done at its end")
    return "".join(line.response for line in lines)


_NAMES = {
    "/infill": "infill",
    "/health": "health",
    "/v1/health": "tabby health",
    "/v1beta/server_setting": "tabby settings",
    "/v1/events": "tabby events",
    "/api/generate": "ollama",
}
_RULES: dict[str, Callable[[dict[str, Any], bytes], str]] = {
    "infill": _infill,
    "openai": _openai,
    "tabby": _tabby,
    "tabby health": _tabby_health,
    "tabby settings": _settings,
    "tabby events": _events,
    "health": _health,
    "ollama": _ollama,
}
