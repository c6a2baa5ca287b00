"""The unfinished file of a pull: NAME.gguf.part and its journal, so that a killed pull goes on where it was.

The journal names the source, how many of its steps are complete and how many bytes are safely on the disk.
Nothing ever stands under the final name before its hash and its header were checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import BinaryIO

import msgspec

from daemon.models.verify import CHUNK, write_atomically

SYNC_BYTES = 64 << 20
"""How much may be lost by a power cut (not by a kill)."""


class Journal(msgspec.Struct, frozen=True):
    """What the partial file holds."""

    source: str = ""
    validator: str = ""
    """ETag or date by which an HTTP server says that its file is still the same."""
    steps: int = 0
    durable: int = 0


class Partial:
    """One partial file, open for appending; counts and hashes what it holds."""

    def __init__(self, final: Path) -> None:
        self.final = final
        self.path = final.with_name(f"{final.name}.part")
        self.journal_path = final.with_name(f"{final.name}.part.json")
        self.journal = self._read_journal()
        self.file: BinaryIO | None = None
        self.hash = hashlib.sha256()
        self.size = 0
        self.stepwise = False
        self.resumed = False
        """Whether the file began with bytes of an earlier run."""

    def on_disk(self) -> int:
        """Bytes of the partial file now."""
        with contextlib.suppress(OSError):
            return self.path.stat().st_size
        return 0

    def resumable(self, source: str, all_bytes: bool = False) -> int:
        """How many bytes of `source` may be kept: the synced ones, or `all_bytes` where a hash decides."""
        size = self.on_disk()
        if self.journal.source != source or size < self.journal.durable:
            return 0
        return size if all_bytes else self.journal.durable

    def begin(self, source: str, at: int, validator: str = "", steps: int | None = None) -> None:
        """Keep the first `at` bytes, drop the rest, and append from there. Raises OSError.

        With `steps` (how many are in the kept bytes) only `commit` moves the point of resumption.
        """
        self.close()
        self.stepwise = steps is not None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.hash, self.size, self.resumed = hashlib.sha256(), 0, at > 0
        self.file = self.path.open("r+b" if at else "wb", buffering=0)
        while self.size < at and (chunk := self.file.read(min(CHUNK, at - self.size))):
            self.hash.update(chunk)
            self.size += len(chunk)
        self.file.truncate(self.size)
        self.file.seek(self.size)
        self.journal = Journal(source=source, validator=validator, steps=steps or 0, durable=self.size)
        write_atomically(self.journal_path, msgspec.json.encode(self.journal))

    def write(self, data: bytes) -> None:
        """Append. Raises OSError; what was written before stays for the next try."""
        assert self.file is not None
        view = memoryview(data)
        while view:
            count = self.file.write(view) or 0
            self.hash.update(view[:count])
            self.size += count
            view = view[count:]
        if not self.stepwise and self.size - self.journal.durable >= SYNC_BYTES:
            self.commit()

    def commit(self, steps: int = 0) -> None:
        """Make everything so far durable and say that `steps` steps of the source are complete."""
        assert self.file is not None
        os.fsync(self.file.fileno())
        self.journal = msgspec.structs.replace(self.journal, steps=steps, durable=self.size)
        write_atomically(self.journal_path, msgspec.json.encode(self.journal))

    def rewind(self) -> None:
        """Drop what was appended since the last commit. Raises OSError."""
        self.begin(self.journal.source, self.journal.durable, self.journal.validator, self.journal.steps)

    def close(self) -> None:
        """Close the file; the bytes stay."""
        if self.file is not None:
            self.file.close()
            self.file = None

    def discard(self) -> None:
        """Remove the file and its journal."""
        self.close()
        self.path.unlink(missing_ok=True)
        self.journal_path.unlink(missing_ok=True)
        self.journal = Journal()

    def publish(self) -> None:
        """Give the file its final name, durably. The caller has checked hash and header. Raises OSError."""
        assert self.file is not None
        os.fsync(self.file.fileno())
        self.close()
        self.path.replace(self.final)
        self.journal_path.unlink(missing_ok=True)
        if os.name == "posix":
            folder = os.open(self.final.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _read_journal(self) -> Journal:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self.journal_path.read_bytes(), type=Journal)
        return Journal()
