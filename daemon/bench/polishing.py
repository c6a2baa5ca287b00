"""`foretype bench polish`: real generations at seeded places of real files.

Every answer is put in where it belongs and judged by faults.py, and so is the model's raw text there: the
difference is what polish does. Every other request comes from a client that can only insert, and every fifth
has room for a few tokens only, so that texts end in the middle. Examples name positions, no text.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daemon import roots
from daemon.bench import cursors, ours, quality, rig, survey, wire
from daemon.bench.cursors import Cursor
from daemon.bench.faults import faults
from daemon.bench.outcome import Outcome, Progress, table
from daemon.errors import BadRequest

LIMIT = 500
TOKENS, SHORT = 64, 12
FAULTS = ("duplicated", "unbalanced", "restyled", "opened")
_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure: `tasks`, a file of infilling tasks, or `root`, a folder of source files."""

    tasks: Path | None
    root: Path | None
    limit: int
    seed: int
    model: str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """One answer: what accepting it, and accepting the raw text, would do."""

    cursor: Cursor
    stop: str
    blank: bool
    trimmed: bool
    faults: frozenset[str]
    raw_faults: frozenset[str]


def places(plan: Plan) -> list[Cursor]:
    """The cursors. Raises BadRequest when there are none."""
    if plan.tasks is not None:
        rows = quality.sample(quality.load(plan.tasks), plan.limit, plan.seed)
        return cursors.of_tasks((t.name, t.prompt, t.suffix, t.solution) for t in rows)
    if plan.root is None:
        raise BadRequest("there is nothing to complete", "Give --tasks or --root")
    with tempfile.TemporaryDirectory(prefix="foretype-", ignore_cleanup_errors=True) as name:
        copy = survey.copy(plan.root, roots.normal(Path(name)) / "root")
    found = cursors.draw(copy.texts, plan.limit, plan.seed)
    if not found:
        raise BadRequest(f"nothing in {plan.root} can be completed", "Give --root a folder of source files")
    return found


def body(cursor: Cursor, number: int) -> bytes:
    """The request at a place."""
    before, after = cursor.document[: cursor.offset], cursor.document[cursor.offset :]
    return ours.ask_body(
        before, after, tokens=TOKENS if number % 5 else SHORT, lines="auto", stream=False,
        language=cursor.language.name, replaces=number % 2 == 0, context="none", recall=False,
    )  # fmt: skip


def judged(cursor: Cursor, event: dict[str, Any]) -> Shown:
    """From the native door's answer."""
    text, replace = str(event.get("text", "")), event.get("replace", {})
    replaced = replace.get("end", 0) - replace.get("start", 0)
    return Shown(
        cursor=cursor,
        stop=str(event.get("stop", "")),
        blank=not text.strip(),
        trimmed=bool(event.get("trims")),
        faults=faults(cursor.accepted(text, replaced)),
        raw_faults=faults(cursor.accepted(str(event.get("raw", "")))),
    )


async def run(plan: Plan, progress: Progress) -> Outcome:
    """All places, one after the other."""
    asked = places(plan)
    found = []
    async with rig.running(plan.model) as here:
        outcome = here.outcome("polish", plan.seed)
        for number, cursor in enumerate(asked):
            event = await wire.fetch(here.endpoint, "POST", ours.COMPLETE, body(cursor, number))
            found.append(judged(cursor, event))
            progress(number + 1, len(asked))
    conclude(outcome, found)
    return outcome


def conclude(outcome: Outcome, found: list[Shown]) -> None:
    """Figures, a table by language and kind, and where the faults are."""
    outcome.figures = {
        "n": float(len(found)),
        **{fault: float(sum(fault in one.faults for one in found)) for fault in FAULTS},
        **{f"raw_{fault}": float(sum(fault in one.raw_faults for one in found)) for fault in FAULTS},
        "blank": float(sum(one.blank for one in found)),
        "trimmed": float(sum(one.trimmed for one in found)),
        "languages": float(len({one.cursor.language.name for one in found})),
    }
    outcome.tables.append(
        table("accepting answers", ["", "n", "blank", *FAULTS, *(f"raw {f}" for f in FAULTS)], _rows(found))
    )
    examples = [f"{fault}: {one.cursor.name}" for fault in FAULTS[:3] for one in found if fault in one.faults]
    outcome.notes += examples[:_EXAMPLES]


def _rows(found: list[Shown]) -> Iterator[list[object]]:
    groups = Counter(one.cursor.language.name for one in found) + Counter(one.cursor.kind for one in found)
    for name in [*groups, "all"]:
        chosen = [one for one in found if name in (one.cursor.language.name, one.cursor.kind, "all")]
        counts = [sum(fault in one.faults for one in chosen) for fault in FAULTS]
        raws = [sum(fault in one.raw_faults for one in chosen) for fault in FAULTS]
        yield [name, len(chosen), sum(one.blank for one in chosen), *counts, *raws]
