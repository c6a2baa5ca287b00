"""Positions under fire: random edits through LSP synchronisation, and the daemon's copies against an oracle.

FORETYPE_EDITS says how many: `FORETYPE_EDITS=100000 pytest tests/unit/test_doors_lspsync.py`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.house import Standing, standing
from support.lsp import Editor, edit, editor
from support.waiting import until

from daemon.documents.held import Copy
from daemon.doors.documents import HELD
from daemon.doors.lspsync import Change, Text, path_of

EDITS = int(os.environ.get("FORETYPE_EDITS", "3000"))
WIDTHS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
PIECES = [
    "a",
    "bc",
    " ",
    "\t",
    "é",
    "你好",
    "😀",
    "👩‍👧",
    "\u2028",
    "\x0b",
    "\x85",
    "\ufeff",
    "\n",
    "\r\n",
    "\r",
    "\n\n",
]
URI, PATH = "file:///work/a.txt", "/work/a.txt"
MOST = 400


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with TemporaryDirectory(prefix="ft") as folder:
        monkeypatch.setenv("FORETYPE_HOME", folder)
        yield Path(folder)


class Oracle:
    """The text of an editor: what it holds, and where it says that a place is. Slow and simple."""

    def __init__(self, encoding: str, seed: int) -> None:
        self.text = ""
        self.version = 1
        self.encoding, self.random = encoding, random.Random(seed)

    def position(self, offset: int) -> tuple[int, int]:
        line, start, at = 0, 0, 0
        while at < offset:
            size = 2 if self.text[at : at + 2] == "\r\n" else 1
            if self.text[at] in "\r\n":
                line, start = line + 1, at + size
            at += size
        codec, width = WIDTHS[self.encoding]
        return line, len(self.text[start:offset].encode(codec)) // width

    def place(self) -> int:
        """Any place that an editor can name: not between CR and LF."""
        offset = self.random.randint(0, len(self.text))
        return offset - (self.text[max(offset - 1, 0) : offset + 1] == "\r\n")

    def step(self) -> dict[str, Any]:
        """One random edit, as LSP says it."""
        draw = self.random.random()
        new = "".join(self.random.choices(PIECES, k=self.random.randint(0, 4)))
        if draw < 0.01:
            self.text = new
            return {"text": new}
        start = self.place()
        end = self.place() if draw < 0.2 or len(self.text) > MOST else start
        if draw > 0.7:
            end = min(len(self.text), start + 1)
            end += self.text[end - 1 : end + 1] == "\r\n"
        start, end = min(start, end), max(start, end)
        change = edit(self.position(start), self.position(end), new)
        self.text = self.text[:start] + new + self.text[end:]
        return change

    @property
    def inner(self) -> str:
        return self.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def mirrored(house: Standing) -> str | None:
    return next((d.text for d in house.mirror.documents() if d.path == PATH), None)


async def settled(house: Standing, one: Editor, oracle: Oracle) -> None:
    """Ask at a random place: what the pipeline sees is the oracle's text, cut there."""
    offset = oracle.place()
    line, character = oracle.position(offset)
    before = len(house.pipeline.requests)
    await one.ghost(URI, line, character)
    (asked,) = house.pipeline.requests[before:]
    assert asked.prefix + asked.suffix == oracle.inner
    cut = Oracle("utf-32", 0)
    cut.text = oracle.text[:offset]
    assert asked.prefix == cut.inner
    assert mirrored(house) == oracle.inner


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("encoding", list(WIDTHS))
async def test_random_edits_keep_the_mirror_equal(encoding: str) -> None:
    oracle, told = Oracle(encoding, seed=len(encoding) + EDITS), 0
    async with standing("a", found=True) as house, editor() as one:
        able = await one.initialize({"general": {"positionEncodings": [encoding]}})
        assert able["positionEncoding"] == encoding
        one.open(URI, oracle.text)
        while told < EDITS // len(WIDTHS):
            for _ in range(oracle.random.randint(1, 12)):
                changes = [oracle.step() for _ in range(oracle.random.randint(1, 6))]
                oracle.version += 1
                one.change(URI, oracle.version, *changes)
                told += len(changes)
            await settled(house, one, oracle)
        assert house.metrics.snapshot()["counters"].get("errors", {}).get("resync", 0) == 0
        assert one.messages() == []


