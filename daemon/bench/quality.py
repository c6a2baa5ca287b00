"""`foretype bench quality`: single-line infilling tasks, answered with several prompts by the same model.

Measured is the first line of the answer that is not blank, without trailing white space, against that of the
canonical solution: exact match, and edit similarity (1 − Levenshtein distance ÷ length of the longer line).
The cursor stands at the start of the masked line, so the answer must bring its indentation.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from daemon import instance, loading
from daemon.bench import ours, peer, rig, stats
from daemon.bench.journal import Journal, Row
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.errors import BadRequest

TOKENS = 64
PEER = "peer"
VARIANTS: dict[str, dict[str, Any]] = {
    "anchored_0": {"anchor_lines": 0},
    "anchored_3": {"anchor_lines": 3},
    "anchored_12": {"anchor_lines": 12},
    "anchored": {},
    "cursor_split": {"anchor_lines": -1, "heal": False},
}
"""What each asks of the native door besides the text; `anchored` leaves the planner to its settings."""


@dataclass(frozen=True, slots=True)
class Task:
    """One masked line."""

    name: str
    prompt: str
    suffix: str
    solution: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    tasks: Path
    limit: int
    seed: int
    model: str | None
    peer: str | None
    variants: tuple[str, ...]
    fresh: bool


def load(path: Path) -> list[Task]:
    """Read a .jsonl or .jsonl.gz of tasks. Raises BadRequest naming the file."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8")
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        return [Task(r["task_id"], r["prompt"], r["suffix"], r["canonical_solution"]) for r in rows]
    except FileNotFoundError as error:
        why = f"there are no tasks at {path}"
        raise BadRequest(why, "Give --tasks a file of human-eval-infilling") from error
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise BadRequest(f"{path} is not a file of infilling tasks: {error!r}") from error


def sample(tasks: Sequence[Task], limit: int, seed: int) -> list[Task]:
    """`limit` tasks drawn with `seed`, in the order of the file; all when there are no more."""
    if limit >= len(tasks):
        return list(tasks)
    chosen = random.Random(seed).sample(range(len(tasks)), limit)
    return [tasks[place] for place in sorted(chosen)]


def judge(task: Task, answers: Sequence[ours.Answer]) -> Row:
    """The result of one task. Several answers: the first was blank and more was asked for."""
    wanted = stats.first_line(task.solution)
    got, raw = stats.first_line(answers[-1].text), stats.first_line(answers[-1].raw)
    return {
        "exact": got == wanted,
        "exact_raw": raw == wanted,
        "similarity": stats.similarity(got, wanted),
        "tokens": sum(answer.evaluated for answer in answers),
        "ms": sum(answer.last for answer in answers),
    }


async def ask(task: Task, variant: str, here: rig.Rig, there: peer.Peer | None) -> Row:
    """One line; where it is blank, again without an end at the line end. Nothing is reused."""
    answers = []
    for one_line in (True, False):
        if variant == PEER:
            assert there is not None
            stop = ("\n",) if one_line else ()
            body = ours.peer_body(
                task.prompt, "", task.suffix, tokens=TOKENS, stop=stop, stream=False, cache=False
            )
            answers.append(await ours.ask_peer_whole(there.endpoint, body))
        else:
            body = ours.ask_body(
                task.prompt, task.suffix, tokens=TOKENS, lines="line" if one_line else "free", stream=False,
                cache=False, **VARIANTS[variant],
            )  # fmt: skip
            answers.append(await ours.ask_whole(here.endpoint, body))
        if not answers[-1].blank:
            break
    return judge(task, answers)


def figures_of(variant: str, rows: Sequence[Row]) -> Figures:
    """The figures of one variant."""
    hits = sum(bool(row["exact"]) for row in rows)
    low, high = stats.wilson(hits, len(rows))
    return {
        f"em_{variant}": stats.ratio(hits, len(rows)),
        f"em_low_{variant}": low,
        f"em_high_{variant}": high,
        f"em_raw_{variant}": stats.mean([float(row["exact_raw"]) for row in rows]),
        f"es_{variant}": stats.mean([row["similarity"] for row in rows]),
        f"tokens_{variant}": stats.mean([row["tokens"] for row in rows]),
        f"ms_{variant}": stats.mean([row["ms"] for row in rows]),
    }


def shown(variants: Sequence[str], figures: Figures, title: str) -> Table:
    """One row per variant."""
    columns = ["prompt", "exact (95 %)", "unpolished", "similarity", "evaluated", "ms"]
    rows = []
    for name in variants:
        exact, low, high = (figures[f"{key}_{name}"] for key in ("em", "em_low", "em_high"))
        shares = [f"{figures[f'{key}_{name}']:.3f}" for key in ("em_raw", "es")]
        costs = [figures[f"{key}_{name}"] for key in ("tokens", "ms")]
        rows.append([name, f"{exact:.3f} ({low:.2f}–{high:.2f})", *shares, *costs])
    return table(title, columns, rows)


def _key(plan: Plan, variant: str, here: rig.Rig, there: peer.Peer | None) -> dict[str, object]:
    profile = here.profile
    maker = there.built if variant == PEER and there else instance.build_id()
    return {
        "model": profile["model"]["sha256"] or profile["model"]["path"],
        "tasks": hashlib.sha256(plan.tasks.read_bytes()).hexdigest(),
        "variant": variant,
        "asked": {"tokens": TOKENS, **VARIANTS.get(variant, {})},
        "settings": repr(loading.load().context),
        "machine": [profile["backend"], profile["device"], profile["context"]],
        "build": maker,
    }


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Answer the tasks with each variant, going on where an earlier run of the same build stopped."""
    everything = load(plan.tasks)
    tasks = sample(everything, plan.limit, plan.seed)
    names = [*plan.variants, *([PEER] if plan.peer else [])]
    done, resumed = 0, 0
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(rig.running(plan.model))
        there = await stack.enter_async_context(peer.running(plan.peer, here.shape)) if plan.peer else None
        outcome = here.outcome("quality", plan.seed)
        outcome.figures["n"] = float(len(tasks))
        for name in names:
            journal = Journal("quality", _key(plan, name, here, there), plan.fresh)
            resumed += sum(task.name in journal.rows for task in tasks)
            rows = []
            for task in tasks:
                known = journal.rows.get(task.name)
                rows.append(known or journal.add(task.name, await ask(task, name, here, there)))
                done += 1
                progress(done, len(tasks) * len(names))
            outcome.figures.update(figures_of(name, rows))
    title = f"{len(tasks)} of {len(everything)} tasks of {plan.tasks.name}, greedy, first non-blank line"
    outcome.tables.append(shown(names, outcome.figures, title))
    outcome.figures["resumed"] = float(resumed)
    if there is not None:
        outcome.notes.append(f"peer: {there.built}")
    if resumed:
        outcome.notes.append(
            f"{resumed} results are of an earlier run of the same build; --fresh makes them anew"
        )
    return outcome
