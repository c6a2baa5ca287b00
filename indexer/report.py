"""How a root stands, for the daemon and for `state.json` beside the database."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec
import psutil

from indexer.frames import DATABASE, Phase, RootState, State
from indexer.pool import Pool
from indexer.root import Root


def root_state(root: Root, pool: Pool | None, deferred: bool) -> RootState:
    """Everything about one root but the time."""
    keeper = root.keeper
    phase, detail = _phase(root, deferred)
    database = keeper.folder / DATABASE
    return RootState(
        path=root.spec.path,
        phase=phase,
        detail=detail,
        complete=phase == "ready" or (keeper.complete and not len(root.changes) and not keeper.pending),
        files=keeper.tally.files,
        lines=keeper.tally.lines,
        languages=dict(sorted(keeper.tally.languages.items())),
        skipped=keeper.tally.skipped(),
        done=keeper.done,
        total=keeper.total,
        queue=len(root.changes) + keeper.pending,
        delay_ms=round(keeper.delay_ms, 1),
        database_bytes=_size(database),
        wal_bytes=_size(database.with_name(f"{database.name}-wal")),
        ngram_bytes=sum(_size(file) for file in (keeper.folder / "ngrams").glob("*")),
        degraded=_degraded(root, pool),
        rebuilt=keeper.harm,
        vocabulary=keeper.vocabulary,
        generation=root.spec.generation,
    )


def _phase(root: Root, deferred: bool) -> tuple[Phase, str]:
    keeper = root.keeper
    if root.unavailable:
        return "unavailable", root.unavailable
    if keeper.trouble:
        return "degraded", keeper.trouble
    if not keeper.opened:
        return "starting", ""
    if root.settled():
        return "ready", ""
    if root.scan is not None or not root.scanned:
        return "walking", "comparing the folder with what is stored"
    if deferred and not root.changes.urgent:
        return "deferred", "on battery"
    return "indexing", ""


def _degraded(root: Root, pool: Pool | None) -> tuple[str, ...]:
    reasons = [root.unavailable, root.keeper.trouble, *root.notes(), *root.keeper.remarks()]
    if pool is not None:
        reasons += [pool.broken, pool.note]
    return tuple(reason for reason in reasons if reason)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def with_costs(state: State, pool: Pool | None) -> State:
    """`state` with memory and CPU time of this process and its children."""
    rss, cpu = 0, 0.0
    for pid in (os.getpid(), *(pool.pids() if pool else ())):
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            rss += process.memory_info().rss
            times = process.cpu_times()
            cpu += times.user + times.system
    return msgspec.structs.replace(state, rss_bytes=rss, cpu_s=round(cpu, 3))
