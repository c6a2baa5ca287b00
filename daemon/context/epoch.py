"""Epochs: the stable part of prompts stays what it is while a person works in one place.

    what would be chosen now ─┬→ tells little that is not shown         → the epoch stays
                              ├→ tells more, and there is room for it   → appended
                              └→ tells more, or what is shown is false  → another epoch

Ranking changes with every keystroke: names come near, regions grow, outlines are cut to fit. Pieces are
therefore compared by the lines they tell, never by score or place. How much must be missing before another
head is evaluated depends on what that costs on this machine. What was chosen stays chosen until it is
evaluated: short pauses add up.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from daemon.context.budget import SAME, cost, score, telling
from daemon.context.written import NOWHERE, Near, gone, holds
from daemon.surroundings import Lost, Piece, Stable, Surroundings

_KEEP = 32
"""Files whose epochs are remembered."""
_LEAST = 0.25
"""Share of the worth of what would be chosen that must be missing before anything is evaluated for it."""
_DEAR = 0.35
"""So much more of it where the evaluation takes all the idle time that stable context may take."""
_NEW = 0.5
"""Share of a piece's lines that must be new for it to be appended."""
HELD = 5
"""Lines above and below the cursor that no piece may show: they are being written."""
NEAR = 30
"""Lines above and below the cursor that no new piece may show: they may be written next."""
SENT = ("clipboard", "diagnostic")
"""Kinds that a client sends along."""
Count = Callable[[str], int]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What would be chosen now for `room` tokens."""

    pieces: Sequence[Piece]
    room: int
    lost: Sequence[Lost] = ()
    found: Sequence[Piece] = ()
    """Everything that could be chosen: what it says is true."""
    text: str | None = None
    """All of the cursor's file; None when only a part of it is known."""
    states: Callable[[Collection[str]], dict[str, bytes]] = lambda paths: {}
    """Paths → what tells one state of each file from another, as far as that is known."""
    behind: int = 0
    """Tokens behind the head, which are evaluated anew with every other head."""
    share: Callable[[int], float] = lambda tokens: 0.0
    """Tokens → share of the idle time for stable context that evaluating them takes."""

    def worth(self, gain: float, tokens: int) -> bool:
        """Whether a gain, as a share of what these pieces are worth, pays for so many tokens of a head."""
        return gain >= _LEAST + _DEAR * min(1.0, self.share(tokens + self.behind))


