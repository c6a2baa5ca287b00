"""Ghost text in a real Neovim: it comes while typing, is taken with a key, and is what the daemon logged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support import nvim, tiny

from daemon.bench import rig, wire

TEXT = "def total(items):\n    price = 0\n    for item in items:\n        price = price\n    return price\n"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[rig.Rig]:
    async with rig.running(str(tiny.write(tmp_path / "tiny.gguf"))) as running:
        yield running


async def logged(here: rig.Rig, door: str) -> list[str]:
    """The texts that this door's requests were answered with, by the ledger."""
    found = await wire.fetch(here.endpoint, "GET", "/v1/ledger?last=100")
    rows = [row for row in found["entries"] if row["door"] == door]
    texts = []
    for row in rows:
        entry: dict[str, Any] = await wire.fetch(here.endpoint, "GET", f"/v1/ledger/{row['id']}")
        texts.append(entry["answer"]["text"])
    return texts


async def test_infill(here: rig.Rig, tmp_path: Path) -> None:
    file = tmp_path / "total.py"
    file.write_text(TEXT, encoding="utf-8")
    port = {"FORETYPE_TEST_PORT": str(here.endpoint.port)}
    with nvim.running("infill.lua", file, port) as editor:
        editor.type("4GA")
        for key in " + item * price":
            editor.type("<Space>" if key == " " else key)
            editor.until("Asked > 0 and Asked == Answered")
            if shown := editor.lua("Ghost"):
                break
        assert shown, "a model with random weights says something sooner or later"
        typed = editor.text.split("\n")[3]
        assert editor.lua("#vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, {})") == 1
        editor.type("<Tab><Esc>")
        editor.until('vim.fn.mode() == "n"')
        lines = TEXT.split("\n")
        assert editor.text == "\n".join([*lines[:3], typed + shown, *lines[4:]])
        assert shown in await logged(here, "infill")
