"""What `stats` draws, from the figures of a real house."""

from __future__ import annotations

import pytest
from support.house import standing

from daemon.cli import stats

BODY = {"prefix": "def total(rows):\n    ", "suffix": "\n", "path": "a.py", "client": "me"}


async def test_stats_draws_the_sums(capsys: pytest.CaptureFixture[str]) -> None:
    async with standing("return sum(rows)") as house:
        for kind in ("accepted", "dismissed"):
            name = (await house.ask("POST", "/v1/complete", BODY)).json["id"]
            await house.ask("POST", "/v1/feedback", {"id": name, "kind": kind})
        body = (await house.ask("GET", "/v1/stats?days=7")).json
    stats._draw(body)
    head, every, *rest = capsys.readouterr().out.splitlines()
    assert head.split() == " ".join(stats._TITLES).split()
    assert every.split() == ["all", "2", "50%", "1", *"––––", "1", *"––––"]
    assert max(len(line) for line in rest) <= 80
    groups = [line.strip() for line in rest if line.startswith("by ")]
    assert groups == ["by language", "by window", "by tiers", "by door"]
    assert any(line.split()[:4] == ["python", "2", "50%", "1"] for line in rest)
    assert any(line.split()[:2] == ["native", "2"] for line in rest)


async def test_stats_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    async with standing() as house:
        stats._draw((await house.ask("GET", "/v1/stats?days=3")).json)
    assert capsys.readouterr().out == "no answers in the last 3 days\n"


def test_names_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    sums = dict.fromkeys((*stats._COUNTS, "shown", "share"), 0) | {"answers": 1}
    sums |= dict.fromkeys(stats._KEPT)
    stats._draw({"days": 1, "total": sums, "by": {"language": [{**sums, "name": "\x1b[31m"}]}})
    assert "\x1b" not in capsys.readouterr().out
