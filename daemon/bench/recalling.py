"""`foretype bench typing --recall`: a trace typed again with recall on, and once more with every answer from
the model.

Definitions:
- model-free: answered from what was answered before, or asked in advance; no run of the engine;
- in a burst: the edit comes less than 1 s after the one before;
- ready: model-free, or at most 4 prompt tokens evaluated before the first output;
- agreed: a model-free answer whose text is that of the second replay, where another daemon with the same
  model and recall off is asked the same questions in the same order, with its cache.

Between two edits the daemon may ask in advance for as long as the recording pauses there and no longer, cut
at LONGEST_S; a pause ends early once nothing is left to do. Edits of one second in a trace of 1 s resolution
are spread over that second.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.table import Table

from daemon.bench import keystrokes, ours, rig, stats, traces
from daemon.bench.keystrokes import Plan
from daemon.bench.outcome import Figures, Outcome, table
from daemon.errors import BadRequest
from daemon.recall.memory import LEVELS

TOKENS = 32
"""Enough for a line."""
BURST_S = 1.0
LONGEST_S = 4.0
FEW = 4
"""Prompt tokens."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One edit: the question, the seconds since the edit before and until the next."""

    body: bytes
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Both:
    """What was answered with recall, and by the model."""

    step: Step
    mine: ours.Answer
    fresh: ours.Answer


def spread(times: Sequence[float]) -> list[float]:
    """Times of 1 s resolution, each second's edits spread over it; finer ones as they are."""
    if any(time % 1 for time in times):
        return list(times)
    found = []
    for second, same in groupby(times):
        many = len(list(same))
        found += [second + place / many for place in range(many)]
    return found


def steps(trace: traces.Trace, start: int, limit: int) -> list[Step]:
    """The questions, made beforehand."""
    times = spread([edit.time for edit in trace.edits])
    found = []
    for key in traces.replay(trace, start, limit):
        body = ours.ask_body(key.prefix, key.suffix, tokens=TOKENS, lines="auto", stream=False)
        before = times[key.index] - times[key.index - 1] if key.index else LONGEST_S
        after = times[key.index + 1] - times[key.index] if key.index + 1 < len(times) else LONGEST_S
        found.append(Step(body, before, min(max(after, 0.0), LONGEST_S)))
    return found


async def typed(
    plan: Sequence[Step], here: rig.Rig, progress: Callable[[int], None], *, paced: bool
) -> list[ours.Answer]:
    """Every answer. `paced`: what is left of a pause is the daemon's."""
    answers = []
    for number, step in enumerate(plan):
        sent = time.monotonic()
        answers.append(await ours.ask_whole(here.endpoint, step.body))
        if paced and time.monotonic() < sent + step.after:
            await here.rested(sent + step.after)
        progress(number + 1)
    return answers


def figures_of(found: Sequence[Both]) -> Figures:
    """By the definitions above. Times in ms."""
    known = [both for both in found if both.mine.recall]
    bursts = [both.mine for both in found if 0 <= both.step.before < BURST_S]
    ready = [one for one in bursts if one.recall or one.evaluated <= FEW]
    levels = Counter(both.mine.recall for both in known)
    agreed = Counter(both.mine.recall for both in known if both.mine.text == both.fresh.text)
    figures: Figures = {
        "keystrokes": float(len(found)),
        "model_free_share": stats.ratio(len(known), len(found)),
        "model_free_p50_ms": stats.percentile((both.mine.engine_ms for both in known), 0.5),
        "model_free_p99_ms": stats.percentile((both.mine.engine_ms for both in known), 0.99),
        "model_free_client_p99_ms": stats.percentile((both.mine.last for both in known), 0.99),
        "run_client_p50_ms": stats.percentile(
            (both.mine.last for both in found if not both.mine.recall), 0.5
        ),
        "agree_share": stats.ratio(agreed.total(), len(known)),
        "compared": float(len(known)),
        "blank_share": stats.ratio(sum(both.mine.blank for both in found), len(found)),
        "known_blank_share": stats.ratio(sum(both.mine.blank for both in known), len(known)),
        "prefetch_ready_share": stats.ratio(len(ready), len(bursts)),
        "bursts": float(len(bursts)),
        "failed": float(sum(not both.mine.whole for both in found)),
    }
    for level in LEVELS:
        figures[f"hits_{level}"] = float(levels[level])
        figures[f"agree_{level}"] = stats.ratio(agreed[level], levels[level])
    return figures


ROWS = (
    ("answered without the model, share", "model_free_share"),
    ("… time in the daemon p50, ms", "model_free_p50_ms"),
    ("… time in the daemon p99, ms", "model_free_p99_ms"),
    ("… time for the client p99, ms", "model_free_client_p99_ms"),
    ("answered by the model: time for the client p50, ms", "run_client_p50_ms"),
    ("model-free answers that a fresh run gives too, share", "agree_share"),
    ("answers typed along", "hits_typed"),
    ("… agreed", "agree_typed"),
    ("answers asked for again", "hits_exact"),
    ("… agreed", "agree_exact"),
    ("answers asked for in advance", "hits_prefetched"),
    ("… agreed", "agree_prefetched"),
    ("requests in bursts that were ready, share", "prefetch_ready_share"),
    ("tokens generated in advance", "prefetch_generated"),
    ("… of answers that were given", "prefetch_used"),
    ("… wasted", "prefetch_wasted"),
    ("nothing to show, share of all answers", "blank_share"),
    ("… of those without the model", "known_blank_share"),
)


def shown(title: str, figures: Figures) -> Table:
    """For people."""
    return table(title, ["", "figure"], [[words, figures[name]] for words, name in ROWS])


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Type `plan.limit` edits of the trace, twice. Raises ForetypeError when a request fails."""
    if plan.trace is None:
        raise BadRequest("--recall needs the edits and times of a trace", "Give --trace FILE")
    trace = traces.load(plan.trace)
    start = keystrokes.middle(trace) if plan.start is None else plan.start
    score = steps(trace, start, plan.limit)
    if not score:
        raise BadRequest(f"the trace has {len(trace.edits)} edits, none from {start} on")
    both = 2 * len(score)
    async with rig.running(plan.model, recall=True) as here:
        outcome = here.outcome("typing", plan.seed)
        mine = await typed(score, here, lambda done: progress(done, both), paced=True)
        status = (await here.status())["recall"]
    async with rig.running(plan.model) as there:
        fresh = await typed(score, there, lambda done: progress(len(score) + done, both), paced=False)
    outcome.figures.update(figures_of([Both(*each) for each in zip(score, mine, fresh, strict=True)]))
    outcome.figures["saved_ms"] = status["saved_ms"]
    for name in ("generated", "used", "wasted"):
        outcome.figures[f"prefetch_{name}"] = float(status["prefetch"][name])
    title = f"{trace.name}, {len(score)} edits from {start}, with recall"
    outcome.tables.append(shown(title, outcome.figures))
    return outcome
