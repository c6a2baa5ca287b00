"""`foretype bench typing --context`: a trace typed again with stable context on, counting what is evaluated.

The document stands in a folder of its own (or in --root) that is indexed; every request names its path and
holds the whole text, as an editor sends it. Where the person paused for a second, idle work may finish, as it
would have then. Asserted is that the head of the prompt stays byte for byte the same inside an epoch.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from daemon.bench import keystrokes, ours, rig, stats, traces, wire
from daemon.bench.keystrokes import Pair, Plan
from daemon.bench.outcome import Figures, Outcome
from daemon.errors import BadRequest, EngineFailed

PAUSE_S = 1.0
_SUFFIXES = {"rustcode": ".rs", "json-crdt-patch": ".ts"}
"""Extension of the documents that the known traces type; others are plain text."""
Progress = Callable[[int, int], None]


async def run(plan: Plan, root: Path | None, progress: Progress) -> Outcome:
    """Type `plan.limit` edits of the trace. Raises EngineFailed when a head changed inside an epoch."""
    if plan.trace is None:
        raise BadRequest("there is nothing to replay", "Give --trace FILE")
    trace = traces.load(plan.trace)
    start = keystrokes.middle(trace) if plan.start is None else plan.start
    with tempfile.TemporaryDirectory(prefix="foretype-") as folder:
        place = Path(folder) / "work"
        shutil.copytree(root, place, symlinks=True) if root else place.mkdir()
        states = traces.states(trace, start, plan.limit)
        first = next(states, None)
        if first is None:
            raise BadRequest(f"the trace has {len(trace.edits)} edits, none from {start} on")
        file = place / _named(plan.trace)
        file.write_text(first.text, encoding="utf-8")
        async with rig.running(plan.model, idle=True, root=place) as here:
            await here.indexed()
            await _tell(here, "open", file, first.text)
            await here.rested()
            pairs, number = [await _pair(here, file, first)], 1
            for state in states:
                if state.pause >= PAUSE_S:
                    await here.rested()
                pairs.append(await _pair(here, file, state))
                number += 1
                progress(number, plan.limit)
            outcome = here.outcome("typing", plan.seed)
    outcome.figures.update(keystrokes.figures_of(pairs))
    outcome.figures.update(stable_figures([pair.mine for pair in pairs]))
    outcome.tables.append(
        keystrokes.shown(f"{trace.name}, {len(pairs)} edits, with context", outcome.figures)
    )
    return outcome


def _named(trace: Path) -> str:
    """`x.py` for the trace x.py.json.gz."""
    name = trace.name.removesuffix(".gz").removesuffix(".json")
    return name if Path(name).suffix else name + _SUFFIXES.get(name, ".txt")


def stable_figures(answers: Sequence[ours.Answer]) -> Figures:
    """Of the head. Raises EngineFailed when it changed inside an epoch other than by growing."""
    heads: dict[tuple[int, int], str] = {}
    for answer in answers:
        if answer.epoch and heads.setdefault((answer.epoch, answer.stable), answer.head) != answer.head:
            raise EngineFailed(f"the head of epoch {answer.epoch} changed", "Please report it")
    inside = [answer for answer in answers if answer.stable]
    return {
        "with_context_share": stats.ratio(len(inside), len(answers)),
        "stable_tokens_p50": stats.percentile((answer.stable for answer in inside), 0.5),
        "epochs": float(len({answer.epoch for answer in inside})),
        "heads": float(len({answer.head for answer in inside})),
        "stable_reevaluated": float(sum(answer.reused < answer.ahead for answer in inside)),
    }


async def _pair(here: rig.Rig, file: Path, state: traces.State) -> Pair:
    body = ours.document_body(state.text, state.cursor, file, tokens=keystrokes.TOKENS)
    return Pair(state.typed, await ours.ask(here.endpoint, body))


async def _tell(here: rig.Rig, event: str, file: Path, text: str) -> None:
    body = {"event": event, "path": str(file), "text": text, "client": ours.CLIENT}
    await wire.fetch(here.endpoint, "POST", ours.DOCUMENTS, msgspec.json.encode(body))
