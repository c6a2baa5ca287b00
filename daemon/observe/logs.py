"""Capped log files for the daemon and its children. What is logged are names, sizes and times; never text."""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from daemon import paths
from daemon.settings import Logs

_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"
_TAIL_BYTES = 1 << 20
_POLL_S = 0.2


def log_file(name: str = "daemon") -> Path:
    """The newest log file of the process called `name`."""
    return paths.logs_dir() / f"{name}.log"


class _Clean(logging.Formatter):
    """Passes whole entries through `clean`, tracebacks included: an exception may quote what it read."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__(_FORMAT, datefmt="%Y-%m-%d %H:%M:%S")
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        return self._clean(super().format(record))


def setup(settings: Logs, name: str = "daemon", clean: Callable[[str], str] = str) -> str:
    """Log this process to its capped file. Empty when all is well, else why there is only stderr.

    One file holds at most `settings.max_mb` million bytes; `settings.keep` older ones stay beside it.
    `clean` takes secrets out of an entry.
    """
    trouble = ""
    handler: logging.Handler
    try:
        paths.logs_dir().mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = logging.handlers.RotatingFileHandler(
            log_file(name), maxBytes=settings.max_mb * 1_000_000, backupCount=settings.keep, encoding="utf-8"
        )
    except OSError as error:
        trouble = f"no log file: {error.filename or paths.logs_dir()}: {error.strerror or error}"
        handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Clean(clean))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(settings.level)
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a full disk must not fill stderr as well
    return trouble


def names() -> list[str]:
    """Which processes have a log file."""
    return sorted(file.stem for file in paths.logs_dir().glob("*.log"))


def total_bytes() -> int:
    """Size of all log files together."""
    return sum(file.stat().st_size for file in paths.logs_dir().glob("*.log*"))


def tail(file: Path, count: int) -> list[str]:
    """The last `count` lines, of the last million bytes at most. Raises OSError when there is no file."""
    with file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - _TAIL_BYTES))
        lines = stream.read().decode("utf-8", "replace").splitlines()
    return lines[-count:] if count > 0 else []


def follow(file: Path) -> Iterator[str]:
    """Text as it is appended from now on, across rotations, until the caller stops asking."""
    stream = file.open("rb")
    try:
        stream.seek(0, 2)
        while True:
            if data := stream.read():
                yield data.decode("utf-8", "replace")
                continue
            time.sleep(_POLL_S)
            if file.exists() and not _same(file.stat(), stream):
                stream.close()
                stream = file.open("rb")
    finally:
        stream.close()


def _same(now: os.stat_result, stream: IO[bytes]) -> bool:
    """Whether the name still means the file we read, and it was not cut."""
    return os.path.samestat(now, os.fstat(stream.fileno())) and now.st_size >= stream.tell()
