"""`foretype bench typing --realtime`: a trace as fast as it was typed, each edit cancelling the last request.

Definitions, for each edit:
- answered: the whole answer arrived, and not for a failure, before the next edit happened;
- a pause: the next edit comes 300 ms later or more (pauses are cut to 4 s);
- shown: answered with something to show, not only white space;
- characters right: of an answered edit, the length of the longest beginning of the answer that agrees with
  what the person typed next at that cursor (traces.typed_after); 0 for an edit that was not answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from rich.table import Table

from daemon.bench import keystrokes, ours, peer, rig, stats, traces, wire
from daemon.bench.keystrokes import Plan
from daemon.bench.outcome import Figures, Outcome, Progress, table
from daemon.errors import BadRequest, ForetypeError
from daemon.settings import Complete

PAUSE_S = 0.3
LONGEST_S = 4.0
TOKENS = 32
"""Enough for a line; the limit of both sides."""
Send = Callable[[wire.Endpoint, bytes], Awaitable[ours.Answer]]


@dataclass(frozen=True, slots=True)
class Beat:
    """One edit on the clock. `at` in seconds from the start, pauses cut; `gap` until the next edit."""

    at: float
    gap: float
    follows: str
    """What the person typed there next."""
    mine: bytes
    """The request to us, ready to send."""
    its: bytes
    """The same to the peer."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What one edit got before the next one. `after` in ms, None when it got nothing in time."""

    gap: float
    after: float | None = None
    text: str = ""
    right: int = 0


def beats(trace: traces.Trace, start: int, limit: int) -> list[Beat]:
    """The schedule, with every request made beforehand so that nothing is computed while it plays."""
    found, at = [], 0.0
    for key in traces.replay(trace, start, limit):
        later = trace.edits[key.index + 1].time if key.index + 1 < len(trace.edits) else key.time + LONGEST_S
        gap = min(max(later - key.time, 0.0), LONGEST_S)
        mine = ours.ask_body(key.prefix, key.suffix, tokens=TOKENS, lines="line", stream=False)
        its = ours.peer_body(key.lines, key.head, key.suffix, tokens=TOKENS, stop=("\n",), stream=False)
        found.append(Beat(at, gap, traces.typed_after(trace.edits, key.index), mine, its))
        at += gap
    return found


async def play(
    plan: Sequence[Beat], bodies: Sequence[bytes], endpoint: wire.Endpoint, send: Send, progress: Progress
) -> tuple[list[Heard], int]:
    """Send each request at its time and close the one before. Returns what was heard, and failures."""
    loop = asyncio.get_running_loop()
    begin = loop.time() + 0.05
    heard: list[Heard] = []
    failures = 0
    for number, (beat, body) in enumerate(zip(plan, bodies, strict=True)):
        await asyncio.sleep(begin + beat.at - loop.time())
        task = asyncio.ensure_future(send(endpoint, body))
        await asyncio.wait({task}, timeout=max(begin + beat.at + beat.gap - loop.time(), 0.0))
        if task.done():
            if isinstance(task.exception(), ForetypeError):
                failures += 1
                heard.append(Heard(beat.gap))
            else:
                heard.append(_heard(beat, task.result()))
        else:
            task.cancel()
            await asyncio.wait({task})
            heard.append(Heard(beat.gap))
        progress(number + 1, len(plan))
    return heard, failures


def _heard(beat: Beat, answer: ours.Answer) -> Heard:
    if not answer.whole:
        return Heard(beat.gap)
    right = stats.common_prefix(answer.text, beat.follows)
    return Heard(beat.gap, after=answer.last, text=answer.text, right=right)