class Epochs:
    """The epoch of every file that was worked in lately. `count` gives tokens of a text."""

    def __init__(self, count: Count, keep: int = _KEEP) -> None:
        self._count = count
        self._keep = keep
        self._files: OrderedDict[Key, Stable] = OrderedDict()
        self._ahead: OrderedDict[Key, Stable] = OrderedDict()
        """Chosen and not evaluated yet."""
        self._numbers = itertools.count(1)

    def current(
        self, around: Surroundings, near: Near = NOWHERE, hidden: Callable[[Piece], str] = lambda piece: ""
    ) -> Stable:
        """The epoch of the cursor's file, whichever scope it was chosen for: it stays until idle time.

        `near`: HELD lines around the cursor. A piece of the file itself that shows some of them ends the
        epoch, and so does one that must be `hidden` by now, for which that gives the reason; the next one is
        what stands before that piece, which is evaluated.
        """
        stable = self._files.get(_key(around))
        if stable is None:
            return Stable(path=around.path, scope=around.scope, reason="nothing chosen yet")
        for place, piece in enumerate(stable.pieces):
            if why := hidden(piece) or ("being written" if holds(piece, around, near) else ""):
                why = f"cut before {piece.source}, which is {why}"
                stable = self._files[_key(around)] = self._numbered(stable, stable.pieces[:place], why)
                break
        return stable

    def after(self, around: Surroundings, wanted: Wanted, near: Near = NOWHERE) -> Stable | None:
        """What should follow the current epoch, given what would be chosen now. None when that is good
        enough. Used once it is adopted; until then what was chosen last is chosen again if it still may.
        `near`: NEAR lines around the cursor."""
        key = _key(around)
        shown = self._files.get(key, Stable())
        wanted = _allowed(around, wanted, near)
        following = self._following(around, shown, wanted)
        if following is None:
            self._ahead.pop(key, None)
            return None
        ahead = self._ahead.get(key)
        if ahead is not None and not any(holds(piece, around, near) for piece in ahead.pieces):
            following = self._following(around, ahead, wanted) or ahead
        self._remember(self._ahead, key, following)
        return following

    def alone(self, around: Surroundings, wanted: Wanted, near: Near = NOWHERE) -> Stable:
        """What would be chosen now, whatever was chosen before."""
        wanted = _allowed(around, wanted, near)
        return self._numbered(_basis(around, Stable(), wanted), wanted.pieces, "for one request")

    def adopt(self, around: Surroundings, stable: Stable) -> None:
        """`stable` is evaluated: the next request in this file uses it."""
        self._ahead.pop(_key(around), None)
        self._remember(self._files, _key(around), stable)

    def _following(self, around: Surroundings, shown: Stable, wanted: Wanted) -> Stable | None:
        """What is better than `shown` by so much that it should be evaluated."""
        basis = _basis(around, shown, wanted)
        if not shown.pieces:
            return self._numbered(basis, wanted.pieces, "first epoch") if wanted.pieces else None
        old = gone(shown.pieces, around, wanted.text)
        false = [p for p in shown.pieces if p in old or _false(p, shown, basis, wanted.found)]
        fresh = self._renewed(shown, wanted, false)
        if false:
            return self._numbered(basis, fresh, f"{false[0].source} has changed")
        missing, added = self._missing(wanted, shown.pieces), self._fitting(shown, wanted)
        whole = (*shown.pieces, *added)
        if added and wanted.worth(missing - self._missing(wanted, whole), self._tokens(added)):
            known = {**basis.states, **shown.states}
            reason = f"epoch {shown.epoch}, {len(added)} appended"
            return msgspec.structs.replace(basis, pieces=whole, states=known, reason=reason)
        gain = missing - self._missing(wanted, fresh)
        if wanted.worth(gain, self._tokens(fresh[_common(fresh, shown.pieces) :])):
            return self._numbered(basis, fresh, f"{gain:.0%} of what matters was not shown")
        return None

    def _missing(self, wanted: Wanted, shown: Sequence[Piece]) -> float:
        """Share of what is wanted, by score and tokens, that `shown` does not tell."""
        lines = _lines(shown)
        worth = [score(piece) * self._tokens([piece]) for piece in wanted.pieces]
        missing = sum(w * _fresh(piece, lines) for w, piece in zip(worth, wanted.pieces, strict=True))
        return missing / sum(worth) if any(worth) else 0.0

    def _fitting(self, shown: Stable, wanted: Wanted) -> list[Piece]:
        """Wanted pieces that may stand behind what is shown: new ones, as there is room."""
        lines, things = _lines(shown.pieces), {_thing(piece) for piece in shown.pieces if piece.name}
        left = wanted.room - self._tokens(shown.pieces)
        added = []
        for piece in wanted.pieces:
            if _thing(piece) in things or _fresh(piece, lines) < _NEW:
                continue
            if (tokens := self._tokens([piece])) <= left:
                left -= tokens
                added.append(piece)
        return added

    def _renewed(self, shown: Stable, wanted: Wanted, false: Collection[Piece]) -> list[Piece]:
        """Wanted pieces within their room. What is shown already comes first, as it is shown."""
        true = [piece for piece in shown.pieces if piece not in false]
        kept = [piece for piece in true if any(_tells(piece, other) for other in wanted.pieces)]
        rest = [piece for piece in wanted.pieces if not any(_tells(other, piece) for other in kept)]
        left, fresh = wanted.room, []
        for piece in (*kept, *rest):
            if (tokens := self._tokens([piece])) <= left:
                left -= tokens
                fresh.append(piece)
        return fresh

    def _numbered(self, basis: Stable, pieces: Iterable[Piece], why: str) -> Stable:
        """Another epoch."""
        number = next(self._numbers)
        reason = f"epoch {number}: {why}"
        return msgspec.structs.replace(basis, epoch=number, pieces=tuple(pieces), reason=reason)

    def _tokens(self, pieces: Iterable[Piece]) -> int:
        return sum(cost(piece, self._count) for piece in pieces)

    def _remember(self, table: OrderedDict[Key, Stable], key: Key, stable: Stable) -> None:
        table[key] = stable
        table.move_to_end(key)
        while len(table) > self._keep:
            table.popitem(last=False)


def _key(around: Surroundings) -> Key:
    return around.root, around.path


def _basis(around: Surroundings, shown: Stable, wanted: Wanted) -> Stable:
    """What is shown, as of now."""
    paths = {piece.path for piece in (*shown.pieces, *wanted.pieces)} - {"", around.path}
    states = wanted.states(paths)  # not of the file itself: every keystroke makes it another
    return msgspec.structs.replace(
        shown, path=around.path, scope=around.scope, lost=tuple(wanted.lost), states=states
    )


def _allowed(around: Surroundings, wanted: Wanted, near: Near) -> Wanted:
    """Without what is being written, and what the cursor's file says no more."""
    old = gone(wanted.pieces, around, wanted.text)
    return replace(wanted, pieces=[p for p in wanted.pieces if p not in old and not holds(p, around, near)])


def _thing(piece: Piece) -> tuple[str, str, str]:
    """What a named piece is a text of: two texts of one thing would contradict each other."""
    return piece.path, piece.kind, piece.name


def _lines(pieces: Iterable[Piece]) -> frozenset[str]:
    return frozenset().union(*(telling(piece.text) for piece in pieces))


def _fresh(piece: Piece, lines: frozenset[str]) -> float:
    """Share of a piece's lines that are not among `lines`."""
    own = telling(piece.text)
    return len(own - lines) / len(own) if own else 0.0


def _tells(piece: Piece, other: Piece) -> bool:
    """Whether a piece tells nearly all of another of its file."""
    return piece.path == other.path and _fresh(other, telling(piece.text)) <= 1 - SAME


def _true(piece: Piece, found: Iterable[Piece]) -> bool:
    """Whether what a piece says is found in its file as it is now."""
    return any(piece.path == other.path and not _fresh(piece, telling(other.text)) for other in found)


def _false(piece: Piece, shown: Stable, now: Stable, found: Iterable[Piece]) -> bool:
    """Whether a piece is not found any more, though its file is known to be another than it was when it was
    chosen, or it is nothing that a file says."""
    before = shown.states.get(piece.path)
    changed = before is not None and now.states.get(piece.path, before) != before
    return (changed or piece.kind in SENT) and not _true(piece, found)


def _common(pieces: Sequence[Piece], others: Sequence[Piece]) -> int:
    """How many pieces both begin with."""
    pairs = zip(pieces, others, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
