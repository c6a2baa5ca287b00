"""The ledger when the disk is full or slow, and when its process is killed."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.ledger import entry, kept
from support.waiting import until

from daemon.errors import Overloaded
from daemon.observe import ledger as ledgers

TESTS = Path(__file__).resolve().parents[1]

FULL = f"""
import resource, signal, sys, asyncio
sys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent)!r}]
from pathlib import Path
from daemon.observe import ledger as ledgers
from daemon.errors import NotSupported
from daemon.settings import Ledger as Settings
from support.ledger import entry, kept
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main():
    with kept(Path(sys.argv[1]), Settings(keep_text_minutes=-1)) as ledger:
        ledger.add(entry(1))
        await ledger.last(1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, resource.RLIM_INFINITY))
        for number in range(2, 500):
            ledger.add(entry(number))
            try:
                await ledger.last(1)
            except NotSupported:
                break
        off = not ledger.state["on"] and ledger.state["why"] and ledger.state["dropped"]
        ledgers._AGAIN_S = 0.0
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        ledger.add(entry(1000))
        found = [row.id for row in await ledger.last(1)]
        print(bool(off), ledger.state["on"], found == [entry(1000).id])
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file size are POSIX")
def test_a_full_disk_turns_it_off_until_there_is_room(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "l.db")], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "True", "True"], done.stderr


KILLED = f"""
import sys, asyncio, itertools
sys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent)!r}]
from pathlib import Path
from support.ledger import entry, kept
async def main():
    with kept(Path(sys.argv[1])) as ledger:
        for number in itertools.count():
            ledger.add(entry(number))
            await ledger.last(1)
            print(number, flush=True)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")
async def test_a_killed_daemon_leaves_a_sound_file(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    written = [int(await child.stdout.readline()) for _ in range(50)][-1]
    child.send_signal(signal.SIGKILL)
    await child.communicate()
    with kept(path) as ledger:
        rows = [int(row.id[5:], 16) for row in await ledger.last(2000)]
        assert rows == list(range(len(rows)))
        assert len(rows) > written
        assert not ledger.state["note"]


async def test_a_slow_disk_costs_rows_and_no_time(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with kept(path) as ledger:
        ledger.add(entry(0))
        await ledger.last(1)
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute("begin exclusive")  # the thread now waits for this lock
            began = time.perf_counter()
            for number in range(1, 3 * ledgers.WAITING):
                ledger.add(entry(number, content=False))
            with pytest.raises(Overloaded):
                await ledger.last(1)
            assert time.perf_counter() - began < 2.0
            assert ledger.state["dropped"] >= ledgers.WAITING
            other.execute("rollback")
        other.close()
        await until(ledger._queue.empty)
        assert len(await ledger.last(2000)) > ledgers.WAITING // 2
