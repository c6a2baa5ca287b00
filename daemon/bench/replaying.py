"""`foretype bench wire`: what recorded clients sent, sent again; is every answer one that they can use?"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from daemon.bench import dialects, rig, sessions, stats, wire
from daemon.bench.outcome import Outcome, table
from daemon.errors import BadRequest, EngineFailed

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Tally:
    """Of one dialect. Times in ms."""

    answered: int = 0
    """With status 200."""
    texts: int = 0
    """With something to show."""
    times: list[float] = field(default_factory=list)
    wrong: Counter[str] = field(default_factory=Counter)
    """Why an answer is of no use to its client → how often."""


async def run(files: Sequence[Path], seed: int, model: str | None, progress: Progress) -> Outcome:
    """Send each session again, one request after the other, all sessions at the same time.

    Raises BadRequest for a file that is no recording.
    """
    recorded = [sessions.load_sent(path) for path in files]
    total = sum(map(len, recorded))
    if not total:
        raise BadRequest("there is nothing in these sessions", "Give --session a recording")
    found: dict[str, _Tally] = {}
    async with rig.running(model) as here:

        async def replay(session: Sequence[sessions.Sent]) -> None:
            for sent in session:
                await _ask(here.endpoint, sent, found.setdefault(dialects.dialect(sent), _Tally()))
                progress(sum(len(tally.times) for tally in found.values()), total)

        await asyncio.gather(*map(replay, recorded))
        outcome = here.outcome("wire", seed)
        outcome.figures["sequences"] = float((await here.report())["sequences"])
    _tell(outcome, found)
    return outcome


async def _ask(endpoint: wire.Endpoint, sent: sessions.Sent, tally: _Tally) -> None:
    began = time.perf_counter()
    try:
        reply = await wire.exchange(endpoint, sent.method, sent.path, sent.body, sent.headers)
        tally.answered += reply.status == 200
        tally.texts += bool(dialects.check(sent, reply).strip())
    except EngineFailed:
        tally.wrong["no answer"] += 1
    except dialects.Wrong as wrong:
        tally.wrong[str(wrong)] += 1
    tally.times.append((time.perf_counter() - began) * 1000.0)


def _tell(outcome: Outcome, found: dict[str, _Tally]) -> None:
    """All dialects together, and each."""
    whole = _Tally(
        sum(t.answered for t in found.values()),
        sum(t.texts for t in found.values()),
        [ms for t in found.values() for ms in t.times],
        sum((t.wrong for t in found.values()), Counter[str]()),
    )
    rows = []
    for name, tally in {"": whole, **dict(sorted(found.items()))}.items():
        figures = {
            "requests": float(len(tally.times)),
            "answered": float(tally.answered),
            "invalid": float(tally.wrong.total()),
            "with_text": float(tally.texts),
            "ms_p50": stats.percentile(tally.times, 0.5),
            "ms_p90": stats.percentile(tally.times, 0.9),
        }
        mark = f"_{name.replace(' ', '_')}" if name else ""
        outcome.figures.update({f"{figure}{mark}": value for figure, value in figures.items()})
        rows.append([name or "all", *(int(v) if v == int(v) else v for v in figures.values())])
        outcome.notes += [f"{name}: {n} × {why}" for why, n in tally.wrong.items() if name]
    columns = ["dialect", "requests", "answered", "invalid", "with text", "ms p50", "ms p90"]
    outcome.tables.append(table("recorded sessions sent again", columns, rows))
