"""Clients of five dialects on one document at the same time: one daemon, one model, one evaluated text."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import PEERS, ask
from support.lsp import edit
from test_life_daemon import Home, home
from test_lsp import Server, editor, first_ghost

__all__ = ["home"]
BEFORE = """import csv


def read_rows(path):
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))


def total_price(rows):
    total = 0
    for row in rows:
        total += """
AFTER = """
    return total


if __name__ == "__main__":
    print(total_price(read_rows("orders.csv")))
"""
TYPED = 'float(row["price"])'


class Desk:
    """The document in an editor with our language server, and clients of other dialects beside it."""

    def __init__(self, home: Home, server: Server, path: Path) -> None:
        self.home, self.server, self.uri = home, server, path.as_uri()
        address = next(a for a in home.status()["addresses"] if a.startswith("http"))
        self.port = int(address.rpartition(":")[2])
        self.before, self.version = BEFORE, 1
        server.open(self.uri, BEFORE + AFTER)

    @property
    def at(self) -> tuple[int, int]:
        """Line and character of the cursor."""
        return self.before.count("\n"), len(self.before) - self.before.rfind("\n") - 1

    def type(self, text: str) -> None:
        self.version += 1
        self.server.change(self.uri, self.version, edit(self.at, self.at, text))
        self.before += text

    async def ghost(self) -> str:
        items = await self.server.ghost(self.uri, *self.at)
        return str(items[0]["insertText"]) if items else ""

    async def all(self) -> dict[str, str]:
        """What each client is answered when all ask at once."""
        others = (ask(self.port, peer, self.before, AFTER) for peer in PEERS.values())
        texts = await asyncio.gather(self.ghost(), *others)
        return dict(zip(("lsp", *PEERS), texts, strict=True))

    async def status(self) -> dict[str, Any]:
        return await asyncio.to_thread(self.home.status)

    async def known(self) -> None:
        """Until the daemon knows whose text it is that comes without a name."""
        async with asyncio.timeout(60):
            await first_ghost(self.server, self.uri, *self.at)
            while True:
                before = (await self.status())["metrics"]["counters"].get("path", {})
                await self.all()
                after = (await self.status())["metrics"]["counters"]["path"]
                if after.get("recovered", 0) - before.get("recovered", 0) == len(PEERS):
                    return


@pytest.fixture
def flags(tiny_model: Path) -> tuple[str, ...]:
    return ("--model", str(tiny_model))


async def test_five_dialects_share_one_document(home: Home, flags: tuple[str, ...]) -> None:
    home.up(*flags)
    async with editor(home) as server:
        await server.initialize()
        desk = Desk(home, server, home.folder / "orders.py")
        await desk.known()
        before = await desk.status()
        texts = []
        for character in TYPED:
            desk.type(character)
            found = await desk.all()
            assert set(found.values()) == {found["lsp"]}, found
            texts.append(found["lsp"])
        after = await desk.status()
    assert sum(map(bool, texts)) > len(TYPED) // 2, "there was something to compare"
    tokens = [body["metrics"]["counters"]["tokens"]["evaluated"] for body in (before, after)]
    evaluated = tokens[1] - tokens[0]
    assert evaluated <= 2 * len(TYPED), "each keystroke is evaluated once, not once for each client"
    counted = after["metrics"]["counters"]
    assert "superseded" not in counted["answers"]
    assert counted["coalesced"]["same"] >= len(TYPED), "and most ask for a text that is being written"
    assert len(after["children"]) == len(before["children"])
    assert after["reuse"]["after_slice"] == 0
