"""Which pieces fit: shares by tier, the best first, every token counted.

    candidates → not visible, not told twice → the best K of P2 and P3 → shares → the order of the prompt

What the tiers leave of their shares, and the window of its own, goes to the best pieces that are left over.

Scores follow 0.7 · AST importance + 0.3 · recency; P3 decays with the distance of references.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from daemon.nouns import Noun
from daemon.surroundings import Lost, Piece

TIERS = ("P1", "P2", "P3", "P4")
_DECAY = 0.7
"""What a step through references leaves of a score in P3."""
_RIGHT = 0.2
"""Score from which on a piece has a right to its tier's share; others stand back behind better ones."""
SAME = 0.8
"""Share of a piece's lines that makes it a duplicate."""
_ORDER = {
    "outline": 0, "definition": 1, "enclosing": 2, "sibling": 3, "similar": 3, "text": 3, "caller": 3,
    "accepted": 5, "recent": 5, "diagnostic": 6, "clipboard": 6,
}  # fmt: skip
"""The more stable a kind, the earlier it stands in the prompt."""
_TRIMMED = {"outline": 4, "enclosing": 3, "sibling": 4, "similar": 4, "recent": 4, "clipboard": 1}
"""Kinds that may be cut at the end, and the fewest lines that still say something."""
_SEPARATOR = 1
"""Tokens of a file separator."""


class Chosen(Noun, frozen=True):
    """What stands in the prompt, in its order, what does not and why, and tokens by tier."""

    pieces: tuple[Piece, ...]
    lost: tuple[Lost, ...]
    tokens: dict[str, int]


def rendered(piece: Piece) -> str:
    """What is encoded for a piece behind its separator: its path as a line, then its text."""
    return f"{piece.path}\n{piece.text}\n"


def cost(piece: Piece, count: Callable[[str], int]) -> int:
    """Tokens of a piece with its separator."""
    return _SEPARATOR + count(rendered(piece))


