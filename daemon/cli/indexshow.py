"""The index in lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from daemon.cli.report import size
from indexer import walk
from indexer.answers import Place, Use
from indexer.errors import RootUnavailable
from indexer.frames import RootState
from indexer.records import FileRow, Snippet

REASONS = {
    "denied": "its name says that it holds secrets",
    "ignored": "git ignores it",
    "binary": "it is no text",
    "encoding": "its bytes are text of no known encoding",
    "size": "it is larger than index.max_file_kb",
    "line": "it holds a line longer than index.max_line",
    "depth": "it nests too deeply",
    "generated": "it says that it is generated",
    "minified": "it is minified",
    "special": "it is no plain file",
    "unreadable": "it cannot be read",
    "budget": "its parse took longer than index.budget_ms",
    "link": "it is a link",
}


def line(state: RootState) -> str:
    """One root in one line."""
    return f"{state.path}  {state.phase}  {state.files} files, {state.lines} lines"


def state(state: RootState) -> Iterator[str]:
    """Everything about one root."""
    done = "complete" if state.complete else f"not complete ({state.done} of {state.total} files)"
    yield f"root       {state.path}"
    yield f"state      {state.phase}{f' ({state.detail})' if state.detail else ''}, {done}"
    yield f"files      {state.files} with {state.lines} lines, {state.queue} waiting"
    languages = sorted(state.languages.items(), key=lambda item: -item[1])
    counts = ", ".join(f"{name or 'text'} {count}" for name, count in languages)
    yield f"languages  {counts or 'none'}"
    for reason, example in state.skipped.items():
        yield f"skipped    {example.count} {reason}: {', '.join(example.paths)}"
    yield f"delay      {state.delay_ms:.0f} ms from the last change until it could be found"
    yield (
        f"disk       database {size(state.database_bytes)}, log {size(state.wal_bytes)}, "
        f"n-grams {size(state.ngram_bytes)}"
    )
    if state.rebuilt:
        yield f"rebuilt    {state.rebuilt}"
    for reason in state.degraded:
        yield f"degraded   {reason}"


def snippets(found: Sequence[Snippet]) -> list[str]:
    """Where each is, and its first line."""
    return [f"{s.path}:{s.start_line + 1}  {_first(s.text)}" for s in found]


def places(found: Sequence[Place]) -> list[str]:
    """Definitions: where each is, its kind and signature."""
    return [
        f"{p.path}:{p.symbol.span.start_line + 1}  {p.symbol.kind}  "
        f"{p.symbol.signature or p.symbol.qualified}"
        for p in found
    ]


def uses(found: Sequence[Use]) -> list[str]:
    """Uses: where each is, its role and what it stands in."""
    return [
        f"{u.path}:{u.reference.line + 1}  {u.reference.role}"
        f"{f'  in {u.inside.qualified}' if u.inside else ''}"
        for u in found
    ]


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:160]


def explanation(root: Path, path: str, row: FileRow | None) -> tuple[dict[str, Any], list[str]]:
    """Why a file is, or is not, in the index."""
    if row is not None and not row.reason:
        words = f"indexed as {row.language or 'text'}: {row.lines} lines, {row.tokens} tokens"
    elif row is not None:
        words = f"not parsed ({row.reason}): {REASONS.get(row.reason, row.reason)}"
    elif not (root / path).exists():
        words = "there is no such file"
    else:
        words = _unlisted(root, path)
    reason = row.reason if row else "absent"
    return {"path": path, "indexed": bool(row and not row.reason), "reason": reason, "why": words}, [
        f"{path}: {words}"
    ]


def _unlisted(root: Path, path: str) -> str:
    try:
        listing = walk.scan(root)
    except RootUnavailable as error:
        return str(error)
    if any(stat.path == path for stat in listing.files):
        return "not indexed yet"
    return "git's ignore rules (or those of a parent folder) leave it out"