def figures_of(heard: Sequence[Heard], suffix: str = "") -> Figures:
    """The figures of one side, by the definitions above."""
    pauses = [entry for entry in heard if entry.gap >= PAUSE_S]
    answered = [entry for entry in heard if entry.after is not None]
    shown = [entry for entry in answered if entry.text.strip()]
    in_pauses = sum(entry.after is not None for entry in pauses)
    figures = {
        "answered_before_next": stats.ratio(len(answered), len(heard)),
        "pauses_answered": stats.ratio(in_pauses, len(pauses)),
        "chars_right_per_edit": stats.ratio(sum(entry.right for entry in heard), len(heard)),
        "shown_before_next": stats.ratio(len(shown), len(heard)),
        "chars_right_per_shown": stats.ratio(sum(entry.right for entry in shown), len(shown)),
        "answer_ms_p50": stats.percentile((entry.after or 0.0 for entry in answered), 0.5),
        "answer_ms_p90": stats.percentile((entry.after or 0.0 for entry in answered), 0.9),
    }
    return {f"{name}{suffix}": value for name, value in figures.items()}


ROWS = (
    ("edits answered before the next", "answered_before_next"),
    ("… with something to show", "shown_before_next"),
    ("pauses ≥ 300 ms answered", "pauses_answered"),
    ("characters right per edit", "chars_right_per_edit"),
    ("characters right per shown answer", "chars_right_per_shown"),
    ("time of an answer p50, ms", "answer_ms_p50"),
    ("time of an answer p90, ms", "answer_ms_p90"),
    ("requests that failed", "failed"),
)


def shown(title: str, figures: Figures) -> Table:
    """Ours beside the peer's."""
    peered = "answered_before_next_peer" in figures
    rows = [[words, figures[key], *([figures[f"{key}_peer"]] if peered else [])] for words, key in ROWS]
    return table(title, ["", "foretype", *(["peer"] if peered else [])], rows)


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Play the trace against us, then the same edits against the peer."""
    if plan.trace is None:
        raise BadRequest("--realtime needs the times of a trace", "Give --trace FILE")
    trace = traces.load(plan.trace)
    start = keystrokes.middle(trace) if plan.start is None else plan.start
    score = beats(trace, start, plan.limit)
    if len(score) < 2:
        raise BadRequest(f"the trace has {len(trace.edits)} edits, too few from {start} on")
    paced = {"debounce_ms": Complete().debounce_ms}
    async with rig.running(plan.model, idle=True, complete=paced) as here:
        outcome = here.outcome("typing", plan.seed)
        shape = here.shape
        await ours.ask(here.endpoint, score[0].mine)
        heard, failed = await play(score, [b.mine for b in score], here.endpoint, ours.ask_whole, progress)
    outcome.figures.update(figures_of(heard), failed=float(failed), edits=float(len(score)))
    if plan.peer is not None:
        async with peer.running(plan.peer, shape) as there:
            outcome.notes.append(f"peer: {there.built}")
            await ours.ask_peer(there.endpoint, score[0].its)
            bodies = [beat.its for beat in score]
            heard, failed = await play(score, bodies, there.endpoint, ours.ask_peer_whole, progress)
        outcome.figures.update(figures_of(heard, "_peer"), failed_peer=float(failed))
    _explain(outcome, trace, score, start)
    return outcome


def _explain(outcome: Outcome, trace: traces.Trace, score: Sequence[Beat], start: int) -> None:
    figures = outcome.figures
    figures["pauses"] = float(sum(beat.gap >= PAUSE_S for beat in score))
    if "answered_before_next_peer" in figures:
        for name in ("answered_before_next", "pauses_answered", "chars_right_per_edit"):
            figures[f"{name}_ratio"] = stats.ratio(figures[name], figures[f"{name}_peer"])
    seconds = score[-1].at + score[-1].gap
    title = f"{trace.name} in real time, {len(score)} edits from {start}, {seconds:.0f} s"
    outcome.tables.append(shown(title, figures))
    outcome.notes.append(
        f"one-line answers of at most {TOKENS} tokens on both sides (the peer stops at a line end), pauses"
        f" cut to {LONGEST_S:.0f} s; each side was warmed with the first edit's request and then played alone"
    )
    if all(edit.time == int(edit.time) for edit in trace.edits[start : start + len(score)]):
        outcome.notes.append("this trace has times of 1 s resolution: bursts are played as if simultaneous")
