"""Rows of what became of answers: figures over them, a bounded ring, one row for each answer."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from support.ledger import CANARY, entry, kept

from daemon.errors import NotSupported
from daemon.observe.fates import OUTCOMES, Fate
from daemon.settings import Ledger as Settings


def fate(number: int, **more: Any) -> Fate:
    values = {"at": time.time(), "door": "infill", "language": "python", "window": "simple", "tiers": "P0 P1"}
    return Fate(id=f"cmpl-{number}", **{**values, "after_ms": 2000.0, "characters": 20, **more})


async def test_the_figures() -> None:
    rows = [
        fate(1, outcome="whole", taken=20, kept_30=1.0, kept_120=0.5),
        fate(2, outcome="line", taken=10, kept_30=0.5, language="go"),
        fate(3, outcome="word", taken=4, after_ms=10.0),
        fate(4, outcome="typed"),
        fate(5, outcome="over"),
        fate(6, outcome="dismissed", window="complex", tiers="P0"),
        fate(7, outcome="left", door="tabby", language=""),
        fate(8, outcome="over", after_ms=700.0),
        fate(9, outcome="over", after_ms=10.0, told=True),
        fate(10, outcome="whole", taken=9, at=time.time() - 8 * 86_400),
    ]
    total, by = await told(rows, 7)
    counts = {name: total[name] for name in ("answers", "shown", "accepted", *OUTCOMES)}
    assert counts == {
        "answers": 9, "shown": 8, "accepted": 3, "whole": 1, "line": 1, "word": 1, "typed": 1, "over": 2,
        "dismissed": 1, "left": 1,
    }  # fmt: skip
    assert sum(total[name] for name in OUTCOMES) == total["shown"]
    assert (total["share"], total["characters"]) == (pytest.approx(3 / 8), 34)
    assert (total["kept_30"], total["kept_30_of"]) == (0.75, 2)
    assert (total["kept_120"], total["kept_120_of"], total["kept_300"]) == (0.5, 1, None)
    assert {one["name"]: one["answers"] for one in by["language"]} == {"python": 7, "go": 1, "": 1}
    assert [one["name"] for one in by["tiers"]] == ["P0 P1", "P0"]
    assert {one["name"]: one["share"] for one in by["window"]}["complex"] == 0.0
    assert {one["name"] for one in by["door"]} == {"infill", "tabby"}
    everything, _ = await told(rows, 30)
    assert everything["answers"] == 10


async def told(rows: list[Fate], days: int, settings: Settings | None = None) -> tuple[Any, Any]:
    with tempfile.TemporaryDirectory() as folder, kept(Path(folder) / "l.db", settings) as ledger:
        for row in rows:
            ledger.add(row)
        found = await ledger.figures(days)
        return found["total"], found["by"]


async def test_off_tells_nothing(tmp_path: Path) -> None:
    with kept(tmp_path / "l.db", Settings(on=False)) as ledger:
        ledger.add(fate(1))
        with pytest.raises(NotSupported, match=r"ledger\.on is false"):
            await ledger.figures(7)
    assert not (tmp_path / "l.db").exists()


async def test_of_nothing() -> None:
    total, by = await told([], 30)
    assert (total["answers"], total["share"], total["kept_30"], total["whole"]) == (0, 0.0, None, 0)
    assert by == {"language": [], "window": [], "tiers": [], "door": []}


async def test_an_answer_has_one_row_and_the_newest_rows_stay() -> None:
    rows = [fate(1), fate(1, outcome="whole", taken=20), fate(1, outcome="whole", taken=20, kept_30=1.0)]
    total, _ = await told(rows, 1)
    assert (total["answers"], total["whole"], total["kept_30"]) == (1, 1, 1.0)
    total, _ = await told([fate(number) for number in range(200)], 1, Settings(answers=50))
    assert total["answers"] == 50


async def test_rows_of_requests_and_of_answers_do_not_touch(tmp_path: Path) -> None:
    with kept(tmp_path / "l.db", Settings(rows=5, answers=3)) as ledger:
        for number in range(20):
            ledger.add(entry(number))
            ledger.add(fate(number))
        assert len(await ledger.last(50)) == 5
        assert (await ledger.figures(1))["total"]["answers"] == 3
    with sqlite3.connect(tmp_path / "l.db") as db:
        columns = {row[1] for row in db.execute("pragma table_info(fate)")}
        dump = str(list(db.execute("select * from fate")))
    db.close()
    assert not columns & {"path", "text", "client", "prefix"}
    assert CANARY not in dump
