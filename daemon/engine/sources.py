"""Drafts without a model: what followed the last words wherever they stand in text that was already seen.

    earlier answers | text alike | other text of the prompt | suffix | prefix + middle + generated  →  Found

The next token follows the end of the middle, not the end of the prompt: `… <prefix> P <suffix> S <middle> M`
is searched in logical order. All texts lie in one array, so that one vectorised pass finds every place where
the last two tokens stand; from there each place is followed backwards as long as any of them agrees. Method:
prompt lookup (Saxena 2023), with the longest match, the most frequent next token and its latest place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daemon.engine.binding import Ids
from daemon.machine import FimIds
from indexer.ngrams import NgramReader

LONGEST, SHORTEST = 16, 2
"""Tokens of a match."""
GAP = -1
"""Stands between texts and in place of control tokens: nothing matches across it."""
_GROWTH = 256
"""Tokens that the array grows by."""
_TRIED = 32
"""Places looked at for one that continues with a half-typed word."""
OWN, NGRAMS = "own", "ngrams"
NAMES = (OWN, "suffix", "context", "similar", "earlier", NGRAMS)
"""All sources here, the ones preferred at equal lengths first."""


Places = npt.NDArray[np.intp]


class Found(NamedTuple):
    """What followed the last `length` tokens in `source`."""

    tokens: Ids
    source: str
    length: int


class Parts(NamedTuple):
    """A prompt taken apart. `logical` is the text that the next token continues."""

    context: Ids
    suffix: Ids
    logical: Ids


def parts(prompt: Ids, fim: FimIds) -> Parts:
    """Split at the last markers, whatever their order; a prompt without all three is logical text alone."""
    places = []
    for name in ("pre", "suf", "mid") if fim.usable else ():
        found = np.flatnonzero(prompt == getattr(fim, name))
        if len(found):
            places.append((int(found[-1]), name))
    if len(places) < 3:
        return Parts(prompt[:0], prompt[:0], prompt)
    starts = sorted(places)
    ends = [*(at for at, _ in starts[1:]), len(prompt)]
    between = {name: prompt[at + 1 : end] for (at, name), end in zip(starts, ends, strict=True)}
    logical = np.concatenate([between["pre"], between["mid"]])
    return Parts(prompt[: starts[0][0]], between["suf"], logical)


class Owed:
    """Which tokens may come next while the bytes `must` are reproduced. `pieces` are all tokens' bytes."""

    def __init__(self, pieces: Sequence[bytes], must: bytes) -> None:
        self._pieces = pieces
        self._must = must
        self._paid = 0

    def after(self, generated: Sequence[int]) -> bytes:
        """What is still owed behind `generated`."""
        if not self._must:
            return b""
        written = b"".join(self._pieces[token] for token in generated)
        if len(written) >= len(self._must):
            self._must = b""
        return self._must[len(written) :]

    def agrees(self, tokens: Sequence[int], owed: bytes) -> bool:
        """Whether text that begins with `tokens` reproduces `owed`, as far as it goes."""
        for token in tokens:
            if not owed:
                return True
            piece = self._pieces[token]
            if not piece or not (piece.startswith(owed) or owed.startswith(piece)):
                return False
            owed = owed[len(piece) :]
        return True


