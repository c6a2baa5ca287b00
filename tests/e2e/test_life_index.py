"""Completions never fail because of the index: whatever becomes of it, the daemon answers and says so."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from support.harm import garbage, overwrite
from support.living import Home, home, until

from daemon.doors import client
from daemon.errors import ForetypeError

__all__ = ["home"]


@pytest.fixture
def ready(home: Home, tiny_model: Path) -> Home:
    project = home.folder / "project"
    project.mkdir()
    for number in range(5):
        (project / f"m{number}.py").write_text(f"def name{number}():\n    return {number}\n")
    home.up("--model", str(tiny_model))
    assert home.run("index", "add", str(project), "--json").returncode == 0
    until(lambda: home.status()["model"]["phase"] == "ready", 30)
    return home


class Asking:
    """Completions one after another, until told to stop."""

    def __init__(self, home: Home) -> None:
        self.answered = 0
        self.failed: list[str] = []
        self._at = client.Address(home.socket)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        body = {"path": "a.py", "prefix": "def total(order):\n    return ", "suffix": "\n", "max_tokens": 4}
        while not self._stop.wait(0.05):
            try:
                client.request("POST", "/v1/complete", body, at=self._at)
                self.answered += 1
            except ForetypeError as error:
                self.failed.append(f"{error.code}: {error}")

    def more(self) -> None:
        """Wait for three further answers."""
        before = self.answered
        until(lambda: self.failed or self.answered >= before + 3, 30)
        assert self.failed == []

    def end(self) -> None:
        self._stop.set()
        self._thread.join(30)


def status(home: Home) -> dict[str, Any]:
    return client.request("GET", "/v1/status", at=client.Address(home.socket))


def index_of(home: Home) -> dict[str, Any]:
    return status(home)["index"]  # type: ignore[no-any-return]


def test_completions_go_on_whatever_becomes_of_the_index(ready: Home) -> None:
    (database,) = (ready.folder).rglob("index.db")
    project = str(ready.folder / "project")
    asking = Asking(ready)
    try:
        for time in range(3):
            until(lambda: index_of(ready)["pid"], 30)
            os.kill(index_of(ready)["pid"], signal.SIGKILL)
            until(lambda: any("the indexer ended" in line for line in status(ready)["degradations"]))
            told = json.loads(ready.run("index", "status", project, "--json").stdout)
            assert "the indexer ended" in told["detail"] or index_of(ready)["pid"]  # started again meanwhile
            asking.more()
            (garbage if time else overwrite)(database)
        until(lambda: index_of(ready)["phase"] == "ready", 60)
        assert index_of(ready)["restarts"] == 3
        told = json.loads(ready.run("index", "status", project, "--json").stdout)
        assert (told["complete"], told["files"], bool(told["rebuilt"])) == (True, 5, True)
        garbage(database.with_name("other"))
        database.with_name("other").replace(database)
        until(lambda: "replaced" in index_of(ready)["roots"][0]["rebuilt"], 30)
        asking.more()
        until(lambda: index_of(ready)["phase"] == "ready", 60)
        assert "rebuilt" in ready.run("index", "status", project).stdout
        assert ready.run("index", "refs", "name3", "--root", project).returncode == 0
    finally:
        asking.end()
    assert asking.failed == []
    assert asking.answered > 10
