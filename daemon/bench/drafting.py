"""`foretype bench draft`: what each source of drafts is worth, and whether drafts change an answer.

Every question is asked once without drafts and once with each set of sources, its prompt evaluated before.
Speed is time per generated token against no drafts in the same run. `*_gpu`: lengths chosen for, and speed
computed with, what rows cost on a GPU, from the drafts that were really accepted. Outputs are compared with
and without drafts at the same number of rows per step.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from rich.table import Table

from daemon.bench import draftrig, keystrokes, quality, stats, traces
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.engine.binding import Ids
from daemon.engine.costs import RowCosts
from daemon.engine.drafts import FREE, MODEL, NAMES, Drafts
from daemon.engine.frames import Submit
from daemon.engine.step import Draft
from daemon.engine.worth import Costs
from daemon.errors import BadRequest
from daemon.models import catalogue
from daemon.nouns import CompletionRequest, Generation, Limits
from indexer.ngrams import NgramWriter

QUESTIONS, PAIRS, WIDTH = 60, 500, 8
"""Of each group; prompts compared; rows of every step then."""
TOKENS = 48
STEP = 5
"""Every so many edits of a trace, one position."""
SAVED = 200
"""Edits by which the indexed state of a trace's file is older than the first position."""
GPU_ROW = 0.075
"""V(k) = 1 + GPU_ROW·(k − 1): a 7B model's V(5) is about 1.3 on a GPU (reference/engine.md §3)."""
GPU_STEP = 0.18
"""A 0.5B model's step against a 7B model's."""
VARIANTS: dict[str, frozenset[str]] = {  # the prompts have no context, and there is no index of their like
    **{name: frozenset({name}) for name in NAMES if name not in ("context", "similar")},
    "free": frozenset(FREE),
    "all": frozenset(NAMES),
    "free_gpu": frozenset(FREE),
    "model_gpu": frozenset({MODEL}),
    "all_gpu": frozenset(NAMES),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `pairs`: prompts compared for equality."""

    tasks: Path | None
    trace: Path | None
    model: str
    draft_model: str
    limit: int
    pairs: int
    width: int
    seed: int


@dataclass(frozen=True, slots=True)
class Question:
    """A job, the group that it is counted in, and its number there."""

    group: str
    number: int
    job: Submit


@dataclass(slots=True)
class Sum:
    """What the answers of one variant to one group took."""

    tokens: int = 0
    ms: float = 0.0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    cost: float = 0.0
    """In steps of one row, at GPU-like costs."""

    def add(self, made: Generation, cost: float = 0.0) -> None:
        """One answer."""
        counters, timings = made.counters, made.timings
        self.tokens += counters.generated
        self.ms += timings.total - timings.queued - timings.prompt
        self.steps += counters.steps
        self.drafted += counters.drafted
        self.accepted += counters.accepted
        self.cost += cost


class Counting(Drafts):
    """Drafts that add up what they would cost on a GPU beyond the step of one row."""

    cost = 0.0

    def propose(self, run_id: str, prompt: Ids, generated: Sequence[int], room: int) -> Draft:
        """See Drafts.propose."""
        before = self.model.calls if self.model else 0
        draft = super().propose(run_id, prompt, generated, room)
        calls = self.model.calls - before if self.model else 0
        self.cost += GPU_ROW * len(draft.tokens) + GPU_STEP * calls
        return draft


def questions(plan: Plan, engine: draftrig.Engine, folder: Path, count: int) -> Iterator[Question]:
    """`count` infilling tasks, then positions of a trace; `folder` indexes what its file held before."""
    if plan.tasks is not None:
        for n, task in enumerate(quality.sample(quality.load(plan.tasks), count, plan.seed)):
            yield Question("tasks", n, _job(engine, task.prompt, task.suffix, ""))
    if plan.trace is None:
        return
    trace = traces.load(plan.trace)
    begin = keystrokes.middle(trace)
    saved = next(traces.states(trace, max(0, begin - SAVED), 1)).text
    writer = NgramWriter(folder, vocabulary=engine.profile.model.sha256)
    writer.add_file(trace.name, engine.tokenizer.encode(saved))
    writer.commit()
    for n, key in enumerate(islice(traces.replay(trace, begin, count * STEP), 0, None, STEP)):
        yield Question(trace.name, n, _job(engine, key.prefix, key.suffix, str(folder)))


def _job(engine: draftrig.Engine, prefix: str, suffix: str, ngrams: str) -> Submit:
    limits = Limits(tokens=TOKENS)
    request = CompletionRequest(
        id="", client="", door="bench", prefix=prefix, suffix=suffix, limits=limits, anchor_lines=3
    )
    prompt, _ = engine.layout.plan(request)
    return Submit(
        id="", tokens=prompt.tokens, must=prompt.must, line=prompt.line, suffix=suffix[:2000], limits=limits,
        ngrams=ngrams,
    )  # fmt: skip


class Measurement:
    """All answers to all questions."""

    def __init__(self, engine: draftrig.Engine, plan: Plan) -> None:
        self._engine = engine
        self._plan = plan
        self.sums: dict[tuple[str, str], Sum] = {}
        own = engine.drafts
        per_step = own.model.step_ms / GPU_STEP if own.model else 1.0
        gpu = Costs(RowCosts(((k, per_step * (1.0 + GPU_ROW * (k - 1))) for k in (1, 16)), 16))
        self.variants = {
            name: own.alike(Counting, sources, gpu if name.endswith("_gpu") else own.costs)
            for name, sources in VARIANTS.items()
            if own.model or name not in (MODEL, "model_gpu")
        }
        self.unequal = 0
        self.pairs = 0

    def ask(self, question: Question) -> None:
        """One question with every variant, between two answers without drafts."""
        self._warm(question.job)
        self._plain(question)
        names = list(self.variants)
        at = question.number % len(names)
        for name in names[at:] + names[:at]:  # none of them always comes first, or last
            drafts = self.variants[name]
            before = drafts.cost
            made = self._engine.ask(question.job, drafts)
            self._sum(name, question).add(made, made.counters.steps + drafts.cost - before)
        self._plain(question)

    def compare(self, question: Question) -> None:
        """Whether drafts change the answer where every step has the same number of rows."""
        self._warm(question.job)
        width = self._plan.width
        plain = self._engine.ask(question.job, None, width=width, draft=False)
        drafted = self._engine.ask(question.job, self._engine.drafts, width=width)
        self.pairs += 1
        self.unequal += plain.tokens != drafted.tokens

    def _warm(self, job: Submit) -> None:
        self._engine.ask(job, None, warm=True)
        if (model := self._engine.drafts.model) is not None:
            model.propose("", np.frombuffer(job.tokens, np.int32), 0, len(job.tokens))
            model.end("")

    def _plain(self, question: Question) -> None:
        made = self._engine.ask(question.job, None, draft=False)
        self._sum("none", question).add(made, made.counters.steps)

    def _sum(self, variant: str, question: Question) -> Sum:
        return self.sums.setdefault((variant, question.group), Sum())

    def of(self, variant: str, group: str = "") -> Sum:
        """A variant's sums in one group, or in all."""
        found = Sum()
        for (name, where), part in self.sums.items():
            if name == variant and group in ("", where):
                for field in Sum.__slots__:
                    setattr(found, field, getattr(found, field) + getattr(part, field))
        return found

    def speed(self, variant: str, group: str = "") -> float:
        """Against no drafts: measured, or at GPU-like costs."""
        plain, drafted = self.of("none", group), self.of(variant, group)
        if variant.endswith("_gpu"):
            return stats.ratio(plain.cost / max(plain.tokens, 1), drafted.cost / max(drafted.tokens, 1))
        return stats.ratio(plain.ms / max(plain.tokens, 1), drafted.ms / max(drafted.tokens, 1))

    def figures(self) -> Figures:
        """See design.md §9."""
        found: Figures = {}
        groups = sorted({group for _, group in self.sums})
        for name in self.variants:
            total = self.of(name)
            found[f"acceptance_{name}"] = stats.ratio(total.accepted, total.drafted)
            found[f"tokens_per_step_{name}"] = stats.ratio(total.tokens, total.steps)
            found[f"speed_{name}"] = self.speed(name)
            found.update({f"speed_{name}_{group}": self.speed(name, group) for group in groups})
        if "model_gpu" in self.variants:
            found["acceptance_model"] = found["acceptance_model_gpu"]
        found["tokens_per_step"] = found["tokens_per_step_all"]
        found["speed_min"] = min((self.speed("all", group) for group in groups), default=float("nan"))
        found["unequal"], found["pairs"] = float(self.unequal), float(self.pairs)
        found["draft_step"] = self._engine.drafts.step
        return found

    def table(self) -> Table:
        """One row per variant."""
        rows = []
        for name in self.variants:
            total = self.of(name)
            shares = [stats.ratio(total.accepted, total.drafted), stats.ratio(total.tokens, total.steps)]
            rows.append([name, total.drafted, *shares, self.speed(name)])
        return table("drafts", ["sources", "drafted", "accepted", "tokens per step", "speed"], rows)


def measure(plan: Plan, progress: Progress) -> Outcome:
    """Blocks until all is measured."""
    draft = catalogue.resolve(plan.draft_model) if plan.draft_model else None
    with (
        draftrig.running(catalogue.resolve(plan.model), draft) as engine,
        tempfile.TemporaryDirectory(prefix="foretype-") as folder,
    ):
        groups = (plan.tasks is not None) + (plan.trace is not None)
        if not groups:
            raise BadRequest("there is nothing to ask", "Give --tasks FILE, --trace FILE or both")
        each = -(-plan.pairs // groups)
        every = list(questions(plan, engine, Path(folder), max(plan.limit, each)))
        made = Measurement(engine, plan)
        asked = [question for question in every if question.number < plan.limit]
        pairs = [question for question in every if question.number < each][: plan.pairs]
        total = len(asked) + len(pairs)
        for done, question in enumerate(asked):
            progress(done, total)
            made.ask(question)
        for done, question in enumerate(pairs, len(asked)):
            progress(done, total)
            made.compare(question)
        outcome = engine.outcome("draft", plan.seed)
        outcome.figures.update(made.figures())
        outcome.tables.append(made.table())
        outcome.notes += [engine.drafts.note] if engine.drafts.model is None else []
    return outcome


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Beside the event loop, so that it can be interrupted."""
    return await asyncio.to_thread(measure, plan, progress)
