"""A writer in a process of its own, to be killed. Started from a server that has everything imported."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from support import rows

from indexer.store import Store

FILES, NAMES = 30, 25


def write_forever(path: str, version: int, pipe: Connection) -> None:
    """Says "sound" or why the database was put aside, then each version of all files once it is written."""
    with Store(Path(path)) as store:
        pipe.send(store.quarantined or "sound")
        while True:
            version += 1
            names = [f"v{version}_{i}" for i in range(NAMES)]
            store.apply([rows.made(f"f{i}.py", defines=names, uses=names) for i in range(FILES)])
            pipe.send(version)


def context() -> Any:
    """How to start it."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["support.writing"])
    return found