async def test_a_planted_divergence_is_noticed_and_nothing_is_answered_from_it() -> None:
    oracle = Oracle("utf-16", seed=3)
    async with standing("a", found=True) as house, editor() as one:
        await one.initialize()
        one.open(URI, oracle.text)
        await settled(house, one, oracle)
        held = house.served.runner.app[HELD]
        client = house.pipeline.requests[0].client
        for turn in range(60):
            one.change(URI, oracle.version + 1, oracle.step())
            oracle.version += 1
            await settled(house, one, oracle)
            ((_, copy),) = held._copies.items()
            held.take(client, PATH, Copy(copy.version, f"{copy.text}planted"))
            asked = len(house.pipeline.requests)
            if turn % 2:
                assert await one.ghost(URI, *oracle.position(oracle.place())) == []
                assert len(house.pipeline.requests) == asked, "nothing was asked of the model"
                await until(lambda: held._copies and next(iter(held._copies.values())).text == oracle.text)
        resyncs = house.metrics.snapshot()["counters"]["errors"]["resync"]
        assert resyncs == 60
        assert one.messages() == []


async def test_what_cannot_be_right_silences_until_the_text_is_shown() -> None:
    async with standing("a", found=True) as house, editor() as one:
        await one.initialize()
        one.open(URI, "x = 1\n")
        one.change(URI, 2, edit((7, 0), (7, 1), "y"))
        assert await one.ghost(URI, 0, 5) == []
        assert [text for text in one.messages() if "a.txt" in text and "saving" in text]
        assert house.pipeline.requests == []
        one.change(URI, 3, edit((0, 0), (0, 0), "z"))
        assert await one.ghost(URI, 0, 5) == []
        one.tell("textDocument/didSave", {"textDocument": {"uri": URI}, "text": "x = 12\n"})
        assert await one.ghost(URI, 0, 6)
        assert mirrored(house) == "x = 12\n"
        one.change(URI, 3, edit((0, 0), (0, 0), "told twice"))
        one.change(URI, 4, edit((0, 5), (99, 0), "3\n"))
        assert await one.ghost(URI, 0, 6)
        assert mirrored(house) == "x = 13\n"


def test_a_doubtful_document_is_read_when_it_is_saved(tmp_path: Path) -> None:
    text = Text("a", "x\n", 1, "")
    for changes, doubtful in (
        ([Change("a", (0, 9, 0, 9))], True),
        ([Change("", (0, 1, 0, 0))], True),
        ([Change("😀")], False),
        ([Change("b", (0, 1, 0, 2))], True),
        ([Change("c", (0, 0, 0, 9))], True),
    ):
        text.change(changes, None, "utf-16")
        assert text.doubtful is doubtful
        assert bool(text.unusable) is doubtful


def test_halves_of_a_character_come_together() -> None:
    text = Text("a", "x", 1, "")
    text.told = 1
    text.next()
    text.change([Change("\ud83d", (0, 1, 0, 1))], 2, "utf-16")
    assert text.next()["text"] == "x\ufffd"
    text.change([Change("\ude00", (0, 2, 0, 2))], 3, "utf-16")
    assert text.text == "x😀"
    assert text.next()["text"] == "x😀"
    text.change([Change("y", (0, 3, 0, 3))], 4, "utf-16")
    text.told = 4
    assert text.next()["edits"] == [{"start": 2, "end": 2, "text": "y"}]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///w/a%20b.py", "/w/a b.py"),
        ("file://localhost/w/a.py", "/w/a.py"),
        ("file:///w/a;b%23c.py", "/w/a;b#c.py"),
        ("untitled:Untitled-1", "untitled:Untitled-1"),
        ("file:///w/%ff.py", "file:///w/%ff.py"),
    ],
)
def test_uris_become_paths(uri: str, path: str) -> None:
    assert path_of(uri) == path
