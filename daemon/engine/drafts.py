"""What the main model is asked to verify: the source that promises most speed, as far as it pays.

    begin → propose, learn, propose, learn, … → end

Every source is judged by what was really generated behind its proposals, verified or not: one that does not
pay costs nothing and is taken up again as soon as it would. Only the draft model must be tried to be judged:
while it does not pay, it is asked again when all that costs is a hundredth of the time since.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from daemon.engine import sources
from daemon.engine.binding import Ids
from daemon.engine.draftmodel import DraftModel
from daemon.engine.frames import DraftSource, Submit
from daemon.engine.sources import NGRAMS, OWN, Found, Owed, Text, from_index
from daemon.engine.step import Draft
from daemon.engine.vocabulary import Pieces
from daemon.engine.worth import NO_DRAFT, Acceptance, Costs, Plan
from daemon.errors import EngineFailed
from daemon.nouns import FimIds
from indexer.ngrams import NgramReader

MODEL = "model"
NAMES = (*sources.NAMES, MODEL)
MOST = 15
"""Tokens of a draft."""
_JUDGED = 8
"""Tokens of a proposal that are compared with what is generated."""
_EARLIER = 64
"""Answers remembered, each with the end of the text before it."""
_PROBE = 2
_PROBE_SHARE = 0.01
_ANSWER = 16.0
"""Tokens that an answer is assumed to have at first."""
_SMOOTH = 0.05
_CLASSES = ((2, 0.4), (4, 0.55), (8, 0.7), (sources.LONGEST, 0.8))
"""(longest match, acceptance assumed at first): longer matches are right more often."""
_MODEL_CLASS, _MODEL_ASSUMED = 0, 0.8
_READERS = 8
_ALL_ROWS = 1 << 30
NOTHING = Draft(np.zeros(0, np.int32), "")
_log = logging.getLogger(__name__)


class Key(NamedTuple):
    """What has an acceptance of its own. `match`: the class of the match's length, by its upper end."""

    source: str
    match: int
    sampled: bool


@dataclass(slots=True)
class Tally:
    """Tokens drafted and accepted, and steps that verified some, of one source."""

    drafted: int = 0
    accepted: int = 0
    steps: int = 0


class _Bet(NamedTuple):
    """A proposal that is compared with what is generated from `at` on."""

    at: int
    tokens: list[int]


@dataclass(slots=True)
class _Run:
    job: Submit
    owed: Owed
    text: Text | None = None
    bets: dict[Key, _Bet] = field(default_factory=dict)


