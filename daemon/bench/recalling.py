"""`foretype bench typing --recall`: a trace typed again with recall; what is known is asked of the model too.

Definitions:
- model-free: answered from what was answered before, or asked in advance; no run of the engine;
- in a burst: the edit comes less than 1 s after the one before;
- ready: model-free, or at most 4 prompt tokens evaluated before the first output;
- agreed: a model-free answer whose text is that of a fresh run: the same request with recall off, asked once
  the pause behind it is over. Text is known only in the tokens that the model wrote: such a run finds them
  evaluated (`fresh_evaluated_mean`), and asking it helps no later request.

Between two edits the daemon may ask in advance for as long as the recording pauses there and no longer, cut
at LONGEST_S; a pause ends early once nothing is left to do. Edits of one second in a trace of 1 s resolution
are spread over that second.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from rich.table import Table

from daemon.bench import keystrokes, ours, rig, stats, traces
from daemon.bench.keystrokes import Plan
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.errors import BadRequest
from daemon.recall.memory import LEVELS

TOKENS = 64
"""As it is set by default."""
BURST_S = 1.0
LONGEST_S = 4.0
FEW = 4
"""Prompt tokens."""


@dataclass(frozen=True, slots=True)
class Step:
    """One edit: the question, the same to the model, the seconds since the edit before and until the next."""

    body: bytes
    fresh: bytes
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Heard:
    """What was answered, and by the model where it was known."""

    step: Step
    mine: ours.Answer
    fresh: ours.Answer | None = None


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
        ask = partial(ours.ask_body, key.prefix, key.suffix, tokens=TOKENS, lines="auto", stream=False)
        before = times[key.index] - times[key.index - 1] if key.index else LONGEST_S
        after = times[key.index + 1] - times[key.index] if key.index + 1 < len(times) else LONGEST_S
        fresh = ask(recall=False, client="fresh")
        found.append(Step(ask(), fresh, before, min(max(after, 0.0), LONGEST_S)))
    return found


async def typed(plan: Sequence[Step], here: rig.Rig, progress: Progress) -> list[Heard]:
    """Every answer; what is left of a pause is the daemon's."""
    heard = []
    for number, step in enumerate(plan):
        sent = time.monotonic()
        mine = await ours.ask_whole(here.endpoint, step.body)
        await here.rested(sent + step.after)
        fresh = await ours.ask_whole(here.endpoint, step.fresh) if mine.recall else None
        heard.append(Heard(step, mine, fresh))
        progress(number + 1, len(plan))
    return heard


def figures_of(heard: Sequence[Heard]) -> Figures:
    """By the definitions above. Times in ms."""
    mine = [one.mine for one in heard]
    known = [(one.mine, one.fresh) for one in heard if one.fresh is not None]
    times = [answer.engine_ms for answer, _ in known]
    bursts = [one.mine for one in heard if 0 <= one.step.before < BURST_S]
    ready = [one for one in bursts if one.recall or one.evaluated <= FEW]
    figures: Figures = {
        "keystrokes": float(len(heard)),
        "model_free_share": stats.ratio(len(known), len(heard)),
        "model_free_p50_ms": stats.percentile(times, 0.5),
        "model_free_p99_ms": stats.percentile(times, 0.99),
        "model_free_client_p99_ms": stats.percentile((answer.last for answer, _ in known), 0.99),
        "run_client_p50_ms": stats.percentile((one.last for one in mine if not one.recall), 0.5),
        "fresh_evaluated_mean": stats.mean([fresh.evaluated for _, fresh in known]),
        "blank_share": stats.ratio(sum(one.blank for one in mine), len(mine)),
        "known_blank_share": stats.ratio(sum(answer.blank for answer, _ in known), len(known)),
        "prefetch_ready_share": stats.ratio(len(ready), len(bursts)),
        "bursts": float(len(bursts)),
        "failed": float(sum(not one.whole for one in mine)),
    }
    return {**figures, **_agreement(known)}


def _agreement(known: Sequence[tuple[ours.Answer, ours.Answer]]) -> Figures:
    hits = Counter(answer.recall for answer, _ in known)
    agreed = Counter(answer.recall for answer, fresh in known if answer.text == fresh.text)
    figures = {"agree_share": stats.ratio(agreed.total(), len(known)), "compared": float(len(known))}
    for level in LEVELS:
        figures[f"hits_{level}"] = float(hits[level])
        figures[f"agree_{level}"] = stats.ratio(agreed[level], hits[level])
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
    ("prompt tokens that a fresh run evaluated, mean", "fresh_evaluated_mean"),
    ("nothing to show, share of all answers", "blank_share"),
    ("… of those without the model", "known_blank_share"),
)


def shown(title: str, figures: Figures) -> Table:
    """For people."""
    return table(title, ["", "figure"], [[words, figures[name]] for words, name in ROWS])


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Type `plan.limit` edits of the trace. Raises ForetypeError when a request fails."""
    if plan.trace is None:
        raise BadRequest("--recall needs the edits and times of a trace", "Give --trace FILE")
    trace = traces.load(plan.trace)
    start = keystrokes.middle(trace) if plan.start is None else plan.start
    score = steps(trace, start, plan.limit)
    if not score:
        raise BadRequest(f"the trace has {len(trace.edits)} edits, none from {start} on")
    async with rig.running(plan.model, recall={"on": True}) as here:
        outcome = here.outcome("typing", plan.seed)
        outcome.figures.update(figures_of(await typed(score, here, progress)))
        status = (await here.status())["recall"]
    outcome.figures["saved_ms"] = status["saved_ms"]
    for name in ("generated", "used", "wasted"):
        outcome.figures[f"prefetch_{name}"] = float(status["prefetch"][name])
    title = f"{trace.name}, {len(score)} edits from {start}, with recall"
    outcome.tables.append(shown(title, outcome.figures))
    return outcome
