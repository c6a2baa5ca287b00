"""Editing traces: what a person really typed, as a sequence of documents with a cursor. Pure besides loading.

Format (see josephg/editing-traces): gzip JSON {startContent, endContent, txns: [{time, patches: [[position,
deleted, inserted]]}]}, positions in code points, times ISO 8601.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from daemon.errors import BadRequest

PREFIX_LINES = 256
SUFFIX_LINES = 64
"""Whole lines above and below the cursor's, as llama.vim sends them."""
LOOK_AHEAD = 400
"""Edits that are searched for what was typed at a cursor."""

Patch = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Edit:
    """One transaction. `time` in seconds since the first."""

    time: float
    patches: tuple[Patch, ...]

    @property
    def cursor(self) -> int:
        """After the text that the last patch inserted, in the document after this edit."""
        position, _, inserted = self.patches[-1]
        return position + len(inserted)


@dataclass(frozen=True, slots=True)
class Trace:
    """A start text and the edits that lead to `end`."""

    name: str
    start: str
    end: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Keystroke:
    """The window around the cursor after edit `index`; did it go on where the last one ended?"""

    index: int
    time: float
    lines: str
    """Whole lines above the cursor's."""
    head: str
    """The cursor's line up to the cursor."""
    suffix: str
    typed: bool
    """One patch that inserts at, or deletes up to or from, the cursor of the edit before."""

    @property
    def prefix(self) -> str:
        """Everything of the window before the cursor."""
        return self.lines + self.head


def load(path: Path) -> Trace:
    """Read a trace. Raises BadRequest naming the file when it is absent or of another shape."""
    try:
        raw = path.read_bytes()
        data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        edits = tuple(_edits(data["txns"]))
        return Trace(path.name.split(".")[0], data["startContent"], data["endContent"], edits)
    except FileNotFoundError as error:
        raise BadRequest(f"there is no trace {path}", "Give --trace the path of a .json.gz trace") from error
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        why = f"{path} is not an editing trace: {error}"
        raise BadRequest(why, "Expected {startContent, endContent, txns}") from error


def _edits(transactions: list[dict[str, Any]]) -> Iterator[Edit]:
    first: float | None = None
    for entry in transactions:
        patches = tuple((int(p[0]), int(p[1]), str(p[2])) for p in entry["patches"])
        if not patches:
            continue
        stamp = datetime.fromisoformat(str(entry["time"]).replace("Z", "+00:00")).timestamp()
        first = stamp if first is None else first
        yield Edit(stamp - first, patches)


def apply(text: str, patches: tuple[Patch, ...]) -> str:
    """The text after `patches`, applied one after the other. Raises BadRequest when one lies outside."""
    for position, deleted, inserted in patches:
        if not 0 <= position <= position + deleted <= len(text):
            raise BadRequest(f"a patch at {position} lies outside a text of {len(text)} characters")
        text = text[:position] + inserted + text[position + deleted :]
    return text


def window(text: str, cursor: int) -> tuple[str, str, str]:
    """(whole lines above, line up to the cursor, its rest and lines below), as llama.vim cuts them."""
    line = text.rfind("\n", 0, cursor) + 1
    top = line
    for _ in range(PREFIX_LINES):
        if top == 0:
            break
        top = text.rfind("\n", 0, top - 1) + 1
    bottom = cursor
    for _ in range(SUFFIX_LINES + 1):
        found = text.find("\n", bottom)
        if found < 0:
            bottom = len(text)
            break
        bottom = found + 1
    return text[top:line], text[line:cursor], text[cursor:bottom]


def continues(before: int, edit: Edit) -> bool:
    """Whether `edit` types, or deletes backwards, at the place where the cursor stood before it: what follows
    the cursor stays as it was."""
    if len(edit.patches) != 1:
        return False
    position, deleted, _ = edit.patches[0]
    return before == position + deleted


@dataclass(frozen=True, slots=True)
class State:
    """The whole document after one edit. `pause`: seconds since the edit before it."""

    index: int
    text: str
    cursor: int
    typed: bool
    pause: float


def states(trace: Trace, start: int, limit: int) -> Iterator[State]:
    """The document after each of the edits `start` … `start + limit`."""
    text, cursor, time = trace.start, 0, 0.0
    for index, edit in enumerate(trace.edits[: start + limit]):
        text = apply(text, edit.patches)
        if index >= start:
            yield State(index, text, edit.cursor, continues(cursor, edit), max(0.0, edit.time - time))
        cursor, time = edit.cursor, edit.time


def replay(trace: Trace, start: int = 0, limit: int | None = None) -> Iterator[Keystroke]:
    """The keystrokes of edits `start` … `start + limit`. Applies all edits before them first."""
    text, cursor = trace.start, 0
    stop = len(trace.edits) if limit is None else min(len(trace.edits), start + limit)
    for index, edit in enumerate(trace.edits[:stop]):
        text = apply(text, edit.patches)
        if index >= start:
            lines, head, suffix = window(text, edit.cursor)
            yield Keystroke(index, edit.time, lines, head, suffix, continues(cursor, edit))
        cursor = edit.cursor


def typed_after(edits: tuple[Edit, ...], index: int, most: int = 256) -> str:
    """What the person typed at the cursor of edit `index` next, corrections included.

    Follows the edits after it while each is one patch that inserts at the end of what was typed so far, or
    deletes (and replaces) only at its end; the first edit elsewhere ends it. At most `most` characters.
    """
    cursor, typed = edits[index].cursor, ""
    for edit in edits[index + 1 : index + 1 + LOOK_AHEAD]:
        position, deleted, inserted = edit.patches[0]
        at_end = position + deleted == cursor + len(typed)
        if len(edit.patches) != 1 or position < cursor or not at_end:
            break
        typed = typed[: position - cursor] + inserted
        if len(typed) >= most:
            break
    return typed[:most]