def choose(
    pieces: Iterable[Piece],
    *,
    room: int,
    taken: int,
    shares: Sequence[int],
    best: int,
    count: Callable[[str], int],
    shown: str = "",
) -> Chosen:
    """Choose within `room` tokens, of which the window takes `taken`. `shares` are percents of P0 to P4,
    of which the first only says what is meant for the window; `best` pieces of P2 and of P3 are looked at.
    `count` counts the tokens of a text; `shown` is the window's text. The tokens of the pieces, with
    separators and path lines, never exceed room - taken. The same pieces in any order give the same."""
    ranked = sorted(pieces, key=_rank)
    desk = _Desk(count, max(0, room - taken), shown)
    waiting = {tier: desk.sift([p for p in ranked if p.tier == tier], tier, best) for tier in TIERS}
    for place, tier in enumerate(TIERS, 1):
        rightful = [p for p in waiting[tier] if score(p) >= _RIGHT]
        over = desk.fill(rightful, room * shares[place] // 100)
        waiting[tier] = over + [p for p in waiting[tier] if score(p) < _RIGHT]
    rest = desk.fill(sorted((p for tier in TIERS for p in waiting[tier]), key=_rank), desk.left, trim=True)
    desk.give_up(rest)
    chosen = sorted(desk.chosen, key=lambda p: (_ORDER[p.kind], p.path, p.start_line, p.name, p.text))
    return Chosen(pieces=tuple(chosen), lost=tuple(desk.lost), tokens=desk.tokens)


def _rank(piece: Piece) -> tuple[float, str, str, str, float, int]:
    """The best first; a total order, so that the input's order does not matter."""
    return -score(piece), piece.source, piece.text, piece.tier, piece.importance, piece.distance


def score(piece: Piece) -> float:
    """What a piece is worth, distance taken into account."""
    return piece.score * _DECAY ** max(0, piece.distance - 1) if piece.tier == "P3" else piece.score


class _Desk:
    """What is chosen so far."""

    def __init__(self, count: Callable[[str], int], left: int, shown: str) -> None:
        self.left = left
        self.chosen: list[Piece] = []
        self.lost: list[Lost] = []
        self.tokens = dict.fromkeys(TIERS, 0)
        self._count = count
        self._costs: dict[str, int] = {}
        self._shown = telling(shown)
        self._told: dict[str, frozenset[str]] = {}

    def sift(self, pieces: Sequence[Piece], tier: str, best: int) -> list[Piece]:
        """Without what is visible, told by a better piece of the tier, and beyond the best."""
        kept: list[Piece] = []
        told: dict[str, frozenset[str]] = {}
        for piece in pieces:
            why = self._redundant(piece, told)
            if not why and tier in ("P2", "P3") and len(kept) >= best:
                why = f"beyond the best {best}"
            if why:
                self._lose(piece, why)
            else:
                kept.append(piece)
                told[piece.source] = telling(piece.text)
        return kept

    def fill(self, pieces: Sequence[Piece], allowance: int, *, trim: bool = False) -> list[Piece]:
        """Take what fits into an allowance, with `trim` in part; what is left over."""
        used = 0
        over: list[Piece] = []
        for piece in pieces:
            room = min(allowance - used, self.left)
            fitting = piece if self._cost(piece) <= room else self._trimmed(piece, room) if trim else None
            if fitting is not None and (why := self._redundant(fitting, self._told)):
                self._lose(piece, why)
                continue
            if fitting is None:
                over.append(piece)
                continue
            cost = self._cost(fitting)
            used += cost
            self.left -= cost
            self.tokens[fitting.tier] += cost
            self.chosen.append(fitting)
            self._told[fitting.source] = telling(fitting.text)
        return over

    def give_up(self, pieces: Sequence[Piece]) -> None:
        """These do not fit."""
        for piece in pieces:
            self._lose(piece, f"over the {piece.tier} share")

    def _redundant(self, piece: Piece, others: Mapping[str, frozenset[str]]) -> str:
        lines = telling(piece.text)
        if not lines:
            return "empty"
        if len(lines & self._shown) >= SAME * len(lines):
            return "already visible"
        for source, told in others.items():
            if len(lines & told) >= SAME * len(lines):
                return f"duplicate of {source}"
        return ""

    def _trimmed(self, piece: Piece, room: int) -> Piece | None:
        """The piece's first lines, as many as fit; None when those would say too little."""
        fewest = _TRIMMED.get(piece.kind)
        lines = piece.text.split("\n")
        if fewest is None or len(lines) <= fewest:
            return None
        closer = [lines[-1]] if lines[-1].strip() in ("}", "};", "end") else []
        low, high, fit = fewest, len(lines) - 1, None
        guess = max(low, min(high, len(lines) * room // self._cost(piece)))
        while low <= high:
            made = msgspec.structs.replace(piece, text="\n".join([*lines[:guess], *closer]))
            cost = self._cost(made)
            if cost <= room:
                low, fit = guess + 1, made
            else:
                high = guess - 1
            guess = guess * room // cost
            if not low <= guess <= high:
                guess = (low + high) // 2
        return fit

    def _cost(self, piece: Piece) -> int:
        text = rendered(piece)
        if text not in self._costs:
            self._costs[text] = cost(piece, self._count)
        return self._costs[text]

    def _lose(self, piece: Piece, why: str) -> None:
        self.lost.append(
            Lost(tier=piece.tier, source=piece.source, tokens=self._cost(piece), score=score(piece), why=why)
        )


def rows(text: str) -> list[str]:
    """Lines of a text that tell something, stripped, in their order."""
    return [bare for bare in map(str.strip, text.split("\n")) if len(bare) > 1]


@functools.lru_cache(maxsize=1024)
def telling(text: str) -> frozenset[str]:
    """`rows`, for comparing texts."""
    return frozenset(rows(text))
