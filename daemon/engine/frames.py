"""Messages between the daemon and its engine child: length-prefixed MessagePack over a socket pair.

A frame is a 4-byte big-endian length and one tagged struct. Text that may be cut travels as bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal, get_args

import msgspec

from daemon import settings
from daemon.machine import EngineProfile
from daemon.nouns import Generation, Limits, Noun, Sampling

Lane = Literal["keystroke", "alternative", "anchor", "warm", "long", "paging"]
"""Most urgent first: what a person waits for, further answers to the same question, a better anchor, what may
be asked next, long answers, the cache itself."""
LANES: tuple[Lane, ...] = get_args(Lane)
MAX_FRAME = 64 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all messages."""


class Start(Frame, frozen=True, tag="start"):
    """Daemon → engine, first: what to load. `profile` of an earlier start spares the measurement;
    `force_cpu` is the reason why the GPU is not tried again."""

    path: str
    name: str
    sha256: str
    context: int
    settings: settings.Engine
    profile: EngineProfile | None = None
    force_cpu: str = ""
    draft: str = ""
    """Path of the draft model; empty, with `draft_note` as the reason, when there is none."""
    draft_name: str = ""
    draft_note: str = ""


class Submit(Frame, frozen=True, tag="submit"):
    """Daemon → engine: evaluate `tokens`, then generate. `suffix` is the text after the cursor."""

    id: str
    tokens: bytes
    must: bytes = b""
    line: str = ""
    suffix: str = ""
    above: tuple[str, ...] = ()
    """The last lines above the cursor's, for repetition stops."""
    closes: str = ""
    """The bracket behind the cursor: the text ends before one of its own that closes the same. Or empty."""
    limits: Limits = Limits()
    sampling: Sampling = Sampling()
    warm: bool = False
    lane: Lane = "keystroke"
    client: str = ""
    """Who asks: clients take turns inside a lane."""
    cache: bool = True
    margins: bool = False
    draft: bool = True
    """Drafts may be verified with it; never without the cache, unless at a fixed width."""
    width: int = 0
    """Measurements only: rows of every decode of the answer, filled up; 0: as many as there are."""
    ngrams: str = ""
    """Folder of the n-grams to draft from."""
    guesses: bytes = b""
    """Ids of text that may be alike, to draft from."""
    simple: bool = False
    """The draft model may answer it alone, where routing is on."""
    keep: bool = True
    """What is evaluated for it may be kept in pages; False for documents on the deny list."""
    follow: bool = True
    """Somebody reads along: the text is told before every decode. Else only now and then, as every message
    wakes the daemon on a core that computes."""


class Cancel(Frame, frozen=True, tag="cancel"):
    """Daemon → engine: stop computing for `id` within one slice. `superseded` changes the stop reason."""

    id: str
    superseded: bool = False


class Follow(Frame, frozen=True, tag="follow"):
    """Daemon → engine: from now on somebody reads `id` along."""

    id: str


class Ask(Frame, frozen=True, tag="ask"):
    """Daemon → engine: send a Report."""


class Stop(Frame, frozen=True, tag="stop"):
    """Daemon → engine: end now."""


class Loading(Frame, frozen=True, tag="loading"):
    """Engine → daemon: progress of loading, 0–1, and the stage in words."""

    share: float
    stage: str


class Ready(Frame, frozen=True, tag="ready"):
    """Engine → daemon: the model is loaded and measured. `vocabulary` is the path of its exported vocabulary;
    `vocabulary_note` says why other processes cannot count with it, empty when they can."""

    profile: EngineProfile
    vocabulary: str
    vocabulary_note: str = ""


class Piece(Frame, frozen=True, tag="piece"):
    """Engine → daemon: more text of `id`, whole characters, healed bytes removed."""

    id: str
    text: str


class Done(Frame, frozen=True, tag="done"):
    """Engine → daemon: `id` has ended, with `rest` behind its last Piece. `generation.text` is the whole
    text."""

    id: str
    generation: Generation
    rest: str = ""


class Failed(Frame, frozen=True, tag="failed"):
    """Engine → daemon: loading failed (`id` empty) or a request failed. `memory` means: retry smaller."""

    message: str
    id: str = ""
    remedy: str = ""
    memory: bool = False


class DraftSource(Noun, frozen=True):
    """Where drafts come from, and what they were worth since the start."""

    name: str
    steps: int = 0
    """Decode calls that verified some of its tokens."""
    acceptance: float = 0.0
    """Of its surest kind, lately, per token."""
    length: int = 0
    """Tokens drafted at once now; 0: off."""
    ready: bool = True
    """False: there is none, `why` says why."""
    why: str = ""


class Paged(msgspec.Struct, frozen=True, kw_only=True):
    """Evaluated text beyond the context. A `why` says why a level takes nothing; empty when it does."""

    host_pages: int = 0
    host_bytes: int = 0
    host_ceiling: int = 0
    host_why: str = ""
    disk_pages: int = 0
    """Files of all models."""
    disk_bytes: int = 0
    disk_ceiling: int = 0
    disk_why: str = ""
    writing: int = 0
    """Pages on their way to the disk."""
    kept: bool = False
    """Whole pages of what is resident are kept too."""
    out_tokens: int = 0
    host_tokens: int = 0
    """Brought back from host memory."""
    disk_tokens: int = 0
    out_ms: float = 0.0
    """Per token, medians of the last few; 0 while unmeasured."""
    host_ms: float = 0.0
    disk_ms: float = 0.0
    recompute_ms: float = 0.0
    damaged: int = 0
    """Pages that were not what they said they were: evaluated again."""
    declined: int = 0
    """Pages that would have cost more than their evaluation."""


class Report(Frame, frozen=True, tag="report"):
    """Engine → daemon: what is resident and what was done since start."""

    idle: bool
    """Nothing runs and nothing waits."""
    sequences: int
    cells_used: int
    cells: int
    evaluated: int
    reused: int
    generated: int
    decodes: int
    aborted: int
    after_slice: int
    """Evaluations that belonged to an abandoned request later than one slice: must stay 0."""
    idle_slices: tuple[int, ...] = ()
    """Per cancelled running request: slices finished between the cancel and the stop (last 1,000)."""
    pages: Paged | None = None
    """None where nothing is paged."""
    rss_bytes: int = 0
    compute_ms: float = 0.0
    busy_ms: float = 0.0
    running: int = 0
    waiting: int = 0
    """Requests, now."""
    drafts: dict[str, tuple[int, int]] = {}
    """Source → (drafted, accepted)."""
    sources: tuple[DraftSource, ...] = ()
    """Whether drafting pays; empty when it is off."""


Message = Start | Submit | Cancel | Follow | Ask | Stop | Loading | Ready | Piece | Done | Failed | Report

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def pack(message: Message) -> bytes:
    """One frame."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Bytes in any portion → messages. Raises ValueError on a frame beyond MAX_FRAME or of unknown shape."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Add bytes; yield every message they complete."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME:
                raise ValueError(f"frame of {length} bytes is beyond {MAX_FRAME}")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield _decoder.decode(body)
