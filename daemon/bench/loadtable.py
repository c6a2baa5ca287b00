"""The figures and tables of `foretype bench load`, from what became of the questions on both sides. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.table import Table

from daemon.bench import crowd, stats, typists
from daemon.bench.crowd import Crowd
from daemon.bench.outcome import Figures, Outcome, show, table

LIMIT_MS = 2000.0
"""P99 within which a number of streams is served."""
_MB = 1e6
_TIMES = {"p50_ms": 0.5, "p99_ms": 0.99}
ROWS = (
    ("answer p50, ms", "p50_ms", "p50_ratio"),
    ("answer p99, ms", "p99_ms", "p99_ratio"),
    ("answers/s", "rate", "rate_ratio"),
    ("KV of one question, peak MB", "kv_mb", "kv_ratio"),
    ("KV in all, host memory included, peak MB", "kv_held_mb", "kv_held_ratio"),
    ("questions", "asked", ""),
    *((f"… {ending}", ending, "") for ending in crowd.ENDINGS),
    ("prompt tokens of an answer p50", "prompt_p50", ""),
    ("of them evaluated p50", "evaluated_p50", ""),
    ("engine time of an answer p50, ms", "engine_ms_p50", ""),
)


def served(found: Crowd) -> bool:
    """Whether its P99 is known, and within the limit."""
    time, seen = found.within(0.99)
    return seen and time <= LIMIT_MS


def compared(mine: Crowd, its: Crowd, cell: float) -> Figures:
    """Both sides (the naive one's names end in `_naive`) and the ratios. `cell`: bytes of one token's KV.

    A time that the naive side exceeds counts as that time, and no answer as one: the ratio is then at least
    what it says. A time that we exceed gives no ratio.
    """
    ours, naive = _side(mine, cell), _side(its, cell)
    return {
        **ours,
        **{f"{key}_naive": value for key, value in naive.items()},
        **{
            key.replace("_ms", "_ratio"): stats.ratio(naive[key], ours[key])
            if mine.within(share)[1]
            else math.nan
            for key, share in _TIMES.items()
        },
        "rate_ratio": ours["rate"] / max(naive["rate"], 1 / its.seconds),
        "kv_ratio": stats.ratio(naive["kv_mb"], ours["kv_mb"]),
        "kv_held_ratio": stats.ratio(naive["kv_held_mb"], ours["kv_held_mb"]),
    }


def _side(found: Crowd, cell: float) -> Figures:
    answers = found.answered
    return {
        "p50_ms": found.within(0.5)[0],
        "p99_ms": found.within(0.99)[0],
        "rate": len(answers) / found.seconds,
        "kv_mb": found.request_cells * cell / _MB,
        "kv_held_mb": (found.cells * cell + found.paged) / _MB,
        "asked": float(len(found.asked)),
        **{ending: float(found.count(ending)) for ending in crowd.ENDINGS},
        "engine_ms_p50": stats.percentile((a.engine_ms for a in answers), 0.5),
        "prompt_p50": stats.percentile((a.prompt for a in answers), 0.5),
        "evaluated_p50": stats.percentile((a.evaluated for a in answers), 0.5),
    }


def shown(title: str, figures: Figures, mine: Crowd, its: Crowd) -> Table:
    """Both sides and the ratio; times and ratios that are bounds say so."""

    def cell(key: str, found: Crowd, suffix: str) -> str:
        over = key in _TIMES and not found.within(_TIMES[key])[1]
        return f"{'> ' if over else ''}{show(figures[key + suffix])}"

    rows = []
    for words, key, ratio in ROWS:
        least = (key == "rate" and not its.answered) or (key in _TIMES and not its.within(_TIMES[key])[1])
        times = _times(figures[ratio], least) if ratio else ""
        rows.append([words, cell(key, its, "_naive"), cell(key, mine, ""), times])
    return table(title, ["", "naive", "foretype", "ratio"], rows)


def _times(ratio: float, least: bool) -> str:
    return f"{'≥ ' if least and not math.isnan(ratio) else ''}{show(ratio)}"


def bounds(count: int, mine: Crowd, its: Crowd) -> list[str]:
    """Which figures of `count` streams are bounds, in words."""
    found = []
    for side, who in ((its, "the naive pipeline"), (mine, "Foretype")):
        for key, share in _TIMES.items():
            time, seen = side.within(share)
            if not seen:
                found.append(f"{count} streams: {key} of {who} is more than {time:.0f}")
    if not its.answered:
        found.append(f"{count} streams: the naive pipeline gave no answer; rate_ratio counts one")
    return found


def conclude(outcome: Outcome, counts: tuple[int, ...], most: Mapping[str, int]) -> None:
    """What stands for all: the least favourable ratio of all stream counts, and the most streams served."""
    figures = outcome.figures
    for name in (ratio for _, _, ratio in ROWS if ratio):
        each = [figures[f"{name}_{count}"] for count in counts]
        figures[name] = math.nan if any(map(math.isnan, each)) else min(each)
    mine, its = most[""], most["_naive"]
    figures["streams"], figures["streams_naive"] = float(mine), float(its)
    figures["streams_ratio"] = mine / max(its, 1)
    title = f"most streams served with a P99 of {LIMIT_MS / 1000:g} s"
    times = _times(figures["streams_ratio"], not its)
    outcome.tables.append(table(title, ["", "naive", "foretype", "ratio"], [["streams", its, mine, times]]))
    outcome.notes += [
        "every edit is a question and takes back the one before; an answer is a whole one that came while"
        f" its question stood; gaps between edits are at most {typists.LONGEST_S:g} s",
        "p50 and p99 are over all questions: one that was not answered counts as longer than it stood (Kaplan"
        " and Meier); a ratio without a number of streams in its name is the least of them all",
        "kv_ratio compares what the largest question holds; kv_held also counts what is kept between"
        " questions: Foretype keeps evaluated text up to its ceilings, the naive pipeline keeps nothing",
    ]
