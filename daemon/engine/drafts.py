"""What the main model is asked to verify: the source that promises most speed, as far as it pays.

    begin → propose, learn, propose, learn, … → end

Every source is judged by what was really generated behind its proposals, verified or not: one that does not
pay costs nothing and is taken up again as soon as it would. Only the draft model must be tried to be judged:
while it does not pay, it is asked again when all that costs is a hundredth of the time since.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from daemon.engine import sources
from daemon.engine.binding import Ids
from daemon.engine.draftmodel import DraftModel, NoRoom
from daemon.engine.frames import LANES, DraftSource, Submit
from daemon.engine.judging import MOST, UNMATCHED, Bet, Judge
from daemon.engine.sources import NGRAMS, OWN, Found, Owed, Text, from_index
from daemon.engine.step import Draft, Ends, endless, until
from daemon.engine.vocabulary import Pieces
from daemon.engine.worth import Costs, Plan
from daemon.errors import EngineFailed
from daemon.machine import FimIds
from indexer.ngrams import NgramReader

MODEL = "model"
FREE = sources.NAMES
NAMES = (*FREE, MODEL)
_JUDGED = 8
"""Tokens of a proposal that are compared with what is generated."""
_EARLIER = 64
"""Answers remembered, each with the end of the text before it."""
_PROBE = 2
_PROBE_SHARE = 0.01
_ANSWER = 16.0
"""Tokens that an answer is assumed to have at first."""
_SMOOTH = 0.05
_READERS = 8
_FAILURES = 16
"""In a row, after which the draft model is given up."""
_ALL_ROWS = 1 << 30
_log = logging.getLogger(__name__)
_D = TypeVar("_D", bound="Drafts")


@dataclass(slots=True)
class _Run:
    job: Submit
    owed: Owed
    ahead: Callable[[], Ends]
    text: Text | None = None
    bets: dict[str, Bet] = field(default_factory=dict)
    alone: bool = False
    """The draft model has no room for it."""

    @property
    def sampled(self) -> bool:
        return self.job.sampling.temperature > 0


class Drafts:
    """Implements Drafter (engine/step.py). Engine thread only; `report` may be called from any.

    `only` restricts the sources; `vocabulary` names that of the index's n-grams (the model's hash); `note`
    says why there is no draft model.
    """

    def __init__(
        self,
        pieces: Pieces,
        fim: FimIds,
        costs: Costs,
        *,
        model: DraftModel | None = None,
        only: frozenset[str] = frozenset(NAMES),
        vocabulary: str = "",
        note: str = "there is no draft model",
    ) -> None:
        self._pieces, self._fim, self._vocabulary = pieces, fim, vocabulary
        self.costs = costs
        self.model = model if MODEL in only else None
        self.only = only
        self.note = note
        self.judge = Judge(NAMES)
        self._runs: dict[str, _Run] = {}
        self._earlier: deque[Ids] = deque(maxlen=_EARLIER)
        self._readers: dict[str, NgramReader] = {}
        self._unasked = 0
        self._failures = 0
        self._answer = _ANSWER

    def begin(self, job: Submit, ahead: Callable[[], Ends] = endless) -> None:
        """A request starts."""
        self._runs[job.id] = _Run(job, Owed(self._pieces.pieces, job.must), ahead)

    def pause(self, run_id: str) -> None:
        """A request is set aside: others may take the cells of its draft model."""
        if self.model is not None:
            self.model.end(run_id)

    def end(self, run_id: str, tokens: Sequence[int]) -> None:
        """A request is over; `tokens` is all that it generated."""
        run = self._runs.pop(run_id)
        self.pause(run_id)
        if run.text is None or not tokens:
            return
        self.judge.settle(run.bets, run.sampled, tokens, final=True)
        self._answer += (len(tokens) - self._answer) * _SMOOTH
        answer = np.array(tokens, np.int32)
        if not any(known.tobytes().endswith(answer.tobytes()) for known in self._earlier):
            self._earlier.append(np.concatenate([run.text.before, answer]))

    def propose(self, run_id: str, prompt: Ids, generated: Sequence[int], room: int) -> Draft:
        """Up to `room` tokens to verify behind `prompt` and `generated`; none where that does not pay."""
        run = self._runs[run_id]
        text = run.text or self._text(run, prompt)
        text.extend(generated[text.generated :])
        self.judge.settle(run.bets, run.sampled, generated)
        if (room := min(room, MOST)) < 1:
            return Draft()
        best, gain, others = Draft(), 0.0, self._others(run)
        for found in self._found(run, text, room, generated):
            tokens, source, match = until(found.tokens, run.ahead()), found.source, found.length
            rates = self.judge.rates(source, match, run.sampled, len(tokens))
            plan = self.costs.best(rates, others=others)
            run.bets.setdefault(source, Bet(len(generated), match, tokens[:_JUDGED].tolist()))
            length = len(tokens) if run.job.width else plan.length
            if length and plan.gain > gain:
                best, gain = Draft(tokens[:length], source), plan.gain
        return self._asked(run, prompt, generated, room, gain) or best

    def learn(self, draft: Draft, accepted: int) -> None:
        """A draft was verified. What it was worth is learnt from the text: see `Judge.settle`."""
        self.judge.steps[draft.source] += 1

    def report(self) -> tuple[DraftSource, ...]:
        """Every source that could draft: what it did, and whether it pays here."""
        return tuple(self._source(name) for name in NAMES if name in self.only)

    def alike(self, kind: type[_D], only: frozenset[str], costs: Costs) -> _D:
        """Drafts of the same models that know nothing yet, for measurements."""
        return kind(
            self._pieces,
            self._fim,
            costs,
            model=self.model,
            only=only,
            vocabulary=self._vocabulary,
            note=self.note,
        )

    def _source(self, name: str) -> DraftSource:
        if name != MODEL:
            return self.judge.source(name, self.costs, 0.0, "")
        if self.model is None:
            return DraftSource(name=name, steps=self.judge.steps[name], ready=False, why=self.note)
        off = "" if self._right().length else "off: its own steps cost more here than it could ever save"
        return self.judge.source(name, self.costs, self.step, off)

    def _others(self, run: _Run) -> int:
        """Other answers in progress that have a row in every tick: less urgent ones have not."""
        lanes = LANES[: LANES.index(run.job.lane) + 1]
        runs = self._runs.values()
        return sum(one.text is not None and one.job.lane in lanes for one in runs if one is not run)

    def _text(self, run: _Run, prompt: Ids) -> Text:
        context, suffix, logical = sources.parts(prompt, self._fim)
        gap = np.full(1, sources.GAP, np.int32)
        earlier = [part for answer in self._earlier for part in (answer, gap)]
        others = [
            ("earlier", np.concatenate(earlier) if earlier else prompt[:0]),
            ("similar", np.frombuffer(run.job.guesses, "<i4").astype(np.int32, copy=False)),
            ("context", context),
            ("suffix", suffix),
        ]
        wanted = [(name, ids) for name, ids in others if name in self.only]
        run.text = Text([*wanted, (OWN, logical)], self._pieces.control, within=OWN in self.only)
        return run.text

    def _found(self, run: _Run, text: Text, room: int, generated: Sequence[int]) -> list[Found]:
        owed = run.owed.after(generated)
        found = [text.search(room, owed, run.owed)]
        reader = self._reader(run.job)
        if reader is not None and (found[0] is None or found[0].length < sources.LONGEST):
            found.append(from_index(reader, text, room, owed, run.owed))
        return [one for one in found if one is not None]

    def _reader(self, job: Submit) -> NgramReader | None:
        if not job.ngrams or NGRAMS not in self.only:
            return None
        if job.ngrams not in self._readers:
            while len(self._readers) >= _READERS:
                self._readers.pop(next(iter(self._readers))).close()
            self._readers[job.ngrams] = NgramReader(Path(job.ngrams), vocabulary=self._vocabulary)
        return self._readers[job.ngrams]

    def _asked(
        self, run: _Run, prompt: Ids, generated: Sequence[int], room: int, gain: float
    ) -> Draft | None:
        """The draft model's proposal where it promises more speed than `gain`."""
        if (model := self.model) is None or run.alone:
            return None
        rates = self.judge.rates(MODEL, UNMATCHED, run.sampled, room)
        plan = self.costs.best(rates, self.step, self._others(run))
        if not plan.length and not run.job.width and not self._right().length:
            return None
        text = np.concatenate([prompt, np.array(generated, np.int32)])
        try:
            lag = model.lag(run.job.id, text)
            most, rows = self._most(run, plan, gain, room, lag)
            tokens = model.propose(run.job.id, text, most, rows, run.ahead()) if most else text[:0]
            self._unasked = 0 if most and lag <= rows else self._unasked + 1
        except EngineFailed as error:
            self._refused(run, error)
            return None
        self._failures = 0
        if not len(tokens):
            return None
        run.bets[MODEL] = Bet(len(generated), UNMATCHED, tokens.tolist())
        return Draft(tokens, MODEL)

    def _refused(self, run: _Run, error: EngineFailed) -> None:
        """This request goes on without the draft model; after many failed decodes all do."""
        run.alone = True
        self.pause(run.job.id)
        if isinstance(error, NoRoom):
            return
        self._failures += 1
        if self._failures >= _FAILURES:
            _log.warning("the draft model is given up: %s", error)
            self.model, self.note = None, f"given up: {error}"

    def _most(self, run: _Run, plan: Plan, gain: float, room: int, lag: int) -> tuple[int, int]:
        """(tokens to ask the draft model for, rows it may evaluate before), where `lag` rows are behind.

        Where it pays, as many as would if it were always right: it knows better than an average how sure it
        is."""
        if (model := self.model) is None or run.job.width:
            return (0, 0) if gain else (room, _ALL_ROWS)
        one = self.costs.one_ms
        rows = max(1, int(one / model.prompt_ms))
        saved = (1.0 - 1.0 / plan.gain) * self._answer * one
        if plan.length and plan.gain > gain and lag * model.prompt_ms <= saved:
            return self._right(room, self._others(run)).length, rows
        cost = lag * model.prompt_ms + _PROBE * model.step_ms + (self.costs.of(1 + _PROBE) - 1.0) * one
        if plan.length or cost > _PROBE_SHARE * (self._unasked + 1) * one:
            return 0, 0
        return min(_PROBE, room), rows

    @property
    def step(self) -> float:
        """What a token of the draft model costs, in steps of the main model."""
        return self.model.step_ms / self.costs.one_ms if self.model else 0.0

    def _right(self, room: int = MOST, others: int = 0) -> Plan:
        """What the draft model would be worth if it were always right."""
        return self.costs.best([1.0] * room, self.step, others)
