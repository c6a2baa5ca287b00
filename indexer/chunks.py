"""A file's text in stretches for full-text search.

text, ParsedFile → Chunk, …: split where a symbol starts, else at blank lines
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from indexer.records import Chunk, ParsedFile

FEWEST, MOST = 20, 60
"""Lines of a chunk; fewer at the end of a file, beside a skipped line, and where lines are long."""
LARGEST = 4096
"""Bytes of a chunk in UTF-8. A longer line is skipped: nobody searches for it."""


def chunks(text: str, parsed: ParsedFile | None) -> tuple[Chunk, ...]:
    """Chunks in order, without overlap; blank stretches and lines beyond LARGEST are left out.

    Lines end with `\\n` only, as in Span, so that lines fit those of `parsed`; `\\r` stays in the text.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if text.isascii():
        sizes = [len(line) + 1 for line in lines]
    else:
        sizes = [len(line.encode("utf-8", "replace")) + 1 for line in lines]
    ends = list(accumulate(sizes, initial=0))
    long = [i for i, size in enumerate(sizes) if size > LARGEST] if max(sizes, default=0) > LARGEST else []
    splits = _splits(lines, parsed)
    found: list[Chunk] = []
    start = 0
    for stop in (*long, len(lines)):
        while start < stop:
            end = _end(start, stop, ends, splits)
            body = "\n".join(lines[start:end])
            if body and not body.isspace():
                found.append(Chunk(start_line=start, end_line=end, text=body + "\n"))
            start = end
        start = stop + 1
    return tuple(found)


def _splits(lines: Sequence[str], parsed: ParsedFile | None) -> tuple[list[int], ...]:
    """Lines before which to split, better kinds first."""
    kinds = []
    if parsed is not None and parsed.symbols:
        kinds.append(sorted({s.span.start_line for s in parsed.symbols if s.parent < 0}))
        kinds.append(sorted({s.span.start_line for s in parsed.symbols if s.parent >= 0}))
    kinds.append([i + 1 for i, line in enumerate(lines) if not line or line.isspace()])
    return tuple(kinds)


def _end(start: int, stop: int, ends: Sequence[int], splits: Sequence[Sequence[int]]) -> int:
    """Where the chunk that starts at `start` ends: after at least one line, by `stop`."""
    fits = bisect_right(ends, ends[start] + LARGEST, start + 1) - 1
    last = max(min(start + MOST, fits), start + 1)
    if stop <= last:
        return stop
    for lines in splits:
        i = bisect_right(lines, last)
        if i > bisect_left(lines, start + FEWEST):
            return lines[i - 1]
    return last
