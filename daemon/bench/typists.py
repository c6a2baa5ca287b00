"""Streams of edits in the shape of a measured editor session, each in a file of its own. Pure, and seeded.

The session (92 minutes, TypeScript): gaps between edits p10/p50/p90 21/113/581 ms, bursts of median 3 and p90
18 edits, 59 edits/s at most. A stream draws the length of a burst, then its gaps from the shorter part of
that distribution and the gap behind it from the longer part, so that both shapes hold at once. The longest
gap, LONGEST_S, is ours: with it a stream makes 0.4 edits a second, as the sittings of two editing traces do
(0.3 and 0.5, where a gap of 10 minutes ends a sitting).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

from daemon.bench import exactness, survey, traces
from indexer.languages import registry

LONGEST_S = 120.0
"""Longest gap. Between the percentiles, gaps are spread evenly over their logarithm."""
_GAPS = ((0.0, 1 / 59), (0.1, 0.021), (0.5, 0.113), (0.9, 0.581), (1.0, LONGEST_S))
"""Share of the gaps → seconds."""
_MEDIAN, _P90 = 3.0, 18.0
_SPREAD = math.log(_P90 / _MEDIAN) / NormalDist().inv_cdf(0.9)
"""Of the logarithm of a burst's length, taken as normal."""
PAUSES = 1.0 / (_MEDIAN * math.exp(_SPREAD**2 / 2))
"""Share of the gaps that end a burst: one by the mean length of a burst."""
SMALLEST, LARGEST = 2_000, 12_000
"""Bytes of a file to type in: it fits a naive prompt whole."""
SNIPPETS, SNIPPET = 4, 32
"""Random pieces of other files in a naive prompt, and the lines of each."""
LINES = 250
"""Lines of a generated file, at most and about."""


@dataclass(frozen=True, slots=True)
class Document:
    """One file on disk that a stream can type in."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Stream:
    """One person: `times` of the edits in seconds from the start."""

    name: str
    document: Document
    times: tuple[float, ...]
    trace: traces.Trace

    def states(self) -> Iterator[traces.State]:
        """The document after each edit."""
        return traces.states(self.trace, 0, len(self.times))


def gap(share: float) -> float:
    """Seconds that `share` (0–1) of the gaps stay below."""
    shares, seconds = zip(*_GAPS, strict=True)
    return math.exp(float(np.interp(share, shares, np.log(seconds))))


def edit_times(chance: random.Random, seconds: float) -> tuple[float, ...]:
    """When one stream edits within `seconds`; it has typed before, so that streams begin out of step."""
    at, found = -2 * LONGEST_S, []
    while at < seconds:
        length = max(1, round(_MEDIAN * math.exp(_SPREAD * chance.gauss(0.0, 1.0))))
        for left in range(length - 1, -1, -1):
            found.append(at)
            share = chance.random()
            at += gap(share * (1.0 - PAUSES) if left else 1.0 - share * PAUSES)
    return tuple(time for time in found if 0.0 <= time < seconds)


def documents(made: survey.Copy) -> list[Document]:
    """The source files of a copied folder that a stream can type in, by path."""
    found = []
    for path, data in sorted(made.texts.items()):
        if SMALLEST <= len(data) <= LARGEST and registry.language_for(path, data[: registry.HEAD]):
            text = data.decode()
            if any(len(line.lstrip()) >= exactness.LINE for line in text.split("\n")):
                found.append(Document(made.root / path, text))
    return found


def streams(library: Sequence[Document], count: int, seconds: float, seed: int) -> list[Stream]:
    """`count` streams, in different files as long as there are enough; equal for equal arguments."""
    chance = random.Random(f"{seed} {count}")
    order = chance.sample(library, len(library))
    return [_stream(n, order[n % len(order)], seconds, chance) for n in range(count)]


def _stream(number: int, document: Document, seconds: float, chance: random.Random) -> Stream:
    while not (times := edit_times(chance, seconds)):
        pass  # who does not type is no stream
    trace = exactness.typed_again(document.path.name, document.text, chance.getrandbits(32), len(times))
    return Stream(f"load-{number}", document, times, trace)


def snippets(library: Sequence[Document], chance: random.Random) -> list[dict[str, str]]:
    """Pieces of random files in random order."""
    found = []
    for document in chance.choices(library, k=SNIPPETS):
        lines = document.text.split("\n")
        at = chance.randrange(max(1, len(lines) - SNIPPET))
        found.append({"filename": document.path.name, "text": "\n".join(lines[at : at + SNIPPET]) + "\n"})
    return found
