"""A mirror of the documents of one project, and requests about them as a client sends them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import roots
from daemon.documents.mirror import Mirror
from daemon.nouns import CompletionRequest
from daemon.readers import Readers
from daemon.settings import Index

CODE = "import os\n\n\ndef first():\n    return 1\n\n\ndef second(value):\n    return value\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "project"
    found.mkdir()
    (found / "a.py").write_text(CODE, encoding="utf-8")
    roots.add(roots.normal(found))
    return roots.normal(found)


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    made = Mirror(Readers(Index()), documents=4, total_bytes=200_000)
    yield made
    made.shut()


def asked(path: str | None, text: str, at: int, whole: bool = True, client: str = "c") -> CompletionRequest:
    return CompletionRequest(
        id="1", client=client, door="native", prefix=text[:at], suffix=text[at:], path=path, whole=whole
    )
