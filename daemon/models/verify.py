"""SHA-256 of model files, and stamps that say which files were already verified.

A stamp holds size, mtime in ns and SHA-256; a file is hashed and its header checked again whenever one of
the first two changed. The stamps lie beside the models (`verified.json`): homes sharing a folder share them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from daemon import paths
from daemon.errors import ModelError
from daemon.models import header

CHUNK = 4 << 20
_RULES = 1
"""Raised when header checks become stricter: older stamps are then worth nothing."""


class Stamp(msgspec.Struct, frozen=True):
    """What a file looked like when it was verified."""

    size: int
    mtime_ns: int
    sha256: str
    rules: int = 0


def digest(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """SHA-256 of a file in hexadecimal; `progress` hears the bytes read so far. Raises OSError."""
    total, hashed = 0, hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK):
            hashed.update(chunk)
            total += len(chunk)
            if progress:
                progress(total)
    return hashed.hexdigest()


def verified(path: Path, force: bool = False) -> str:
    """The SHA-256 of a GGUF whose header is sound, from its stamp or anew. Raises ModelError."""
    try:
        before = path.stat()
        if not force and (known := stamped(path)):
            return known
        header.check(path)
        sha256 = digest(path)
        after = path.stat()
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror or error})", "Check the path") from error
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise ModelError(f"{path} changed while it was verified", "Try again when nothing writes to it")
    stamp(path, after, sha256)
    return sha256


def stamped(path: Path) -> str | None:
    """The SHA-256 of a file that was verified and has not changed since."""
    known = stamps().get(str(path.absolute()))
    return known.sha256 if known and _same(known, path.stat()) else None


def stamps() -> dict[str, Stamp]:
    """All stamps, by absolute path. A damaged file counts as empty: everything is verified anew."""
    found: dict[str, Stamp] = {}
    for file in _files():
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found.update(msgspec.json.decode(file.read_bytes(), type=dict[str, Stamp]))
    return found


def stamp(path: Path, status: os.stat_result, sha256: str) -> None:
    """Remember a verified file. Where neither folder can be written it is verified at each start."""
    value = Stamp(size=status.st_size, mtime_ns=status.st_mtime_ns, sha256=sha256, rules=_RULES)
    _store({**stamps(), str(path.absolute()): value})


def forget(path: Path) -> None:
    """Drop the stamp of a removed file."""
    left = stamps()
    if left.pop(str(path.absolute()), None):
        _store(left)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`, whole or not at all, durable when this returns. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _same(known: Stamp, status: os.stat_result) -> bool:
    return (known.size, known.mtime_ns, known.rules) == (status.st_size, status.st_mtime_ns, _RULES)


def _files() -> tuple[Path, Path]:
    return paths.cache_dir() / "verified.json", paths.models_dir() / "verified.json"


def _store(values: dict[str, Stamp]) -> None:
    data = msgspec.json.encode(values)
    for file in reversed(_files()):
        with contextlib.suppress(OSError):
            write_atomically(file, data)
            return
