"""`state.json` beside each database: how the root stands, for other processes and the next start."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import msgspec

from indexer.frames import RootState

STATE = "state.json"


def save(folder: Path, state: RootState) -> None:
    """Write `state.json`; where nothing can be written there is nothing to tell."""
    part = folder / f"{STATE}.{os.getpid()}.part"
    with contextlib.suppress(OSError):
        part.write_bytes(msgspec.json.encode(msgspec.structs.replace(state, updated=time.time())))
        part.replace(folder / STATE)


def load(folder: Path) -> RootState | None:
    """The last state that was written; None when there is none that can be read."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / STATE).read_bytes(), type=RootState)
    return None
