"""Foretype's own wire, as the measurements use it: the native door, and the peer's `/infill` beside it.

Everything that must change when the native door changes is here."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from daemon.bench import wire
from daemon.errors import EngineFailed
from daemon.nouns import Lines

COMPLETE = "/v1/complete"
STATUS = "/v1/status"
LEDGER = "/v1/ledger"
DOCUMENTS = "/v1/documents"
INFILL = "/infill"
PATIENT_MS = 120_000
"""No time limit that a slow machine would meet: both sides then do the same work."""
CLIENT = "bench"
_encode = msgspec.json.encode
FAILED = ("engine", "cancelled", "superseded")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as the client saw it. Times in ms from before the connection was opened."""

    text: str
    first: float
    """Until the first text; until the end where there was none."""
    last: float
    """Until the whole answer was there."""
    prompt: int = 0
    evaluated: int = 0
    generated: int = 0
    stop: str = ""
    raw: str = ""
    """Before polish; the text itself on the peer's side."""
    engine_ms: float = 0.0
    """What the engine says it took, queueing included."""
    margins: tuple[float, ...] = ()
    tokens: tuple[int, ...] = ()
    reason: str = ""
    epoch: int = 0
    head: str = ""
    ahead: int = 0
    """Prompt tokens up to the end of the stable context."""
    stable: int = 0
    """Tokens of stable context among them."""
    shown: tuple[tuple[str, int], ...] = ()
    """(source, tokens) of the prompt's segments up to there."""
    recall: str = ""
    """How the answer was known without the model; empty: the model ran for it."""

    @property
    def reused(self) -> int:
        """Prompt tokens that were not evaluated again."""
        return self.prompt - self.evaluated

    @property
    def full(self) -> bool:
        """Whether all tokens that were asked for were generated."""
        return self.stop == "limit"

    @property
    def whole(self) -> bool:
        """Whether it ended by itself."""
        return self.stop not in FAILED

    @property
    def blank(self) -> bool:
        """Nothing to show."""
        return not self.text.strip()


def ask_body(
    prefix: str,
    suffix: str,
    *,
    tokens: int,
    lines: Lines = "free",
    stream: bool = True,
    milliseconds: int = PATIENT_MS,
    **more: Any,
) -> bytes:
    """A native request. `more` are the measurement fields: cache, heal, context, …"""
    fields = {"prefix": prefix, "suffix": suffix, "max_tokens": tokens, "lines": lines}
    return _encode(
        {**fields, "stream": stream, "time_ms": milliseconds, "client": CLIENT, "raw": True, **more}
    )


def document_body(
    text: str,
    cursor: int,
    path: Path,
    *,
    tokens: int,
    lines: Lines = "free",
    stream: bool = True,
    client: str = CLIENT,
    **more: Any,
) -> bytes:
    """A native request as an editor makes it: the whole document, its path, the cursor in code points. `more`
    are the measurement fields."""
    place = {"text": text, "cursor": {"offset": cursor}, "path": str(path), "client": client}
    limits = {"max_tokens": tokens, "lines": lines, "time_ms": PATIENT_MS}
    return _encode({**place, **limits, "stream": stream, **more})


def peer_body(
    lines: str,
    head: str,
    suffix: str,
    *,
    tokens: int,
    stop: tuple[str, ...] = (),
    stream: bool = True,
    cache: bool = True,
) -> bytes:
    """The same question to llama-server, in the shape that llama.vim sends it; greedy."""
    window = {"input_prefix": lines, "prompt": head, "input_suffix": suffix, "input_extra": []}
    limits = {"n_predict": tokens, "stop": stop, "temperature": 0, "top_k": 1, "samplers": ["top_k"]}
    return _encode({**window, **limits, "cache_prompt": cache, "stream": stream, "id_slot": 0})


async def ask(endpoint: wire.Endpoint, body: bytes) -> Answer:
    """One streamed native request."""
    return await _timed(wire.events(endpoint, COMPLETE, body), _ours_text, ours_answer)


