"""What the ledger keeps of one request. Only `Content` quotes anybody's text; it is kept for minutes."""

from __future__ import annotations

from daemon.machine import FimIds
from daemon.nouns import Counters, Limits, Noun, Sampling, Segment, StopReason, Timings
from daemon.surroundings import Lost, WindowClass

_CUT: tuple[StopReason, ...] = ("time", "cancelled", "superseded", "engine")


class Content(Noun, frozen=True):
    """The prompt and the answer, exactly. Tokens are ids as everywhere: little-endian int32 bytes."""

    tokens: bytes
    must: bytes = b""
    line: str = ""
    suffix: str = ""
    above: tuple[str, ...] = ()
    closes: str = ""
    """`line`, `suffix`, `above` and `closes` are what the engine's stops looked at."""
    limits: Limits = Limits()
    """Here because its stop strings may be source text."""
    text: str = ""
    """As generated, healed bytes removed."""
    generated: bytes = b""
    """All generated ids; empty when the answer was never finished."""
    shown: str = ""
    """As the editor got it."""
    stop_word: str = ""


class Entry(Noun, frozen=True):
    """One request. Nothing in it but `content` quotes source text. Made by daemon/replay.py."""

    id: str
    when: float
    """Seconds since the epoch, when the answer was finished."""
    client: str
    door: str
    path: str
    language: str
    model: str
    sha256: str
    """Of the model file."""
    build: str
    stop: StopReason
    fim: FimIds = FimIds()
    bos: int = -1
    window: WindowClass | None = None
    found: str = ""
    """How the path was recovered, or why not; empty where the client sent it."""
    anchor: str = ""
    """Why the anchor stands where it does."""
    epoch: int = 0
    stable: str = ""
    """Why the stable context is what it is."""
    segments: tuple[Segment, ...] = ()
    lost: tuple[Lost, ...] = ()
    counters: Counters = Counters()
    timings: Timings = Timings()
    note: str = ""
    trims: tuple[str, ...] = ()
    sampling: Sampling = Sampling()
    warm: bool = False
    coalesced: str = ""
    """Id of the request whose run gave this answer too: the work is counted there."""
    recall: str = ""
    """How the answer was known without the model, which then counts nothing; see Completion."""
    content: Content | None = None
    """None: never kept, or purged."""

    @property
    def prompt(self) -> int:
        """Tokens of the prompt, summed over its segments."""
        return sum(segment.tokens for segment in self.segments)

    @property
    def cut(self) -> bool:
        """Whether something outside the text ended the answer: it is the beginning of one."""
        return self.stop in _CUT

    @property
    def exact(self) -> bool:
        """Whether the segments add up to the prompt that the engine counted, and that one to what it reused
        and evaluated. Of an answer that was cut, some of the prompt may not have been evaluated."""
        work = self.counters
        left = work.prompt - work.reused - work.evaluated
        return self.prompt == work.prompt and (left == 0 or (self.cut and left > 0))
