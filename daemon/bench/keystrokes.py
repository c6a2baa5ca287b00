"""`foretype bench typing`: an editing trace typed again, request by request, beside a peer in one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from daemon.bench import ours, peer, rig, sessions, stats, traces
from daemon.bench.outcome import Figures, Outcome, Progress, show, table
from daemon.errors import BadRequest

TOKENS = 12
SHORT_PROMPT = 64
"""Below this many tokens, more than half of a prompt is no re-evaluation worth a count."""
PERCENTS = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Question:
    """One keystroke's window. `typed`: the document before differs only by typing at the cursor."""

    lines: str
    head: str
    suffix: str
    typed: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """What both sides answered to one keystroke."""

    typed: bool
    mine: ours.Answer
    its: ours.Answer | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    trace: Path | None
    session: Path | None
    start: int | None
    limit: int
    seed: int
    model: str | None
    peer: str | None


def from_trace(trace: traces.Trace, start: int, limit: int) -> list[Question]:
    """The keystrokes of a trace; the first has nothing to continue."""
    found = traces.replay(trace, start, limit)
    return [Question(k.lines, k.head, k.suffix, k.typed and n > 0) for n, k in enumerate(found)]


def from_session(session: Sequence[sessions.Recorded]) -> list[Question]:
    """The keystrokes of a recording; one that leaves the suffix and all but the end of the prefix counts as
    typing."""
    found: list[Question] = []
    before: sessions.Recorded | None = None
    for entry in sessions.keystrokes(list(session)):
        typed = before is not None and before.suffix == entry.suffix and _grew(before.prefix, entry.prefix)
        found.append(Question(entry.lines, entry.head, entry.suffix, typed))
        before = entry
    return found


def _grew(before: str, now: str) -> bool:
    return now.startswith(before) or before.startswith(now)


def middle(trace: traces.Trace) -> int:
    """Where a replay starts when nobody says: there the document has its usual size."""
    return len(trace.edits) // 2


async def replay(
    questions: Sequence[Question], here: rig.Rig, there: peer.Peer | None, progress: Progress
) -> list[Pair]:
    """Ask both sides about every keystroke; who is asked first changes with every second one."""
    pairs: list[Pair] = []
    for number, question in enumerate(questions):
        body = ours.ask_body(question.lines + question.head, question.suffix, tokens=TOKENS)
        if there is None:
            pairs.append(Pair(question.typed, await ours.ask(here.endpoint, body)))
        else:
            other = ours.peer_body(question.lines, question.head, question.suffix, tokens=TOKENS)
            if number % 2 == 0:
                mine, its = await ours.ask(here.endpoint, body), await ours.ask_peer(there.endpoint, other)
            else:
                its, mine = await ours.ask_peer(there.endpoint, other), await ours.ask(here.endpoint, body)
            pairs.append(Pair(question.typed, mine, its))
        progress(number + 1, len(questions))
    return pairs


def reevaluations(pairs: Iterable[Pair]) -> list[int]:
    """Numbers of the keystrokes that only typed and yet evaluated more than half of their prompt."""
    return [
        number
        for number, pair in enumerate(pairs)
        if pair.typed and pair.mine.prompt >= SHORT_PROMPT and pair.mine.evaluated * 2 > pair.mine.prompt
    ]


def _side(answers: Sequence[ours.Answer], suffix: str) -> Figures:
    figures: Figures = {}
    full = [a for a in answers if a.full]
    for share in PERCENTS:
        name = f"p{round(share * 100)}{suffix}"
        figures[f"prompt_{name}"] = stats.percentile((a.prompt for a in answers), share)
        figures[f"evaluated_{name}"] = stats.percentile((a.evaluated for a in answers), share)
        figures[f"generated_{name}"] = stats.percentile((a.generated for a in answers), share)
        figures[f"ttft_ms_{name}"] = stats.percentile((a.first for a in answers), share)
        figures[f"last_ms_{name}"] = stats.percentile((a.last for a in answers), share)
        figures[f"t12_ms_{name}"] = stats.percentile((a.last for a in full), share)
    prompt = sum(a.prompt for a in answers)
    figures[f"reused_share{suffix}"] = stats.ratio(sum(a.reused for a in answers), prompt)
    figures[f"reused_p50{suffix}"] = stats.percentile((a.reused for a in answers), 0.5)
    figures[f"full_answers_share{suffix}"] = stats.ratio(len(full), len(answers))
    figures[f"blank_share{suffix}"] = stats.ratio(sum(a.blank for a in answers), len(answers))
    return figures