class Text:
    """Everything that one request can draft from, growing by what it generates.

    `texts` are (source, ids), the one worth most last: the logical text, which grows. It is searched itself
    only when `within`. Ids that `control` marks (shape: vocabulary) end a continuation.
    """

    def __init__(
        self, texts: Sequence[tuple[str, Ids]], control: npt.NDArray[np.bool_], within: bool = True
    ) -> None:
        total = LONGEST + sum(len(ids) + 1 for _, ids in texts) + _GROWTH
        self._ids: Ids = np.full(total, GAP, np.int32)
        self._names = [name for name, _ in texts]
        self._starts: list[int] = []
        at = LONGEST  # so that a match can be followed backwards anywhere
        for _, ids in texts:
            self._starts.append(at)
            self._ids[at : at + len(ids)] = np.where(control[ids], GAP, ids)
            at += len(ids) + 1
        self._n = at - 1
        self._first = self._n
        self._within = within

    @property
    def generated(self) -> int:
        """Tokens added so far."""
        return self._n - self._first

    @property
    def last(self) -> Ids:
        """The end of the logical text, LONGEST tokens at most."""
        return self._ids[max(self._starts[-1], self._n - LONGEST) : self._n]

    @property
    def before(self) -> Ids:
        """The end of the logical text when nothing was generated yet, LONGEST tokens at most."""
        return self._ids[max(self._starts[-1], self._first - LONGEST) : self._first].copy()

    def extend(self, tokens: Sequence[int]) -> None:
        """More was generated."""
        if self._n + len(tokens) > len(self._ids):
            more = np.full(len(tokens) + _GROWTH, GAP, np.int32)
            self._ids = np.concatenate([self._ids, more])
        self._ids[self._n : self._n + len(tokens)] = tokens
        self._n += len(tokens)

    def search(self, room: int, owed: bytes, rule: Owed) -> Found | None:
        """Up to `room` tokens that followed the longest match; None where the last two stand nowhere else."""
        ids, n = self._ids, self._n
        if n - self._starts[-1] < SHORTEST or min(ids[n - 2], ids[n - 1]) < 0:
            return None
        end = n if self._within else self._starts[-1]
        ends = np.flatnonzero(ids[1 : end - 1] == ids[n - 1]) + 2
        ends = ends[(ids[ends - 2] == ids[n - 2]) & (ids[ends] >= 0)]
        if not len(ends):
            return None
        levels = [ends]
        while len(levels) <= LONGEST - SHORTEST:
            length = SHORTEST + len(levels)
            wanted = ids[n - length]
            if wanted < 0:
                break
            ends = ends[ids[ends - length] == wanted]
            if not len(ends):
                break
            levels.append(ends)
        if not owed:
            return self._found(self._frequent(levels[-1]), room, len(levels) + 1)
        return self._agreeing(levels, room, owed, rule)

    def _agreeing(self, levels: list[Places], room: int, owed: bytes, rule: Owed) -> Found | None:
        """The longest match whose continuation reproduces what is owed."""
        tried = 0
        for back, ends in enumerate(reversed(levels)):
            for end in ends[::-1].tolist():
                found = self._found(end, room, len(levels) + 1 - back)
                if rule.agrees(found.tokens.tolist(), owed):
                    return found
                if (tried := tried + 1) >= _TRIED:
                    return None
        return None

    def _frequent(self, ends: Places) -> int:
        """The latest place, in the text worth most, of the most frequent next token."""
        if len(ends) > 2:
            tokens, counts = np.unique(self._ids[ends], return_counts=True)
            ends = ends[np.isin(self._ids[ends], tokens[counts == counts.max()])]
        return int(ends[-1])

    def _found(self, at: int, room: int, length: int) -> Found:
        end = min(at + room, self._n)
        tokens = self._ids[at:end]
        gaps = np.flatnonzero(tokens < 0)
        if len(gaps):
            tokens = tokens[: gaps[0]]
        elif at + room > self._n:  # the text repeats itself with this period
            tokens = np.resize(tokens, room)
        return Found(tokens.copy(), self._names[bisect_right(self._starts, at) - 1], length)


def from_index(reader: NgramReader, text: Text, room: int, owed: bytes, rule: Owed) -> Found | None:
    """What followed the longest match in the indexed files."""
    match = reader.match(text.last.astype("<i4", copy=False).tobytes(), room)
    for tokens, _ in match.continuations:
        if not owed or rule.agrees(tokens, owed):
            return Found(np.array(tokens, np.int32), NGRAMS, match.length)
    return None