class Drafts:
    """Implements Drafter (engine/step.py). Engine thread only; `report` may be called from any.

    `only` restricts the sources. `others`, set by the loop: rows that other requests have in the next decode.
    """

    def __init__(
        self,
        pieces: Pieces,
        fim: FimIds,
        costs: Costs,
        model: DraftModel | None = None,
        only: frozenset[str] = frozenset(NAMES),
    ) -> None:
        self._pieces = pieces.pieces
        self._control = pieces.control
        self._fim = fim
        self.costs = costs
        self.model = model
        self.only = only
        self.others = 0
        self._runs: dict[str, _Run] = {}
        self._earlier: deque[Ids] = deque(maxlen=_EARLIER)
        self._readers: dict[tuple[str, str], NgramReader] = {}
        self._acceptance: dict[Key, Acceptance] = {}
        self._unasked = 0
        self._answer = _ANSWER
        self.tally = {name: Tally() for name in NAMES}

    def begin(self, job: Submit) -> None:
        """A request starts."""
        self._runs[job.id] = _Run(job, Owed(self._pieces, job.must))

    def end(self, run_id: str, tokens: Sequence[int]) -> None:
        """A request is over; `tokens` is all that it generated."""
        run = self._runs.pop(run_id)
        if self.model is not None:
            self.model.end(run_id)
        if run.text is None or not tokens:
            return
        self._settle(run, tokens, final=True)
        self._answer += (len(tokens) - self._answer) * _SMOOTH
        answer = np.array(tokens, np.int32)
        if not any(known.tobytes().endswith(answer.tobytes()) for known in self._earlier):
            self._earlier.append(np.concatenate([run.text.before, answer]))

    def propose(self, run_id: str, prompt: Ids, generated: Sequence[int], room: int) -> Draft:
        """Up to `room` tokens to verify behind `prompt` and `generated`; none where that does not pay."""
        run = self._runs[run_id]
        text = run.text or self._text(run, prompt)
        text.extend(generated[text.generated :])
        self._settle(run, generated)
        if (room := min(room, MOST)) < 1:
            return NOTHING
        best, gain = NOTHING, 0.0
        for found in self._found(run, text, room, generated):
            key = Key(found.source, _class(found.length), run.job.sampling.temperature > 0)
            plan = self.costs.best(self.rate(key), len(found.tokens), others=self.others)
            run.bets.setdefault(key, _Bet(len(generated), found.tokens[:_JUDGED].tolist()))
            length = len(found.tokens) if run.job.width else plan.length
            if length and plan.gain > gain:
                best, gain = Draft(found.tokens[:length], found.source), plan.gain
        return self._asked(run, prompt, generated, room, gain) or best

    def learn(self, draft: Draft, accepted: int) -> None:
        """`accepted` tokens of a verified draft agreed."""
        tally = self.tally[draft.source]
        tally.drafted += len(draft.tokens)
        tally.accepted += accepted
        tally.steps += 1

    def rate(self, key: Key) -> float:
        """Acceptance of a kind of draft as measured so far, or as assumed."""
        known = self._acceptance.get(key)
        return known.rate if known else dict(_CLASSES).get(key.match, _MODEL_ASSUMED)

    def report(self) -> tuple[DraftSource, ...]:
        """Every source that could draft: what it did, and whether it pays here."""
        return tuple(self._source(name) for name in NAMES if name in self.only)

    def _source(self, name: str) -> DraftSource:
        keys = [key for key in list(self._acceptance) if key.source == name]
        step = self._step() if name == MODEL else 0.0
        rates = [self.rate(key) for key in keys]
        plans = [self.costs.best(rate, MOST, step) for rate in rates]
        best = max(plans, key=lambda plan: plan.gain, default=NO_DRAFT)
        tally = self.tally[name]
        return DraftSource(
            name=name,
            drafted=tally.drafted,
            accepted=tally.accepted,
            steps=tally.steps,
            acceptance=max(rates, default=0.0),
            length=best.length,
            why=self._why(name, best, bool(keys)),
        )

    def _why(self, name: str, best: Plan, tried: bool) -> str:
        if name == MODEL and self.model is None:
            return "there is no draft model"
        if best.length:
            return f"{best.gain:.2f} times as fast where it is surest"
        if name == MODEL and not self._possible():
            return "off: its own steps cost more here than it could ever save"
        return "off: verifying costs more here than it yields" if tried else "nothing to draft from so far"

    def _text(self, run: _Run, prompt: Ids) -> Text:
        context, suffix, logical = sources.parts(prompt, self._fim)
        gap = np.full(1, sources.GAP, np.int32)
        earlier = [part for answer in self._earlier for part in (answer, gap)]
        others = [
            ("earlier", np.concatenate(earlier) if earlier else prompt[:0]),
            ("context", context),
            ("suffix", suffix),
        ]
        wanted = [(name, ids) for name, ids in others if name in self.only]
        run.text = Text([*wanted, (OWN, logical)], self._control, within=OWN in self.only)
        return run.text

    def _found(self, run: _Run, text: Text, room: int, generated: Sequence[int]) -> list[Found]:
        owed = run.owed.after(generated)
        local = text.search(room, owed, run.owed)
        reader = self._reader(run.job)
        if reader is None or (local is not None and local.length >= sources.LONGEST):
            indexed = None
        else:
            indexed = from_index(reader, text, room, owed, run.owed)
        return [found for found in (local, indexed) if found is not None]

    def _reader(self, job: Submit) -> NgramReader | None:
        if not job.ngrams or NGRAMS not in self.only:
            return None
        place = (job.ngrams, job.ngrams_of)
        if place not in self._readers:
            while len(self._readers) >= _READERS:
                self._readers.pop(next(iter(self._readers))).close()
            self._readers[place] = NgramReader(Path(job.ngrams), vocabulary=job.ngrams_of)
        return self._readers[place]

    def _settle(self, run: _Run, generated: Sequence[int], final: bool = False) -> None:
        """Judge the proposals whose text is generated by now."""
        for key, (at, tokens) in list(run.bets.items()):
            written = generated[at : at + len(tokens)]
            agreed = 0
            for mine, real in zip(tokens, written, strict=False):
                if mine != real:
                    break
                agreed += 1
            if agreed < len(written) or agreed == len(tokens) or final:
                del run.bets[key]
                seen = min(agreed + 1, len(written))
                if seen:
                    self._acceptance.setdefault(key, Acceptance(self.rate(key))).see(agreed, seen)

    def _asked(
        self, run: _Run, prompt: Ids, generated: Sequence[int], room: int, gain: float
    ) -> Draft | None:
        """The draft model's proposal where it promises more speed than `gain`."""
        model = self.model
        if model is None or MODEL not in self.only:
            return None
        key = Key(MODEL, _MODEL_CLASS, run.job.sampling.temperature > 0)
        text = np.concatenate([prompt, np.array(generated, np.int32)])
        plan = self.costs.best(self.rate(key), room, self._step(), self.others)
        try:
            if (lag := model.lag(run.job.id, text)) < 0:
                return None
            length, rows = self._length(run, plan, gain, room, lag)
            tokens = model.propose(run.job.id, text, length, rows) if length else text[:0]
        except EngineFailed as error:
            _log.warning("the draft model is given up: %s", error)
            self.model = None
            return None
        if not len(tokens):
            return None
        run.bets[key] = _Bet(len(generated), tokens.tolist())
        return Draft(tokens, MODEL)

    def _length(self, run: _Run, plan: Plan, gain: float, room: int, lag: int) -> tuple[int, int]:
        """(tokens to ask the draft model for, rows it may evaluate before), where `lag` rows are behind."""
        model, one = self.model, self.costs.one_ms
        if model is None or run.job.width:
            return (0, 0) if gain else (room, _ALL_ROWS)
        rows = max(1, int(one / model.prompt_ms))
        saved = (1.0 - 1.0 / plan.gain) * self._answer * one
        if plan.length and plan.gain > gain and lag * model.prompt_ms <= saved:
            self._unasked = 0
            return plan.length, rows
        self._unasked += 1
        cost = lag * model.prompt_ms + _PROBE * model.step_ms + (self.costs.of(1 + _PROBE) - 1.0) * one
        if plan.length or not self._possible() or cost > _PROBE_SHARE * self._unasked * one:
            return 0, 0
        self._unasked = 0
        return min(_PROBE, room), max(rows, lag)

    def _step(self) -> float:
        """What a token of the draft model costs, in steps of the main model."""
        return self.model.step_ms / self.costs.one_ms if self.model and self.costs.one_ms else 0.0

    def _possible(self) -> bool:
        """Whether the draft model would pay if it were always right."""
        return self.costs.best(1.0, MOST, self._step()).length > 0


def _class(length: int) -> int:
    return next(upper for upper, _ in _CLASSES if length <= upper)
