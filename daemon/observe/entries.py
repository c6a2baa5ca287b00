"""What the ledger keeps of one request. Only `Content` quotes anybody's text; it is kept for minutes."""

from __future__ import annotations

from daemon.nouns import Counters, FimIds, Limits, Noun, Sampling, Segment, StopReason, Timings
from daemon.surroundings import Lost, WindowClass


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
    content: Content | None = None
    """None: never kept, or purged."""

    @property
    def prompt(self) -> int:
        """Tokens of the prompt, summed over its segments."""
        return sum(segment.tokens for segment in self.segments)
