"""Which spans of a repository are masked, and its texts without them. Pure, and the same for the same seed.

Three kinds: `rest` of a line from a token on, a `line` behind its indentation, a `block` below a line that
opens one. A span uses a name at least once, and takes no definition and no import away, so that what other
files need of this one stays whole. Offsets are bytes of UTF-8 text with LF line ends.
"""

from __future__ import annotations

import builtins
import io
import random
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from indexer import rank
from indexer.records import Symbol

Kind = Literal["rest", "line", "block"]
KINDS: tuple[Kind, ...] = ("rest", "line", "block")
_SHARES = {"rest": 0.35, "line": 0.35, "block": 0.3}
SHORTEST, LONGEST = 30, 2000
"""Lines of a file in which spans are masked."""
_PER_FILE, _APART = 4, 40
"""Most spans of one file, and the lines between two."""
_TESTS = 4
"""At most every so-manieth span is in a test."""
_LEAST, _MOST = 8, 120
"""Characters of a masked line, and those of the rest of one at most."""
_BLOCK = (2, 8)
"""Lines of a masked block."""
_DEFINERS = 5
"""A name that more files define says nothing about any of them."""
_NAME = 3
"""Characters; a shorter name is chance."""
_WORD = re.compile(rb"[^\W\d]\w*")
_TOKEN = re.compile(rb"[\w\x80-\xff]+|[^\w\s]")
"""A character of several bytes is never cut."""
_OPENERS = (b":", b"{")
_PASSED = re.compile(rb"\s(#|//|/\*|--)\s|^\s*(from|import)\b")
"""A comment behind code is nobody's guess; Python's `__future__` is in no list of imports."""
_ORDINARY = frozenset(
    name for kind in (builtins, str, bytes, int, list, dict, set, Path, io.StringIO) for name in dir(kind)
) | frozenset((
    "apply", "call", "catch", "concat", "delete", "every", "filter", "find", "finally", "forEach", "has",
    "includes", "keys", "length", "map", "of", "push", "reduce", "reject", "resolve", "set", "shift", "slice",
    "some", "splice", "test", "then", "toString", "trim", "unshift",
))  # fmt: skip
"""Names of every program: where the repository defines one too, it is mostly not meant."""


@dataclass(frozen=True)
class Source:
    """One file as the index knows it. `near`: paths of what it sees: its imports, and what those import."""

    path: str
    language: str
    text: bytes
    symbols: tuple[Symbol, ...] = ()
    names: tuple[tuple[int, str], ...] = ()
    """(byte, name) of every identifier in code: comments and strings have none."""
    import_lines: frozenset[int] = frozenset()
    imported: tuple[str, ...] = ()
    """Paths of imported files, the most used first."""
    near: frozenset[str] = frozenset()

    @cached_property
    def starts(self) -> list[int]:
        """Where each line starts, and the end of the text."""
        ends = [found.end() for found in re.finditer(rb"\n", self.text)]
        return [0, *ends, *([] if self.text.endswith(b"\n") else [len(self.text)])]

    @property
    def test(self) -> bool:
        """Whether it is one, by its name."""
        return rank.is_test(self.path)

    @cached_property
    def words(self) -> Counter[bytes]:
        """Names in the text, imports left out."""
        return self.words_without(())

    def words_without(self, spans: Collection[tuple[int, int]]) -> Counter[bytes]:
        """Names in what is visible beside the masked `spans`, imports left out."""
        gone = [*spans, *((self.starts[n], self.starts[n + 1]) for n in self.import_lines)]
        return Counter(_WORD.findall(without(self.text, gone)))


@dataclass(frozen=True, slots=True)
class Mask:
    """One masked span."""

    path: str
    kind: Kind
    start: int
    end: int
    line: int
    text: str
    """What stands there."""
    lines: str
    """The whole lines that it touches, each without white space around it."""
    names: tuple[str, ...]
    """Identifiers in the span."""
    cross: tuple[str, ...] = ()
    """Those of another file that nothing in this one shows, save its imports."""
    copied: bool = False
    """The same lines stand elsewhere in the repository."""

    @property
    def name(self) -> str:
        """Of the position, in journals: no source text."""
        return f"{self.path}:{self.line + 1}:{self.kind}"


