"""What a client could send beside the file: ring-buffer chunks, the imported files, their outlines.

The ring is gathered as llama.vim does (16 chunks, size 64): entering and leaving a file queues the 65 lines
around the cursor, of which a random run of 33 is kept; a jump inside a file queues what lies beyond the lines
sent with each request; a chunk more than 0.9 like a new one gives way to it. Newest last. The visits are of a
person who knows the code: to the files that this one imports, the most used last, before them to those that
import it, before them to its neighbours; in each to a definition that this file names, and elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from daemon.bench.masking import Mask, Source
from indexer.records import Outline

Extra = dict[str, str]
Count = Callable[[str], int]
CHUNKS, CHUNK = 16, 64
_SCOPE, _PREFIX, _SUFFIX = 1024, 256, 64
"""llama.vim's lines around a jump: those searched, and those that every request holds anyway."""
_ALIKE = 0.9
_SMALL = 3


@dataclass(frozen=True, slots=True)
class Shelf:
    """The masked repository. `outlines` are those of the real index."""

    sources: Mapping[str, Source]
    texts: Mapping[str, str]
    outlines: Callable[[str], tuple[Outline, ...]]
    count: Count
    """Tokens of a text, by the model's own vocabulary."""
    room: int
    """Tokens that all extras together may have."""

    def cost(self, path: str, text: str) -> int:
        """Tokens of an extra in a prompt, at most: a separator, its name as a line, the text."""
        return 1 + self.count(f"{path}\n{text}\n")


def nothing(shelf: Shelf, mask: Mask, seed: int) -> list[Extra]:
    """No other text."""
    return []


def ring(shelf: Shelf, mask: Mask, seed: int) -> list[Extra]:
    """The ring's chunks that fit, the newest being the last."""
    rng = random.Random(f"{seed} {mask.name}")
    visible = shelf.texts[mask.path]
    chunks: list[tuple[str, list[str]]] = []
    for path in reversed(_visited(shelf, mask, rng)):
        lines = shelf.texts[path].split("\n")
        for place in (rng.randrange(len(lines)), _meant(shelf, path, visible, rng)):
            at = rng.randrange(len(lines)) if place is None else place
            _push(chunks, path, lines[max(0, at - CHUNK // 2) : at + CHUNK // 2 + 1], rng)
    lines = visible.split("\n")
    line = mask.line
    for window in (
        lines[max(0, line - _SCOPE) : max(0, line - _PREFIX)],
        lines[line + _SUFFIX : line + _SUFFIX + CHUNK],
    ):
        _push(chunks, mask.path, window, rng)
    return _fitting(shelf, [(path, "\n".join(lines) + "\n") for path, lines in chunks[-CHUNKS:]])


def fulltext(shelf: Shelf, mask: Mask, seed: int) -> list[Extra]:
    """The imported files, the most used last; the one that does not fit is cut at a line."""
    taken: list[Extra] = []
    room = shelf.room
    for path in shelf.sources[mask.path].imported:
        text = beginning(shelf.texts[path], room, partial(shelf.cost, path))
        if not text:
            break
        room -= shelf.cost(path, text)
        taken.append({"filename": path, "text": text})
    return taken[::-1]


def outlined(shelf: Shelf, mask: Mask, seed: int) -> list[Extra]:
    """The outlines of exactly the files that `fulltext` shows."""
    shown = [extra["filename"] for extra in fulltext(shelf, mask, seed)]
    texts = ((path, next((o.text for o in shelf.outlines(path) if o.symbol < 0), "")) for path in shown)
    return _fitting(shelf, [(path, text) for path, text in texts if text])


def _visited(shelf: Shelf, mask: Mask, rng: random.Random) -> list[str]:
    """Files a person was in before, the latest first: as many as fill the ring with two chunks each."""
    here = shelf.sources[mask.path]
    users = [p for p, s in shelf.sources.items() if mask.path in s.imported]
    folder = mask.path.rpartition("/")[0]
    beside = [p for p, s in shelf.sources.items() if s.language and p.rpartition("/")[0] == folder]
    for paths in (users, beside):
        rng.shuffle(paths)
    found = dict.fromkeys((*here.imported, *users, *beside))
    return [path for path in found if path != mask.path][: CHUNKS // 2]


def _meant(shelf: Shelf, path: str, visible: str, rng: random.Random) -> int | None:
    """The line of a definition in `path` that the visible text names."""
    named = [s for s in shelf.sources[path].symbols if s.exported and s.name in visible]
    return rng.choice(named).span.start_line if named else None


def _push(chunks: list[tuple[str, list[str]]], path: str, lines: Sequence[str], rng: random.Random) -> None:
    if len(lines) < _SMALL:
        return
    chunk = list(lines)
    if len(chunk) + 1 >= CHUNK:
        start = rng.randint(0, max(0, len(chunk) - CHUNK // 2))
        chunk = chunk[start : start + CHUNK // 2 + 1]
    chunks[:] = [other for other in chunks if _alike(other[1], chunk) <= _ALIKE]
    chunks.append((path, chunk))


def _alike(left: Sequence[str], right: Sequence[str]) -> float:
    known = set(right)
    return 2.0 * sum(line in known for line in left) / (len(left) + len(right))


def _fitting(shelf: Shelf, pieces: Sequence[tuple[str, str]]) -> list[Extra]:
    """The last pieces that have room."""
    kept: list[Extra] = []
    room = shelf.room
    for path, text in reversed(pieces):
        room -= shelf.cost(path, text)
        if room < 0:
            break
        kept.append({"filename": path, "text": text})
    return kept[::-1]


def beginning(text: str, room: int, count: Count) -> str:
    """The beginning of `text`, whole lines, in at most `room` tokens."""
    while text and (size := count(text)) > room:
        keep = int(len(text) * room / size * 0.98)
        text = text[: text.rfind("\n", 0, keep) + 1]
    return text
