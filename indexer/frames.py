"""Messages on the indexer's pipes: daemon ⇄ indexer process, and indexer process ⇄ its parsing children.

A frame is a 4-byte big-endian length and one tagged MessagePack struct, as on the engine's pipe.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import IO, BinaryIO, Generic, Literal, TypeVar

import msgspec

from indexer.records import FileRow, IndexedFile

DATABASE = "index.db"
"""In the folder of a root's index."""
MAX_FRAME = 256 * 1024 * 1024
LENGTH = struct.Struct(">I")
Battery = Literal["defer", "run"]
Phase = Literal["starting", "walking", "indexing", "ready", "deferred", "degraded", "unavailable"]


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all messages."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what stands inside messages."""


class RootSpec(Part, frozen=True):
    """One folder to index. `folder` holds its database; a new `generation` asks for a rebuild."""

    path: str
    folder: str
    generation: int = 0
    ignore: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What is left out beyond git's rules: patterns (see globs.py), before them the root's place below the
    folder that they are of: empty for the root itself, ending with `/` otherwise."""
    max_files: int | None = None
    """Less than the plan's."""


class Plan(Part, frozen=True):
    """How to index. `vocabulary` is a file exported by the engine, empty when there is none yet."""

    vocabulary: str = ""
    workers: int = 0
    """Parsing children; 0: from the number of cores."""
    max_file_kb: int = 1024
    max_line: int = 20_000
    """Bytes of one line."""
    max_files: int = 200_000
    budget_ms: int = 2000
    """Wall clock of one parse."""
    ngram_mb: int = 64
    """Largest n-gram file of one root; 0: none."""
    battery: Battery = "defer"
    busy_share: float = 0.25
    """Most of one core that all indexing may use while completions run."""
    poll_s: float = 30.0
    """Period of the scan where native watching is impossible."""


class Begin(Frame, frozen=True, tag="begin"):
    """Daemon → indexer, first. `once`: end when every root is complete, watch nothing."""

    roots: tuple[RootSpec, ...]
    plan: Plan = Plan()
    once: bool = False


class Roots(Frame, frozen=True, tag="roots"):
    """Daemon → indexer: the roots are these from now on, and the vocabulary is this."""

    roots: tuple[RootSpec, ...]
    vocabulary: str = ""


class Busy(Frame, frozen=True, tag="busy"):
    """Daemon → indexer: completions are being computed, or no longer."""

    running: bool


class Touch(Frame, frozen=True, tag="touch"):
    """Daemon → indexer: an editor saved these paths (absolute). A hint, as those of the file system."""

    paths: tuple[str, ...]


class Ask(Frame, frozen=True, tag="ask"):
    """Daemon → indexer: send a State now."""


class End(Frame, frozen=True, tag="end"):
    """Daemon → indexer: finish the transaction at hand and end."""


class Example(Part, frozen=True):
    """Files that are not parsed, by reason: how many, and up to three of them."""

    count: int
    paths: tuple[str, ...]


class RootState(Part, frozen=True):
    """One root's state. Also written as `state.json` beside the database, for readers without a daemon."""

    path: str
    phase: Phase
    detail: str = ""
    complete: bool = False
    """Everything that was on disk at the last reconcile is searchable."""
    files: int = 0
    """Parsed or chunked files."""
    lines: int = 0
    languages: dict[str, int] = {}
    """Files by language; "" are textual files without one."""
    skipped: dict[str, Example] = {}
    done: int = 0
    total: int = 0
    """Of the current walk."""
    queue: int = 0
    delay_ms: float = 0.0
    """From the last change to its being searchable."""
    database_bytes: int = 0
    wal_bytes: int = 0
    ngram_bytes: int = 0
    degraded: tuple[str, ...] = ()
    rebuilt: str = ""
    """What damage the index was built again for since the indexer started."""
    vocabulary: str = ""
    generation: int = 0
    updated: float = 0.0
    """Seconds since the epoch."""


class State(Frame, frozen=True, tag="state"):
    """Indexer → daemon: how things are; on every change of phase, and at most twice a second."""

    roots: tuple[RootState, ...]
    pid: int = 0
    rss_bytes: int = 0
    """Of the indexer and its children."""
    cpu_s: float = 0.0
    throttled: str = ""
    """Why it goes slowly; empty when it does not."""


class Setup(Frame, frozen=True, tag="setup"):
    """Indexer → child, first."""

    vocabulary: str = ""
    budget_s: float = 2.0
    max_file_bytes: int = 1 << 20
    max_line: int = 20_000


class Task(Part, frozen=True):
    """One file to make rows of. With the same content as `digest` nothing is made."""

    root: str
    path: str
    digest: bytes = b""


class Batch(Frame, frozen=True, tag="batch"):
    """Indexer → child: make these, in this order."""

    tasks: tuple[Task, ...]


class Ready(Frame, frozen=True, tag="ready"):
    """Child → indexer: loaded. `note` says why tokens are not counted, empty when they are."""

    note: str = ""


class Made(Frame, frozen=True, tag="made"):
    """Child → indexer: what became of one task; one for each, in order.

    `row` is None when the path is no file any more; `file` is None then, and when the content is as known.
    """

    root: str
    path: str
    row: FileRow | None = None
    file: IndexedFile | None = None
    ids: bytes = b""
    """The whole text's tokens, little-endian int32."""
    cpu_s: float = 0.0


ToIndexer = Begin | Roots | Busy | Touch | Ask | End
ToChild = Setup | Batch
FromChild = Ready | Made
T = TypeVar("T")
_encoder = msgspec.msgpack.Encoder()


def pack(message: Frame) -> bytes:
    """One frame."""
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body


class Source(Generic[T]):
    """Messages of one kind from a blocking stream."""

    def __init__(self, stream: IO[bytes], kind: object) -> None:
        self._stream = stream
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(kind)

    def read(self) -> T | None:
        """The next message; None at the end of the stream. Raises ValueError on what is no frame."""
        head = self._stream.read(LENGTH.size)
        if len(head) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack(head)
        if length > MAX_FRAME:
            raise ValueError(f"frame of {length} bytes is beyond {MAX_FRAME}")
        body = self._stream.read(length)
        return self._decoder.decode(body) if len(body) == length else None


def private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output as buffered frame pipes; whatever else prints goes to standard error."""
    sink = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    source = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return source, sink