def figures_of(pairs: Sequence[Pair]) -> Figures:
    """All figures of one replay.

    The time of the 12th token is compared over the keystrokes where both sides generated all 12, so that
    nobody gains by ending early; `last_ratio_*` compares the whole answers as they are.
    """
    figures = {"keystrokes": float(len(pairs)), **_side([p.mine for p in pairs], "")}
    figures["full_reevaluations"] = float(len(reevaluations(pairs)))
    figures["failed"] = float(sum(not p.mine.whole for p in pairs))
    both = [(p.mine, p.its) for p in pairs if p.its is not None]
    if not both:
        return figures
    figures.update(_side([theirs for _, theirs in both], "_peer"))
    full = [(a, b) for a, b in both if a.full and b.full]
    figures["t12_pairs"] = float(len(full))
    for share in PERCENTS:
        name = f"p{round(share * 100)}"
        figures[f"ttft_ratio_{name}"] = _ratio([(a.first, b.first) for a, b in both], share)
        figures[f"last_ratio_{name}"] = _ratio([(a.last, b.last) for a, b in both], share)
        figures[f"t12_ratio_{name}"] = _ratio([(a.last, b.last) for a, b in full], share)
    return figures


def _ratio(times: Sequence[tuple[float, float]], share: float) -> float:
    mine, theirs = ([pair[side] for pair in times] for side in (0, 1))
    return stats.ratio(stats.percentile(theirs, share), stats.percentile(mine, share))


ROWS = (
    ("prompt tokens", "prompt"),
    ("of them evaluated", "evaluated"),
    ("generated, healed ones included", "generated"),
    ("first token, ms", "ttft_ms"),
    ("last token, ms", "last_ms"),
    ("12th token, ms", "t12_ms"),
)
RATIOS = {"ttft_ms": "ttft_ratio", "last_ms": "last_ratio", "t12_ms": "t12_ratio"}


def shown(title: str, figures: Figures) -> Table:
    """The table of one replay: ours, the peer's, and peer ÷ ours; each at p50 / p90 / p99."""
    peered = "ttft_ratio_p50" in figures

    def cell(key: str, suffix: str = "") -> str:
        return " / ".join(show(figures[f"{key}_p{round(share * 100)}{suffix}"]) for share in PERCENTS)

    rows = []
    for words, key in ROWS:
        others = [cell(key, "_peer"), cell(RATIOS[key]) if key in RATIOS else ""] if peered else []
        rows.append([words, cell(key), *others])
    shares = [figures["reused_share"], *([figures["reused_share_peer"]] if peered else [])]
    rows.append(["reused share of prompts", *map(show, shares)])
    return table(title, ["p50 / p90 / p99", "foretype", *(["peer", "ratio"] if peered else [])], rows)


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Replay a trace, and a recorded session beside it. Raises ForetypeError when either side fails."""
    trace = traces.load(plan.trace) if plan.trace else None
    recorded = from_session(sessions.load(plan.session)) if plan.session else []
    if trace is None and not recorded:
        raise BadRequest("there is nothing to replay", "Give --trace FILE, --session FILE or both")
    start = middle(trace) if trace and plan.start is None else plan.start or 0
    questions = from_trace(trace, start, plan.limit) if trace else []
    if trace and not questions:
        raise BadRequest(f"the trace has {len(trace.edits)} edits, none from {start} on")
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(rig.running(plan.model))
        there = await stack.enter_async_context(peer.running(plan.peer, here.shape)) if plan.peer else None
        outcome = here.outcome("typing", plan.seed)
        if trace:
            pairs = await replay(questions, here, there, progress)
            outcome.figures.update(figures_of(pairs))
            outcome.tables.append(shown(f"{trace.name}, {len(pairs)} edits from {start}", outcome.figures))
            outcome.notes += _faults(pairs, start)
        if recorded:
            figures = figures_of(await replay(recorded, here, there, progress))
            title = f"recorded client session, {len(recorded)} keystrokes, no bar"
            outcome.tables.append(shown(title, figures))
            outcome.figures.update({f"session_{name}": value for name, value in figures.items()})
    outcome.notes += [f"peer: {there.built}"] if there else []
    return outcome


def _faults(pairs: Sequence[Pair], start: int) -> list[str]:
    return [
        f"edit {start + number} only typed, yet {pairs[number].mine.evaluated} of {pairs[number].mine.prompt}"
        f" prompt tokens were evaluated: {pairs[number].mine.reason or 'no reason given'}"
        for number in reevaluations(pairs)[:20]
    ]