def without(text: bytes, spans: Collection[tuple[int, int]]) -> bytes:
    """`text` with `spans` taken out."""
    kept, at = [], 0
    for start, end in sorted(spans):
        kept.append(text[at:start])
        at = max(at, end)
    return b"".join((*kept, text[at:]))


def draw(sources: Sequence[Source], count: int, seed: int) -> tuple[Mask, ...]:
    """`count` masks at most, half of them cross-file as far as there are such, in the order of files.

    One from each file in turn, files shuffled by the seed; see the limits above.
    """
    rng = random.Random(seed)
    order = [s for s in sources if SHORTEST <= len(s.starts) - 1 <= LONGEST]
    order.sort(key=lambda source: source.path)
    rng.shuffle(order)
    defined = definers(sources)
    pools = {source.path: _candidates(source, rng) for source in order}
    chosen: dict[str, list[Mask]] = {source.path: [] for source in order}
    taken = tests = 0
    for cross, wanted in ((True, count // 2), (False, count)):

        def fits(source: Source, mask: Mask, cross: bool = cross) -> bool:
            if any(abs(mask.line - other.line) < _APART for other in chosen[source.path]):
                return False
            rest = source.words - Counter(_WORD.findall(source.text[mask.start : mask.end]))
            return bool(crossing(source, mask.names, rest, defined)) == cross

        for source in order * _PER_FILE:
            full = len(chosen[source.path]) >= _PER_FILE or (source.test and tests >= count // _TESTS)
            if taken < wanted and not full and (mask := _next(source, pools[source.path], _order(rng), fits)):
                chosen[source.path].append(mask)
                taken, tests = taken + 1, tests + source.test
    return _judged(sources, chosen, defined)


def _order(rng: random.Random) -> list[Kind]:
    """The kinds, each the first as often as its share says."""
    return sorted(KINDS, key=lambda kind: rng.random() ** (1 / _SHARES[kind]), reverse=True)


def masked(sources: Sequence[Source], masks: Sequence[Mask]) -> dict[str, bytes]:
    """Every file's text without the masked spans."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for mask in masks:
        spans.setdefault(mask.path, []).append((mask.start, mask.end))
    return {source.path: without(source.text, spans.get(source.path, ())) for source in sources}


def around(source: Source, mask: Mask, masks: Sequence[Mask]) -> tuple[str, str]:
    """(text before, text after) a mask, the file's other masks taken out too."""
    before = [(m.start, m.end) for m in masks if m.path == mask.path and m.end <= mask.start]
    after = [(m.start - mask.end, m.end - mask.end) for m in masks if m.path == mask.path]
    later = [span for span in after if span[0] >= 0]
    head, tail = without(source.text[: mask.start], before), without(source.text[mask.end :], later)
    return head.decode(), tail.decode()


def definers(sources: Sequence[Source]) -> Mapping[str, frozenset[str]]:
    """Name → paths of the files that define it."""
    found: dict[str, set[str]] = {}
    for source in sources:
        for symbol in source.symbols:
            found.setdefault(symbol.name, set()).add(source.path)
    return {name: frozenset(paths) for name, paths in found.items()}


def crossing(
    source: Source,
    names: Collection[str],
    visible: Mapping[bytes, int],
    defined: Mapping[str, frozenset[str]],
) -> tuple[str, ...]:
    """Those of `names` that only another file defines, one that is near, and that are not `visible`."""
    found = []
    for name in dict.fromkeys(names):
        paths = defined.get(name, frozenset())
        far = len(name) < _NAME or name in _ORDINARY or len(paths) > _DEFINERS or source.path in paths
        if not far and paths & source.near and not visible.get(name.encode()):
            found.append(name)
    return tuple(found)


def _next(
    source: Source, pool: Sequence[Mask], kinds: Sequence[Kind], fits: Callable[[Source, Mask], bool]
) -> Mask | None:
    for kind in kinds:
        for mask in pool:
            if mask.kind == kind and fits(source, mask):
                return mask
    return None


def _judged(
    sources: Sequence[Source], chosen: Mapping[str, Sequence[Mask]], defined: Mapping[str, frozenset[str]]
) -> tuple[Mask, ...]:
    """With what the other masks leave visible taken into account."""
    masks = [mask for path in sorted(chosen) for mask in sorted(chosen[path], key=lambda m: m.start)]
    whole = [_stripped(text.decode()) for text in masked(sources, masks).values()]
    known = {source.path: source for source in sources}
    found = []
    for mask in masks:
        spans = [(m.start, m.end) for m in chosen[mask.path]]
        source = known[mask.path]
        cross = crossing(source, mask.names, source.words_without(spans), defined)
        copied = any(f"\n{mask.lines}\n" in text for text in whole)
        found.append(replace(mask, cross=cross, copied=copied))
    return tuple(found)


def _stripped(text: str) -> str:
    lines = (line.strip() for line in text.split("\n"))
    return "\n" + "\n".join(line for line in lines if line) + "\n"


def _candidates(source: Source, rng: random.Random) -> list[Mask]:
    """Every span that may be masked, shuffled."""
    lines = {_line_of(source, byte) for byte, _ in source.names}
    defining = {_line_of(source, symbol.name_start) for symbol in source.symbols}
    usable = lines - defining - source.import_lines
    found = []
    for line in sorted(usable):
        start, end = source.starts[line], source.starts[line + 1]
        text = source.text[start:end].rstrip()
        if _PASSED.search(text):
            continue
        start, end = end - len(source.text[start:end].lstrip()), start + len(text)
        if _LEAST <= end - start <= _MOST:
            found.append(_mask(source, "line", start, end))
        cuts = [m.start() + start for m in _TOKEN.finditer(source.text[start:end])][1:]
        cuts = [c for c in cuts if _LEAST <= end - c <= _MOST and _within(source, c, end)]
        if cuts:
            found.append(_mask(source, "rest", rng.choice(cuts), end))
    found += _blocks(source, usable, defining | source.import_lines)
    rng.shuffle(found)
    return found


def _blocks(source: Source, usable: Collection[int], kept: Collection[int]) -> list[Mask]:
    lines = [line.rstrip() for line in source.text.split(b"\n")]
    found = []
    for opener, line in enumerate(lines[:-1]):
        first = opener + 1
        if not line.endswith(_OPENERS) or first not in usable:
            continue
        end = first
        while end < len(lines) and (not lines[end] or _indent(lines[end]) > _indent(line)):
            end += 1
        while end > first and not lines[end - 1]:
            end -= 1
        inside = range(first, end)
        if _BLOCK[0] <= len(inside) <= _BLOCK[1] and not any(n in kept for n in inside):
            start = source.starts[first] + _indent(lines[first])
            found.append(_mask(source, "block", start, source.starts[end - 1] + len(lines[end - 1])))
    return found


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def _line_of(source: Source, byte: int) -> int:
    return bisect_right(source.starts, byte) - 1


def _within(source: Source, start: int, end: int) -> tuple[str, ...]:
    """Names between two bytes, each once."""
    first, last = (bisect_left(source.names, (byte, "")) for byte in (start, end))
    return tuple(dict.fromkeys(name for _, name in source.names[first:last]))


def _mask(source: Source, kind: Kind, start: int, end: int) -> Mask:
    line = _line_of(source, start)
    head = source.text[source.starts[line] : start].decode()
    text = source.text[start:end].decode()
    lines, names = _stripped(head + text).strip("\n"), _within(source, start, end)
    return Mask(source.path, kind, start, end, line, text, lines, names)
