"""Where the tokens of prompts came from: exact counts over ledger rows, and one row spelled out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from daemon.nouns import Segment
from daemon.observe.entries import Entry
from indexer.tokens import to_ids

_ROLES = {
    "pre": "<|fim_prefix|>",
    "suf": "<|fim_suffix|>",
    "mid": "<|fim_middle|>",
    "sep": "<|file_sep|>",
    "rep": "<|repo_name|>",
    "pad": "<|fim_pad|>",
}
_WORK = ("reused", "evaluated", "generated")


def composition(entries: Sequence[Entry]) -> dict[str, Any]:
    """Tokens of all prompts together: by tier and kind, and by source; the largest first.

    `wrong` names the rows that do not add up, see Entry.exact: there must be none.
    A row that never reached the engine counts nothing.
    """
    reached = [entry for entry in entries if entry.counters.prompt]
    segments = [segment for entry in reached for segment in entry.segments]
    return {
        "requests": len(entries),
        "audited": len(reached),
        "prompt": sum(entry.counters.prompt for entry in reached),
        **{name: sum(getattr(entry.counters, name) for entry in reached) for name in _WORK},
        "kinds": _sums(segments, ("tier", "kind")),
        "sources": _sums((s for s in segments if s.source), ("tier", "kind", "source")),
        "wrong": [entry.id for entry in reached if not entry.exact],
    }


def _sums(segments: Iterable[Segment], names: tuple[str, ...]) -> list[dict[str, Any]]:
    counts: Counter[tuple[str, ...]] = Counter()
    for segment in segments:
        counts[tuple(getattr(segment, name) for name in names)] += segment.tokens
    return [{**dict(zip(names, key, strict=True)), "tokens": tokens} for key, tokens in counts.most_common()]


def summary(entry: Entry) -> dict[str, Any]:
    """A row as plain values for JSON, without its text."""
    found: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(entry, content=None))
    del found["content"]
    return found


def explanation(entry: Entry, pieces: Sequence[bytes]) -> dict[str, Any]:
    """A row with its exact prompt, segment by segment, and its answer; both None when they are not kept.

    `pieces`: bytes of each token of the row's model; empty when its vocabulary is gone.
    """
    content = entry.content
    if content is None:
        return {**summary(entry), "prompt": None, "answer": None}
    answer = {
        "text": content.shown,
        "raw": content.text,
        "must": content.must.decode("utf-8", "replace"),
        "stop_word": content.stop_word,
        "tokens": to_ids(content.generated),
        "limits": msgspec.to_builtins(content.limits),
    }
    return {**summary(entry), "prompt": _spelled(entry, to_ids(content.tokens), pieces), "answer": answer}


def _spelled(entry: Entry, ids: list[int], pieces: Sequence[bytes]) -> list[dict[str, Any]]:
    names = {getattr(entry.fim, role): name.encode() for role, name in _ROLES.items()}
    names[entry.bos] = b"<|bos|>"
    found, at = [], 0
    for segment in entry.segments:
        own = ids[at : at + segment.tokens]
        at += segment.tokens
        spelled = b"".join(names.get(i) or _piece(i, pieces) for i in own)
        found.append({**msgspec.to_builtins(segment), "text": spelled.decode("utf-8", "replace"), "ids": own})
    return found


def _piece(token: int, pieces: Sequence[bytes]) -> bytes:
    """Control tokens have no bytes and show their number."""
    return (pieces[token] if 0 <= token < len(pieces) else b"") or f"<|{token}|>".encode()
