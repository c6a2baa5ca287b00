"""The ledger's file: a bounded ring, texts that really go, and whatever can happen to a file."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from pathlib import Path

import pytest
from support.ledger import CANARY, entry, kept
from support.waiting import until

from daemon.errors import BadRequest, NotSupported
from daemon.observe.ring import Ring
from daemon.settings import Ledger as Settings


def everything(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in files(folder) if file.exists())


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_row_comes_back_as_it_was_and_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    with kept(tmp_path / "l.db") as ledger:
        one, two = entry(0xA1), entry(0xB2)
        ledger.add(one)
        ledger.add(two)
        assert await ledger.find(one.id) == one
        assert await ledger.find(one.id.removeprefix("cmpl-")) == one
        assert await ledger.find(two.id[:-1]) == two
        assert [row.id for row in await ledger.last(5)] == [one.id, two.id]
        assert all(row.content is None for row in await ledger.last(5))
        for name, said in (("cmpl-0", "more than one"), ("x", "no request"), ("", "no request")):
            with pytest.raises(BadRequest, match=said):
                await ledger.find(name)
        assert ledger.state == {"on": True, "why": "", "rows": 2, "dropped": 0, "note": ""}
        if os.name == "posix":
            assert {stat.S_IMODE(file.stat().st_mode) for file in files(tmp_path)} == {0o600}


async def test_the_ring_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with kept(path, Settings(rows=10, keep_text_minutes=-1)) as ledger:
        for number in range(200):
            ledger.add(entry(number))
        assert [int(row.id[5:], 16) for row in await ledger.last(1000)] == list(range(190, 200))
        assert ledger.state["rows"] == 10
    with sqlite3.connect(path) as db:
        assert db.execute("select count(*) from content").fetchone() == (10,)
    db.close()
    assert path.stat().st_size < 900_000, "the ring and one batch, of 1.6 MB"


async def test_purged_text_is_in_no_file_and_nobody_has_to_ask_for_it(tmp_path: Path) -> None:
    with kept(tmp_path / "l.db", Settings(keep_text_minutes=5 / 60)) as ledger:
        for number in range(30):
            ledger.add(entry(number))
        assert (await ledger.find(entry(1).id)).content is not None
        with sqlite3.connect(tmp_path / "l.db") as db:
            stored = [data for (data,) in db.execute("select data from content")]
        db.close()
        parts = [data[at : at + 16] for data in stored for at in range(0, len(data) - 16, 500)]
        assert len(stored) == 30
        assert all(part in everything(tmp_path) for part in parts)
        await until(lambda: not any(part in everything(tmp_path) for part in parts), 30)
        row = await ledger.find(entry(1).id)
        assert (row.content, row.stop) == (None, "line")
        assert len(await ledger.last(100)) == 30


@pytest.mark.parametrize(("minutes", "during", "after"), [(0, 0, 0), (30, 1, 0), (-1, 1, 1)])
async def test_how_long_text_is_kept(tmp_path: Path, minutes: float, during: int, after: int) -> None:
    path, settings = tmp_path / "l.db", Settings(keep_text_minutes=minutes)
    with kept(path, settings) as ledger:
        ledger.add(entry(1, when=time.time() - (0 if minutes >= 0 else 1e6)))
        assert ((await ledger.find("cmpl-0")).content is not None) == during
    with kept(path, settings) as ledger:
        assert ((await ledger.find("cmpl-0")).content is not None) == after


def test_old_text_goes_at_the_start_also_when_the_clock_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ring = Ring(path, 10, -1)
    ring.write([entry(1, time.time() - 1801), entry(2), entry(3, time.time() + 86_400)])
    ring.close()
    ring = Ring(path, 10, 1800)
    assert [bool(row.content) for row in ring.find("cmpl-", 5)] == [False, True, False]
    ring.close()


async def test_off_keeps_nothing_and_removes_what_there_was(tmp_path: Path) -> None:
    with kept(tmp_path / "l.db") as ledger:
        ledger.add(entry(1))
    (tmp_path / "l.db.damaged").write_text(CANARY)
    with kept(tmp_path / "l.db", Settings(on=False)) as ledger:
        ledger.add(entry(2))
        with pytest.raises(NotSupported, match=r"ledger\.on is false"):
            await ledger.last(1)
    assert files(tmp_path) == []
    assert (ledger.state["on"], ledger.state["dropped"]) == (False, 0)


@pytest.mark.parametrize("harm", ["header", "middle", "cut", "foreign", "newer", "text"])
async def test_a_file_that_is_not_sound_is_put_aside(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "l.db"
    with kept(path, Settings(keep_text_minutes=-1)) as ledger:
        for number in range(50):
            ledger.add(entry(number))
    data = bytearray(path.read_bytes())
    if harm == "header":
        data[:16] = b"\0" * 16
    elif harm == "middle":
        data[4096 * 2 : 4096 * 6] = os.urandom(4096 * 4)
    elif harm == "text":
        data[:] = b"not a database " * 1000
    path.write_bytes(data[:10_000] if harm == "cut" else data)
    if harm in ("foreign", "newer"):
        with sqlite3.connect(path) as db:
            db.execute("pragma application_id = 1" if harm == "foreign" else "pragma user_version = 99")
        db.close()
    with kept(path) as ledger:
        ledger.add(entry(99))
        assert [row.id for row in await ledger.last(100)] == [entry(99).id]
        assert ledger.state["on"]
        assert "put aside" in ledger.state["note"]
        assert (tmp_path / "l.db.damaged").exists()
    assert not (tmp_path / "l.db.damaged").exists(), "it held text, and nobody would remove it later"


async def test_damage_while_it_runs_costs_rows_not_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with kept(path) as ledger:
        for number in range(50):
            ledger.add(entry(number))
        assert len(await ledger.last(100)) == 50
        for suffix in ("", "-wal"):
            with (tmp_path / f"l.db{suffix}").open("r+b") as file:
                file.write(os.urandom(200_000))
        number = 100

        async def again() -> bool:
            nonlocal number
            number += 1
            ledger.add(entry(number))
            try:
                return bool(await ledger.last(1)) and "put aside" in ledger.state["note"]
            except NotSupported:
                return False

        deadline = time.monotonic() + 10
        while not await again():
            assert time.monotonic() < deadline
        assert (await ledger.last(1))[0].id == entry(number).id


async def test_a_file_that_somebody_removes_is_made_anew(tmp_path: Path) -> None:
    with kept(tmp_path / "l.db") as ledger:
        ledger.add(entry(1))
        assert len(await ledger.last(9)) == 1
        for file in files(tmp_path):
            file.unlink()
        ledger.add(entry(2))
        assert [row.id for row in await ledger.last(9)] == [entry(2).id]
        assert (tmp_path / "l.db").exists()


@pytest.mark.parametrize("what", ["folder", "file"])
async def test_a_place_that_cannot_be_had_turns_it_off_and_says_why(tmp_path: Path, what: str) -> None:
    path = tmp_path / "state" / "l.db"
    if what == "folder":
        path.mkdir(parents=True)
    else:
        path.parent.write_text("in the way")
    with kept(path) as ledger:
        ledger.add(entry(1))
        with pytest.raises(NotSupported, match="ledger is off"):
            await ledger.last(1)
        assert not ledger.state["on"]
        assert ledger.state["why"]
        assert ledger.state["dropped"] == 1
