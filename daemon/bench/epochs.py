"""`foretype bench typing --context`: a trace typed again with stable context on, counting what is evaluated.

The document stands in a folder of its own (or in --root) that is indexed; every request names its path and
holds the whole text, as an editor sends it. It is opened and read before the first edit. Edits follow each
other as fast as they are answered; where the recording has a pause, idle work gets that pause and no more,
and is abandoned by the next edit as it would have been then. A pause is cut when there is nothing left to do,
and at LONGEST_S. Asserted is that the head of the prompt only grows at its end inside an epoch.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from rich.table import Table

from daemon.bench import keystrokes, ours, rig, stats, traces, wire
from daemon.bench.keystrokes import Pair, Plan
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.doors.ledger import MOST
from daemon.errors import BadRequest, EngineFailed
from daemon.settings import Ledger

LONGEST_S = 10.0
"""As long as idle work may take for the stable context of a file, and the anchor behind it."""
_SUFFIXES = {"rustcode": ".rs", "json-crdt-patch": ".ts"}
"""Extension of the documents that the known traces type; others are plain text."""
Shown = tuple[tuple[str, int], ...]


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
        rows = {"rows": max(Ledger().rows, plan.limit)}
        async with rig.running(plan.model, idle=True, root=place, ledger=rows) as here:
            await here.indexed()
            await _tell(here, "open", file, first.text)
            await here.rested()
            outcome = here.outcome("typing", plan.seed)
            every = itertools.chain((first,), states)
            pairs, spent = await _typed(here, file, every, lambda done: progress(done, plan.limit))
            audit = await _audited(here, len(pairs))
    outcome.figures.update(keystrokes.figures_of(pairs), **spent, **audit)
    outcome.figures.update(stable_figures([pair.mine for pair in pairs]))
    title = f"{trace.name}, {len(pairs)} edits from {start}, with context"
    outcome.tables += [keystrokes.shown(title, outcome.figures), _shown(outcome.figures)]
    outcome.notes.append(
        f"pauses of the recording are idle time, cut to {LONGEST_S:.0f} s and where all is done"
    )
    return outcome


async def _typed(
    here: rig.Rig, file: Path, states: Iterable[traces.State], progress: Callable[[int], None]
) -> tuple[list[Pair], Figures]:
    """What was answered to it all, and what idle work and the whole took."""
    before = await here.status()
    began = sent = time.monotonic()
    pairs: list[Pair] = []
    paused = 0.0
    for state in states:
        if pairs and state.pause:
            paused -= time.monotonic()
            await here.rested(sent + min(state.pause, LONGEST_S))
            paused += time.monotonic()
        sent = time.monotonic()
        pairs.append(await _pair(here, file, state))
        progress(len(pairs))
    after = await here.status()
    evaluated = after["engine"]["evaluated"] - before["engine"]["evaluated"]
    figures = {
        "opening_ms": before["idle_ms"],
        "idle_ms": after["idle_ms"] - before["idle_ms"],
        "idle_evaluated": float(evaluated - sum(pair.mine.evaluated for pair in pairs)),
        "paused_s": paused,
        "seconds": time.monotonic() - began,
    }
    return pairs, figures


def _named(trace: Path) -> str:
    """`x.py` for the trace x.py.json.gz."""
    name = trace.name.removesuffix(".gz").removesuffix(".json")
    return name if Path(name).suffix else name + _SUFFIXES.get(name, ".txt")


def stable_figures(answers: Sequence[ours.Answer]) -> Figures:
    """Of the head. Raises EngineFailed when it changed inside an epoch other than by growing at its end."""
    heads: dict[tuple[int, Shown], str] = {}
    last: dict[int, Shown] = {}
    inside = [answer for answer in answers if answer.stable]
    for answer in inside:
        before = last.get(answer.epoch, ())
        head = heads.setdefault((answer.epoch, answer.shown), answer.head)
        if head != answer.head or answer.shown[: len(before)] != before:
            raise EngineFailed(f"the head of epoch {answer.epoch} changed", "Please report it")
        last[answer.epoch] = answer.shown
    return {
        "with_context_share": stats.ratio(len(inside), len(answers)),
        "stable_tokens_p50": stats.percentile((answer.stable for answer in inside), 0.5),
        "epochs": float(len(last)),
        "edits_per_epoch": stats.ratio(len(inside), len(last)),
        "heads": float(len({answer.head for answer in inside})),
        "stable_reevaluated": float(sum(0 < a.prompt < a.ahead + a.evaluated for a in inside)),
    }


ROWS = (
    ("edits with stable context, share", "with_context_share"),
    ("tokens of stable context, median", "stable_tokens_p50"),
    ("epochs", "epochs"),
    ("edits per epoch", "edits_per_epoch"),
    ("heads: epochs, and each time one grew", "heads"),
    ("edits that evaluated stable context again", "stable_reevaluated"),
    ("idle work while typing, ms of the engine", "idle_ms"),
    ("… tokens evaluated", "idle_evaluated"),
    ("idle work at the opening, ms of the engine", "opening_ms"),
    ("requests audited", "audited"),
    ("… whose segments do not add up to what was evaluated", "audit_wrong"),
    ("seconds of pauses waited", "paused_s"),
    ("seconds in all", "seconds"),
)


def _shown(figures: Figures) -> Table:
    return table("stable context", ["", "figure"], [[words, figures[key]] for words, key in ROWS])


async def _audited(here: rig.Rig, requests: int) -> Figures:
    """What `foretype audit --last N` says of them."""
    body = await wire.fetch(here.endpoint, "GET", f"{ours.LEDGER}?last={min(requests, MOST)}")
    return {name: float(body[name]) for name in ("audited", "audit_wrong")}


async def _pair(here: rig.Rig, file: Path, state: traces.State) -> Pair:
    body = ours.document_body(state.text, state.cursor, file, tokens=keystrokes.TOKENS)
    return Pair(state.typed, await ours.ask(here.endpoint, body))


async def _tell(here: rig.Rig, event: str, file: Path, text: str) -> None:
    body = {"event": event, "path": str(file), "text": text, "client": ours.CLIENT}
    await wire.fetch(here.endpoint, "POST", ours.DOCUMENTS, msgspec.json.encode(body))
