"""What editors tell of answers, and what is told of editors that tell nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.house import Standing, head_and_body, standing
from support.waiting import until

SESSION = Path(__file__).parent.parent / "data" / "wire" / "llama_vim_session.jsonl"
TEXT = "for row in rows:\n        total += row"
BODY = {"prefix": "def total(rows):\n    ", "suffix": "\n", "path": "a.py", "client": "me", "lines": "free"}


async def totals(house: Standing) -> Any:
    return (await house.ask("GET", "/v1/stats?days=1")).json["total"]


async def tell(house: Standing, **body: Any) -> None:
    reply = await house.ask("POST", "/v1/feedback", body)
    assert (reply.status, reply.json) == (200, {})


@pytest.mark.parametrize(
    ("told", "outcome", "taken"),
    [
        ([{"kind": "shown"}, {"kind": "accepted", "elapsed_ms": 900.5}], "whole", len(TEXT)),
        ([{"kind": "word"}, {"kind": "dismissed"}], "word", 3),
        ([{"kind": "line", "characters": 16}, {"kind": "dismissed"}], "line", 16),
        ([{"kind": "shown"}, {"kind": "dismissed"}], "dismissed", 0),
        ([{"kind": "word", "characters": 10_000}, {"kind": "dismissed"}], "word", len(TEXT)),
    ],
)
async def test_an_editor_tells(told: list[dict[str, Any]], outcome: str, taken: int) -> None:
    async with standing(TEXT) as house:
        answer = (await house.ask("POST", "/v1/complete", BODY)).json
        assert answer["text"] == TEXT
        assert answer["language"] == "python"
        for one in told:
            await tell(house, id=answer["id"], invented=1, **one)
        total = await totals(house)
        assert (total["shown"], total[outcome], total["characters"]) == (1, 1, taken)


async def test_of_answers_that_are_not_known() -> None:
    async with standing() as house:
        for kind in ("shown", "accepted", "word", "line", "dismissed"):
            await tell(house, id="cmpl-0", kind=kind)
        assert house.metrics.total("feedback", "unknown") == 5
        assert (await totals(house))["answers"] == 0


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"kind": "shown"}, "id"),
        ({"id": "x", "kind": "liked"}, "kind"),
        ({"id": "x", "kind": "word", "characters": -1}, "characters"),
        ({"id": "x", "kind": "word", "elapsed_ms": -1}, "elapsed_ms"),
    ],
)
async def test_what_is_wrong_is_named(body: Any, named: str) -> None:
    async with standing() as house:
        reply = await house.ask("POST", "/v1/feedback", body)
        assert reply.status == 400
        assert named in reply.json["error"]["message"]


@pytest.mark.parametrize("days", ["0", "x", "-1", "99999"])
async def test_days(days: str) -> None:
    async with standing() as house:
        assert (await house.ask("GET", f"/v1/stats?days={days}")).status == 400


async def test_documents_tell_of_a_silent_editor() -> None:
    async with standing(TEXT) as house:
        body = {"text": "def total(rows):\n    \n", "cursor": {"line": 1, "character": 4}, "path": "a.py"}
        await house.ask("POST", "/v1/complete", {**body, "lines": "free"})
        changed = {"event": "change", "path": "a.py", "text": f"def total(rows):\n    {TEXT}\n"}
        await house.ask("POST", "/v1/documents", changed)
        total = await totals(house)
        assert (total["whole"], total["characters"]) == (1, len(TEXT))


async def test_the_recorded_session_of_an_editor_that_tells_nothing() -> None:
    """Most second requests ask ahead: what they hold was taken by nobody. The last answer was taken."""
    sent = [json.loads(line)["body"] for line in SESSION.read_text("utf-8").splitlines()]
    async with standing("return total") as house:
        for body in sent:
            assert (await house.ask("POST", "/infill", body)).status == 200
        house.house.feedback.close()
        total = await totals(house)
        assert total["answers"] > 5
        assert (total["accepted"], total["whole"], total["characters"]) == (1, 1, len("return total"))


async def test_who_reads_a_stream_as_far_as_it_wants_shows_what_it_read() -> None:
    async with standing("for row in rows:\n        total += row\n        more()\n") as house:
        house.engine.hold_after = 8
        reader, writer = await house.connect()
        writer.write(head_and_body("POST", "/v1/complete", {**BODY, "stream": True}))
        async with asyncio.timeout(10):
            await reader.readuntil(b"rows:")
        writer.close()
        await until(lambda: house.metrics.total("answers", "vanished"))
        house.house.feedback.close()
        total = await totals(house)
        assert (total["answers"], total["left"] + total["over"]) == (1, total["shown"])


@pytest.mark.parametrize("door", ["native", "infill", "tabby"])
@pytest.mark.parametrize("then", ["whole", "over"])
async def test_every_dialect_has_figures_without_telling_anything(door: str, then: str) -> None:
    before, after = "def total(rows):\n    ", "\n\nprint(1)\n"

    async def ask(house: Standing, prefix: str) -> None:
        path, body = {
            "native": ("/v1/complete", {"prefix": prefix, "suffix": after, "lines": "line"}),
            "infill": ("/infill", {"input_prefix": prefix, "input_suffix": after}),
            "tabby": ("/v1/completions", {"segments": {"prefix": prefix, "suffix": after}}),
        }[door]
        assert (await house.ask("POST", path, body)).status == 200

    async with standing("return sum(rows)") as house:
        await ask(house, before)
        house.clock[0] = 1.0
        await ask(house, before + ("return sum(rows)" if then == "whole" else "x = 1"))
        by = (await house.ask("GET", "/v1/stats")).json["by"]
        (row,) = by["door"]
        assert (row["name"], row["shown"], row[then]) == (door, 1, 1)
