"""A ledger in a file of its own, and rows for it whose texts hold a canary."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daemon.nouns import Limits
from daemon.observe.entries import Content, Entry
from daemon.observe.ledger import Ledger
from daemon.settings import Ledger as Settings

CANARY = "a_canary_that_sings_in_the_mine"


def entry(number: int, when: float | None = None, content: bool = True) -> Entry:
    kept = Content(
        tokens=os.urandom(8000),
        suffix=CANARY,
        limits=Limits(stop=(CANARY,)),
        text=CANARY,
        shown=CANARY,
    )
    return Entry(
        id=f"cmpl-{number:016x}", when=time.time() if when is None else when, client="c", door="d",
        path="a.py", language="", model="m", sha256="0", build="b", stop="line",
        content=kept if content else None,
    )  # fmt: skip


@contextmanager
def kept(path: Path, settings: Settings | None = None) -> Iterator[Ledger]:
    ledger = Ledger(path, settings or Settings())
    ledger.start()
    try:
        yield ledger
    finally:
        ledger.close(10)
