"""Pages over a real context of the tiny model: texts, what is evaluated, paged out and paged in."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.waiting import until

from daemon.engine.binding import Context, Ids, Model, Part
from daemon.engine.pages import Pages

SCRATCH = 5
PAGE = 96 * 1024
"""More than a whole page of the tiny model takes."""
NAME = b"i" * 32


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    found = Context(model, cells=4096, sequences=6, batch=64, threads=1, kv_type="f16", flash=False)
    yield found
    found.close()


def text(seed: int, length: int) -> Ids:
    return np.random.default_rng(seed).integers(0, 250, length).astype(np.int32)


def made(context: Context, host: int, disk: int = 0, folder: Path | None = None, name: bytes = NAME) -> Pages:
    return Pages(context, SCRATCH, name, host_bytes=host, disk_bytes=disk, folder=folder)


def evaluate(context: Context, tokens: Ids, start: int, sequence: int) -> np.ndarray:
    """Logits behind `tokens`, of which the first `start` are evaluated."""
    for at in range(start, len(tokens), 64):
        rows = tokens[at : at + 64]
        assert context.decode(Part(rows, at, sequence, 1))
    return context.logits(1)[0].copy()


def page_out(pages: Pages, sequence: int, tokens: Ids, holds: Callable[[], bool] = lambda: True) -> None:
    at = 0
    while at < len(tokens):
        assert holds()
        before, at = at, pages.put(sequence, tokens, np.ones(len(tokens), np.int32), at)
        if at == before:
            written(pages)


def page_in(pages: Pages, sequence: int, tokens: Ids, start: int = 0) -> int:
    known = pages.known(tokens, start)
    while start < known and (restored := pages.get(sequence, tokens, start)) is not None:
        assert len(restored.widths) == restored.end - start > 0
        start = restored.end
    return start


def written(pages: Pages) -> None:
    asyncio.run(until(lambda: pages.report().writing == 0))


def kept(context: Context, folder: Path, tokens: Ids, disk: int = 100 * PAGE) -> None:
    """Pages of `tokens` on disk, from a process that has ended."""
    pages = made(context, 0, disk, folder)
    evaluate(context, tokens, 0, 0)
    page_out(pages, 0, tokens)
    written(pages)
    context.cut(0, 0)
    pages.close()


def usage(folder: Path) -> int:
    held = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # removed since it was listed: it takes nothing
                held += entry.stat().st_blocks * 512
    return held
