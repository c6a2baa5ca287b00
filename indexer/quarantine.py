"""Signs that a database may be damaged, and putting it aside.

`<name>.seal` holds size and time of a cleanly closed file: without it the last writer was killed, with
another size or time somebody else wrote. `<name>.suspect` is a reader's word that it met damage.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from indexer.errors import IndexUnwritable

KEEP = 2
"""Databases put aside that are kept, the newest."""
_HEADER = 100
_RETRIES = 30
_RETRY_S = 0.1


class Suspicion(NamedTuple):
    """Why a file is not to be trusted; empty when it is. `certain`: no look inside is needed."""

    reason: str = ""
    certain: bool = False


def beside(path: Path, suffix: str) -> Path:
    """The file next to the database whose name ends with `suffix`."""
    return path.with_name(path.name + suffix)


def suspicion(path: Path) -> Suspicion:
    """What the file system and the file's header say before anything is opened."""
    try:
        size = path.stat().st_size
    except OSError:
        return Suspicion()
    if reported(path):
        return Suspicion("a reader found damage", certain=True)
    if not size:
        return Suspicion()
    try:
        whole = promised(path)
    except OSError as error:
        raise IndexUnwritable(f"open: {error.strerror}") from error
    if not whole:
        return Suspicion("not a database", certain=True)
    log = beside(path, "-wal")
    if not (log.exists() and log.stat().st_size) and whole > size:
        return Suspicion("the file is shorter than it says", certain=True)
    try:
        sealed = beside(path, ".seal").read_bytes()
    except OSError:
        return Suspicion("it was not closed")
    return Suspicion() if sealed == _stamp(path) else Suspicion("it was changed from outside")


def promised(path: Path) -> int:
    """Bytes that the file's header says it has; 0 when it is no database. Raises OSError. Never while this
    process has the database open: closing the file would drop SQLite's locks."""
    with path.open("rb") as file:
        head = file.read(_HEADER)
    if not head.startswith(b"SQLite format 3\0") or len(head) < _HEADER:
        return 0
    page = int.from_bytes(head[16:18], "big")
    return int.from_bytes(head[28:32], "big") * (65536 if page == 1 else page)


def seal(path: Path) -> None:
    """Say that the file was closed cleanly; only when nobody else has it open for writing."""
    log = beside(path, "-wal")
    with suppress(OSError):
        if not log.exists() or not log.stat().st_size:
            beside(path, ".seal").write_bytes(_stamp(path))


def unseal(path: Path) -> None:
    """A writer is at work."""
    with suppress(OSError):
        beside(path, ".seal").unlink(missing_ok=True)


def report(path: Path) -> None:
    """A reader's word that it met damage; the writer puts the database aside at its next step."""
    with suppress(OSError):
        beside(path, ".suspect").touch()


def reported(path: Path) -> bool:
    """Whether a reader met damage."""
    return beside(path, ".suspect").exists()


def put_aside(path: Path) -> None:
    """Rename the database and its log to `<name>.damaged-<time>`; keep the KEEP newest.

    Raises IndexUnwritable."""
    mark = f".damaged-{time.time_ns():020d}"
    for suffix in ("-wal", "-shm", ""):
        # The log goes first: a fresh database must never meet an old log.
        if beside(path, suffix).exists():
            _rename(beside(path, suffix), path.with_name(path.name + mark + suffix))
    for suffix in ("-wal", "-shm", ".seal", ".suspect"):
        with suppress(OSError):
            beside(path, suffix).unlink(missing_ok=True)
    found = path.parent.glob(f"{path.name}.damaged-*")
    kept = sorted(p for p in found if not p.name.endswith(("-wal", "-shm")))
    for old in kept[:-KEEP]:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                beside(old, suffix).unlink(missing_ok=True)


def _rename(source: Path, target: Path) -> None:
    for attempt in range(_RETRIES):
        try:
            source.replace(target)
            return
        except FileNotFoundError:
            return
        except PermissionError as error:
            # Windows: a reader or a virus scanner has it open for a moment.
            if os.name != "nt" or attempt == _RETRIES - 1:
                raise IndexUnwritable(f"put aside: {error.strerror}") from error
            time.sleep(_RETRY_S)
        except OSError as error:
            raise IndexUnwritable(f"put aside: {error.strerror}") from error


def _stamp(path: Path) -> bytes:
    found = path.stat()
    return b"%d %d" % (found.st_size, found.st_mtime_ns)
