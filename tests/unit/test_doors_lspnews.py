"""What an editor is told of its daemon, and which of its folders are indexed."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support.lsp import editor

from daemon import roots
from daemon.doors import client
from daemon.doors.lsplink import Link
from daemon.doors.lspnews import Going, News, under_way
from daemon.errors import EngineFailed, LifecycleError, Loading, NotRunning, Overloaded
from daemon.models import catalogue
from daemon.models.partial import Partial
from daemon.settings import Index

MODEL = "qwen2.5-coder-0.5b-q4_k_m"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.delenv("FORETYPE_MODELS", raising=False)
    return tmp_path


def test_each_trouble_is_told_once() -> None:
    told: list[tuple[str, bool]] = []
    news = News(lambda text, failed: told.append((text, failed)))
    for error in (
        EngineFailed("it broke"),
        Overloaded("full", "Wait", 3),
        Loading("soon"),
        NotRunning("gone"),
    ):
        news.trouble(error)
        news.trouble(error)
    assert told == [
        ("Foretype: it broke", True),
        ("Foretype is busy: full. Wait", False),
        ("Foretype: gone", True),
    ]
    news.well()
    news.trouble(NotRunning("gone"))
    assert len(told) == 4
    news.status({"model": {"phase": "failed", "detail": "exit code 9"}, "degradations": ["slow", "slow"]})
    assert [text for text, _ in told[4:]] == ["Foretype: the engine failed: exit code 9", "Foretype: slow"]


def test_nothing_goes_on_in_a_daemon_at_rest() -> None:
    ready: dict[str, Any] = {"model": {"phase": "ready"}, "index": {"roots": [{"phase": "ready"}]}}
    assert under_way(ready) == under_way({}) == []
    ready["index"]["roots"] += [{"phase": "walking", "done": 0, "total": 0}]
    assert under_way(ready) == [Going("index", "Foretype: indexing", "0 of 0 files", None)]


def test_a_pull_is_seen_while_it_grows() -> None:
    body = {"model": {"phase": "failed", "asked": MODEL, "remedy": "pull it"}}
    assert under_way(body) == []
    entry = catalogue.find(MODEL)
    part = Partial(catalogue.file_of(entry))
    part.begin("somewhere", 0)
    part.write(b"x" * (entry.bytes // 100 + 1))
    part.close()
    assert under_way(body) == [Going("pull", f"Foretype: pulling {MODEL}", "4 MB", 1)]
    os.utime(part.path, (1, 1))
    assert under_way(body) == []


def test_folders_of_editors_are_registered_once(home: Path) -> None:
    inner, other, mine = home / "me/src/inner", home / "other", home / "me"
    for folder in (inner, other):
        folder.mkdir(parents=True)
    index = Index(roots=(str(other),))
    assert not roots.adopt(mine, index), "the home folder"
    assert not roots.adopt(home, index), "what holds it"
    assert not roots.adopt(other, index), "the settings name it"
    assert roots.adopt(inner.parent, index)
    assert not roots.adopt(inner, index), "it lies in one that is registered"
    assert list(roots.registered()) == [inner.parent]


def test_windows_that_register_at_once_lose_nothing(home: Path) -> None:
    folders = [home / f"project{n}" for n in range(12)]
    for folder in folders:
        folder.mkdir()
    threads = [threading.Thread(target=roots.adopt, args=(folder, Index())) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(roots.registered()) == sorted(folders)


async def test_a_daemon_that_cannot_start_is_explained_once(home: Path) -> None:
    (home / "home").write_text("a file stands here")
    async with editor() as one:
        await one.initialize()
        one.open("file:///work/a.py", "x = 1\n")
        assert await one.ghost("file:///work/a.py", 0, 5) == []
        await one.heard(lambda: [text for text in one.messages() if "runtime folder" in text])
        assert await one.ghost("file:///work/a.py", 0, 5) == []
        (told,) = [text for text in one.messages() if "runtime folder" in text]
        assert "FORETYPE_HOME" in told


@pytest.mark.parametrize("late", [False, True])
async def test_whoever_asks_after_a_failed_start_hears_why_it_failed(home: Path, late: bool) -> None:
    (home / "home").write_text("a file stands here")
    link = Link(client.address)
    link.start()
    assert link.starting is not None
    if late:
        await asyncio.wait([link.starting])
    for _ in range(2):
        with pytest.raises(LifecycleError, match="runtime folder"):
            await link.ask("GET", "/v1/status")
    await link.close()
