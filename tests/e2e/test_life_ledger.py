"""`audit`, `explain` and `replay` with a real daemon and the tiny model; nothing of it stays or is logged."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.living import Home, until

CANARY = "canary_in_the_document"
SOURCE = f"def {CANARY}(price):\n    total = price\n    return total\n"


@pytest.fixture
def home() -> Iterator[Home]:
    folder = Path(tempfile.mkdtemp(prefix="ft-"))
    made = Home(folder)
    (folder / "a.py").write_text(SOURCE, encoding="utf-8")
    yield made
    made.run("down", cwd=Path("/"))
    shutil.rmtree(folder, ignore_errors=True)


def said(home: Home, *words: str) -> Any:
    done = home.run(*words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_request_is_audited_explained_and_replayed(home: Home, tiny_model: Path) -> None:
    home.up("--model", str(tiny_model))
    until(lambda: home.status()["model"]["phase"] == "ready", 60)
    answer = said(home, "complete", "--json", "--max-tokens", "8", str(home.folder / "a.py:3:12"))
    name = answer["id"]
    body = said(home, "audit", "--json", "--last", "5")
    assert [entry["id"] for entry in body["entries"]] == [name]
    assert body["composition"]["wrong"] == []
    assert (body["audited"], body["audit_wrong"]) == (1, 0)
    told = said(home, "explain", "--json", name)
    assert CANARY in "".join(segment["text"] for segment in told["prompt"])
    shown = home.run("explain", name.removeprefix("cmpl-")[:8]).stdout
    assert "<|fim_prefix|>" in shown
    assert CANARY in shown
    assert "the same answer" in home.run("replay", name).stdout
    assert said(home, "stats", "--json")["total"]["answers"] == 0, "it may still be taken"
    said(home, "complete", "--json", "--max-tokens", "8", str(home.folder / "a.py:3:12"))
    gone = home.run("explain", "cmpl-nothing")
    assert (gone.returncode, "no request" in gone.stderr) == (2, True)
    assert home.status()["ledger"] == {"on": True, "why": "", "rows": 2, "dropped": 0, "note": ""}
    home.run("down")
    left = [file for file in home.folder.rglob("*") if file.is_file() and file.name != "a.py"]
    assert left
    assert [file for file in left if CANARY.encode() in file.read_bytes()] == []
    with sqlite3.connect(home.folder / "state/ledger.db") as db:
        assert db.execute("select count(*) from content").fetchone() == (0,)
        shown = db.execute("select outcome from fate").fetchall()
    db.close()
    assert shown == [("left",)] * (1 if answer["text"].strip() else 0)


def test_without_a_place_for_the_ledger_the_daemon_runs_and_says_so(home: Home) -> None:
    (home.folder / "state/ledger.db").mkdir(parents=True)
    home.up()
    until(lambda: home.status()["ledger"]["why"])
    told = home.run("status").stdout
    assert "ledger     off: " in told
    assert "degraded   no request is remembered: " in told
    for command in ("audit", "stats"):
        done = home.run(command)
        assert done.returncode != 0
        assert "the request ledger is off" in done.stderr
