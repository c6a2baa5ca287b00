"""Where the prefix ends and the middle begins: anchors that stay while a person types.

A prompt reads `prefix P | suffix S | middle M`. M is the text between the anchor and the cursor, so typing
only appends to it and everything before stays evaluated. An anchor is found again by the text alone:
whichever client asks, whatever window it sends, and without a path. Layout after EFIM (arXiv 2505.21889).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

_CLOSERS = ")]}\"'`>;"
_MAX_CLOSERS = 2
_HEAD = 64
"""Characters of a window's beginning by which its place is looked for; the rest is compared in whole."""
_PLACES = 8
"""A beginning that stands more often than this (blank lines, licence headers) is given up."""
_CONVINCING = 80
"""A shorter prefix could stand anywhere; it only fits where the window begins with it."""
_KEEP = 128
"""Anchors that are remembered: looking at all of them takes 0.7 ms where none fits."""
_WORTH = 1.5
"""A window this many times longer is worth an evaluation in idle time."""
Head = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The frozen part of a prompt: P and S."""

    prefix: str
    suffix: str

    def middle(self, prefix: str, suffix: str) -> str | None:
        """The text typed since this anchor, when the request still is at it; None when it is elsewhere."""
        return self._since(prefix) if follows(self.suffix, suffix) else None

    def _since(self, prefix: str) -> str | None:
        if prefix.startswith(self.prefix):
            return prefix[len(self.prefix) :]
        if len(self.prefix) < _CONVINCING:
            return None
        if (at := prefix.rfind(self.prefix)) >= 0:
            return prefix[at + len(self.prefix) :]
        at = self.prefix.find(prefix[:_HEAD])
        for _ in range(_PLACES):
            if at < 0:
                break
            if prefix.startswith(self.prefix[at:]):
                return prefix[len(self.prefix) - at :]
            at = self.prefix.find(prefix[:_HEAD], at + 1)
        return None


@dataclass(frozen=True, slots=True)
class Window:
    """How much text may stand in the frozen part, in characters."""

    prefix: int
    suffix: int
    middle: int
    jump: int
    """Characters that may be evaluated anew after a jump before the answer would come late."""
    lines: int
    """Lines above the cursor where a new anchor stands; -1 is the cursor itself."""
    tight: bool = False
    """The prompt was too long before: known anchors must fit these sizes too."""
    head: Head = (0, 0)
    """What stands before the prefix, see Stable.key: an anchor is evaluated behind one head only."""
    alone: bool = False
    """Measurements: a new anchor, whatever was asked before, and nothing remembered of it."""

    def admits(self, anchor: Anchor) -> bool:
        """Whether a known anchor may be used at all."""
        small = len(anchor.prefix) <= self.prefix and len(anchor.suffix) <= self.suffix
        return small or not self.tight


class Anchors:
    """Recent anchors of all documents, newest last."""

    def __init__(self, keep: int = _KEEP) -> None:
        self._recent: OrderedDict[tuple[Anchor, Head], None] = OrderedDict()
        self._keep = keep

    def place(self, prefix: str, suffix: str, window: Window) -> tuple[Anchor, str, str]:
        """(anchor, middle, reason) for a request: a recent anchor when it still fits, else a new one."""
        if window.alone:
            cut = _cut(prefix, window)
            anchor = Anchor(_tail(prefix[:cut], window.prefix), near(suffix, window.suffix))
            return anchor, prefix[cut:], "an anchor of its own"
        if window.lines >= 0:
            for anchor in self._known(window.head):
                middle = anchor.middle(prefix, suffix)
                if middle is not None and len(middle) <= window.middle and window.admits(anchor):
                    self._remember(anchor, window.head)
                    return anchor, middle, "typing at a known anchor"
        cut = _cut(prefix, window)
        head, reason = self._head(prefix[:cut], window)
        anchor = Anchor(head, near(suffix, window.suffix))
        self._remember(anchor, window.head)
        return anchor, prefix[cut:], reason

    def widen(self, anchor: Anchor, prefix: str, suffix: str, window: Window) -> Anchor | None:
        """The anchor a patient planner would choose here, when it differs enough from `anchor` to be worth
        evaluating in idle time; it is used once `adopt` is called."""
        middle = anchor.middle(prefix, suffix)
        cut = _cut(prefix, window)
        head = _tail(prefix[:cut], window.prefix)
        joined, _ = _continue(anchor.prefix, prefix[:cut])
        wider = len(head) > len(joined or anchor.prefix) * _WORTH
        longer = middle is not None and len(middle) > window.middle // 2
        below = len(near(suffix, window.suffix)) > len(anchor.suffix) * _WORTH
        if middle is None or not (wider or longer or below):
            return None
        start = head if wider or not joined or len(joined) > window.prefix else joined
        return Anchor(start, near(suffix, window.suffix))

    def adopt(self, anchor: Anchor, head: Head = (0, 0)) -> None:
        """`anchor` is evaluated behind this head: the next request that fits both uses it."""
        self._remember(anchor, head)

    def _head(self, head: str, window: Window) -> tuple[str, str]:
        """The prefix up to a new anchor, beginning where an evaluated one began if that saves work."""
        best, fresh = "", len(head)
        for anchor in self._known(window.head):
            joined, new = _continue(anchor.prefix, head)
            if joined and len(joined) <= window.prefix and new < fresh:
                best, fresh = joined, new
        if best and fresh + window.suffix <= max(window.jump, 2 * window.suffix):
            return best, f"new anchor, {len(best) - fresh} known characters before it"
        room = min(window.prefix, max(window.jump - window.suffix, window.suffix))
        return _convincing(head, _tail(head, room)), "new anchor, new window"

    def _known(self, head: Head) -> list[Anchor]:
        """Behind this head, the newest first."""
        return [anchor for anchor, behind in reversed(self._recent) if behind == head]

    def _remember(self, anchor: Anchor, head: Head) -> None:
        self._recent[anchor, head] = None
        self._recent.move_to_end((anchor, head))
        while len(self._recent) > self._keep:
            self._recent.popitem(last=False)


def follows(known: str, suffix: str) -> bool:
    """Whether `suffix` begins with `known`, behind at most two closers that an editor put there."""
    if not known:
        return not suffix
    for extra in range(_MAX_CLOSERS + 1):
        if suffix.startswith(known, extra):
            return all(c in _CLOSERS for c in suffix[:extra])
    return False


def near(suffix: str, room: int) -> str:
    """The beginning of `suffix`, whole lines up to `room` characters; at least a part of the first."""
    if len(suffix) <= room:
        return suffix
    end = suffix.rfind("\n", 0, room) + 1
    return suffix[: end or room]


def _tail(head: str, room: int) -> str:
    """The end of `head`, whole lines up to `room` characters; of one long line its end."""
    if len(head) <= room:
        return head
    start = head.find("\n", len(head) - room - 1) + 1
    return head[start:] if 0 < start < len(head) else head[-room:] if room else ""


def _convincing(head: str, chosen: str) -> str:
    """`chosen`, the end of `head`, with lines before it until it is long enough to be found again."""
    if len(chosen) >= _CONVINCING or len(chosen) == len(head):
        return chosen
    start = head.rfind("\n", 0, max(0, len(head) - _CONVINCING)) + 1
    return head[start:] if len(head) - start <= 2 * _CONVINCING else head[-2 * _CONVINCING :]


def _cut(prefix: str, window: Window) -> int:
    """Where a new anchor stands: a line start, or inside a line too long for a middle."""
    cut = _line_start(prefix, window.lines)
    return cut if len(prefix) - cut <= window.middle else len(prefix) - window.middle // 2


def _line_start(text: str, lines: int) -> int:
    """Offset of the line start `lines` above the last line; -1 is the end of the text."""
    if lines < 0:
        return len(text)
    at = len(text)
    for _ in range(lines + 1):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _continue(known: str, head: str) -> tuple[str, int]:
    """(text from where `known` begins to the end of `head`, characters of it not in `known`).

    ("", 0) when the two do not overlap.
    """
    if len(known) < _CONVINCING:
        return ("", 0)
    start = head.find(known[:_HEAD])
    if start >= 0:
        joined = head[start:]
    else:
        start = known.find(head[:_HEAD]) if head else -1
        if start < 0:
            return ("", 0)
        joined = known[:start] + head
    return joined, len(joined) - _common(known, joined)


def _common(a: str, b: str) -> int:
    """Length of the common beginning, by halving: string comparison is the fast path."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        half = (low + high + 1) // 2
        if a[:half] == b[:half]:
            low = half
        else:
            high = half - 1
    return low