async def ask_peer(endpoint: wire.Endpoint, body: bytes) -> Answer:
    """One streamed request to llama-server."""
    return await _timed(wire.events(endpoint, INFILL, body), _peer_text, peer_answer)


async def ask_whole(endpoint: wire.Endpoint, body: bytes) -> Answer:
    """One native request that is answered in one piece."""
    began = time.perf_counter()
    return _whole(await wire.fetch(endpoint, "POST", COMPLETE, body), began)


def ask_waiting(endpoint: wire.Endpoint, body: bytes) -> Answer:
    """The same, with less of the client's own time in it. Blocks."""
    began = time.perf_counter()
    return _whole(wire.waited(endpoint, "POST", COMPLETE, body), began)


def _whole(event: Any, began: float) -> Answer:
    taken = (time.perf_counter() - began) * 1e3
    return ours_answer(event, str(event.get("text", "")), taken, taken)


async def ask_peer_whole(endpoint: wire.Endpoint, body: bytes) -> Answer:
    """One request to llama-server that is answered in one piece."""
    began = time.perf_counter()
    event = await wire.fetch(endpoint, "POST", INFILL, body)
    taken = (time.perf_counter() - began) * 1e3
    return peer_answer(event, str(event.get("content", "")), taken, taken)


async def _timed(events: AsyncGenerator[Any, None], text_of: Any, answer_of: Any) -> Answer:
    began = time.perf_counter()
    pieces: list[str] = []
    first, final = 0.0, {}
    async with aclosing(events) as running:
        async for event in running:
            piece = text_of(event)
            if piece:
                first = first or time.perf_counter()
                pieces.append(piece)
            else:
                final = event
    last = time.perf_counter()
    if "error" in final:
        raise EngineFailed(f"a request failed: {final['error'].get('message', 'no reason given')}")
    first_ms, last_ms = ((first or last) - began) * 1e3, (last - began) * 1e3
    answer: Answer = answer_of(final, "".join(pieces), first_ms, last_ms)
    return answer


def _ours_text(event: Any) -> str:
    return "" if "counters" in event else str(event.get("text", ""))


def _peer_text(event: Any) -> str:
    return str(event.get("content", ""))


def ours_answer(event: Any, text: str, first: float, last: float) -> Answer:
    """From the native door's last event."""
    counters, timings = event.get("counters", {}), event.get("timings", {})
    shown = _to_context(event)
    return Answer(
        text=text,
        first=first,
        last=last,
        prompt=counters.get("prompt", 0),
        evaluated=counters.get("evaluated", 0),
        generated=counters.get("generated", 0),
        stop=event.get("stop", "engine"),
        raw=event.get("raw", text),
        engine_ms=timings.get("total", 0.0),
        margins=tuple(event.get("margins") or ()),
        tokens=tuple(event.get("tokens") or ()),
        reason=event.get("reason", ""),
        epoch=event.get("epoch", 0),
        head=event.get("head", ""),
        ahead=sum(s["tokens"] for s in shown),
        stable=sum(s["tokens"] for s in shown if s["kind"] == "context"),
        shown=tuple((s["source"], s["tokens"]) for s in shown),
        recall=event.get("recall", ""),
    )


def _to_context(event: Any) -> list[dict[str, Any]]:
    """Segments up to the last of stable context."""
    segments: list[dict[str, Any]] = list(event.get("segments", ()))
    places = [place for place, segment in enumerate(segments) if segment["kind"] == "context"]
    return segments[: places[-1] + 1] if places else []


def peer_answer(event: Any, text: str, first: float, last: float) -> Answer:
    """From llama-server's last event."""
    timings = event.get("timings", {})
    evaluated = timings.get("prompt_n", 0)
    return Answer(
        text=text,
        first=first,
        last=last,
        prompt=evaluated + timings.get("cache_n", 0),
        evaluated=evaluated,
        generated=timings.get("predicted_n", 0),
        stop=event.get("stop_type", "engine"),
        raw=text,
        engine_ms=timings.get("prompt_ms", 0.0) + timings.get("predicted_ms", 0.0),
    )
