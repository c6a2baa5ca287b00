"""What `audit`, `explain` and `replay` draw, from rows of a real house."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.house import standing

from daemon.cli import audit, explain, palette, replay
from daemon.nouns import Segment
from daemon.observe import audit as audits
from daemon.surroundings import Lost, WindowClass

BODY = {
    "prefix": "def total(lines):\n    return pri",
    "suffix": "\n\nx = '\x1b[31m\u202e'\n",
    "path": "pay.py",
    "client": "me",
    "extras": [{"filename": "b.py", "text": "price = 1"}],
}


async def test_audit_draws_each_request_and_the_sums(capsys: pytest.CaptureFixture[str]) -> None:
    async with standing("price") as house:
        names = [(await house.ask("POST", "/v1/complete", BODY)).json["id"] for _ in range(2)]
        body = (await house.ask("GET", "/v1/ledger")).json
    audit._draw(body)
    shown = capsys.readouterr().out
    prompt = body["composition"]["prompt"]
    assert all(name in shown for name in names)
    assert f"2 requests, {prompt} prompt tokens" in shown
    bars = [line.count("█") for line in shown.splitlines()[:2]]
    assert bars == [audit._WIDTH, audit._WIDTH]
    (source,) = [line for line in shown.splitlines() if line.endswith("b.py")]
    part = body["composition"]["sources"][0]["tokens"]
    assert f"{part} " in source
    assert f"{part / prompt:.1%}" in source
    assert "do not add up" not in shown


def test_audit_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    audit._draw({"entries": [], "composition": audits.composition([])})
    assert capsys.readouterr().out.startswith("0 requests, 0 prompt tokens")


async def test_explain_shows_the_exact_prompt_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    async with standing("price") as house:
        name = (await house.ask("POST", "/v1/complete", BODY)).json["id"]
        entry = await house.house.ledger.find(name)
    chosen = msgspec.structs.replace(
        entry,
        window=WindowClass(name="simple", lines="line", context=2048, output=32, reason="a short statement"),
        epoch=3,
        stable="chosen when the file was opened",
        segments=(*entry.segments, Segment(kind="context", source="outline b.py:1", tokens=0, tier="P3")),
        lost=(Lost(tier="P3", source="outline c.py:1", tokens=70, score=0.41, why="no room in P3"),),
    )
    pieces = [*(bytes([byte]) for byte in range(256)), *[b""] * 6]
    explain._draw(audits.explanation(chosen, pieces))
    shown = capsys.readouterr().out
    assert "simple (2048 tokens, 32 out, line): a short statement" in shown
    assert "epoch 3: chosen when the file was opened" in shown
    assert "P3 outline c.py:1: 70 tokens, score 0.41, no room in P3" in shown
    assert "P3 context   outline b.py:1" in shown
    assert entry.anchor in shown
    assert "<|fim_prefix|>" in shown
    assert "<|fim_middle|>def total(lines):\n    return\n" in shown
    assert "\x1b" not in shown
    assert "\\x1b[31m\\u202e" in shown
    explain._draw(audits.explanation(msgspec.structs.replace(chosen, content=None), []))
    assert "no longer kept" in capsys.readouterr().out
    explain._draw(audits.explanation(msgspec.structs.replace(chosen, content=None, segments=()), []))
    assert "no prompt was made" in capsys.readouterr().out


def test_unknown_tokens_are_numbers() -> None:
    assert audits._piece(7, [b"a"]) == b"<|7|>"
    assert audits._piece(-1, [b"a"]) == b"<|-1|>"


def test_tiers_and_kinds_have_their_own_look() -> None:
    assert palette.style({"tier": "P2", "kind": "context"}) == palette.STYLES["P2"]
    assert palette.style({"tier": "P0", "kind": "middle"}) == palette.STYLES["middle"]
    assert palette.style({"tier": "", "kind": "scaffold"}) == palette.STYLES["scaffold"]
    assert palette.style({}) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"same": True, "why": ""}, "the same answer"),
        ({}, "another answer (they part after 2 characters)"),
        ({}, "recorded  'ab' then 'c'"),
        ({"margin": 0.001}, "leads by 0.001: either was as good"),
        ({"margin": 2.0}, "leads by 2.000"),
    ],
)
def test_replay_says_what_differs(change: dict[str, Any], said: str) -> None:
    body = {
        "id": "cmpl-1", "same": False, "why": "they part after 2 characters", "recorded": "abc",
        "replayed": "abd", "recorded_stop": "line", "replayed_stop": "line", "at": 2, "margin": None,
        "counters": {"evaluated": 9, "generated": 3}, "timings": {"total": 12.0}, **change,
    }  # fmt: skip
    assert any(line.endswith(said) for line in replay._lines(body)), list(replay._lines(body))
