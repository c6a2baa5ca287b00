"""A random life of the engine, checked after every step: submit, fork, cancel, evict, page, draft.

`FORETYPE_STEPS=10000 pytest tests/unit/test_engine_walk.py` walks as far as one likes.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from support.ticking import PAGE, Scripted, Ticking, check

from daemon.engine.binding import Ids, Model
from daemon.engine.paging import Paging
from daemon.nouns import Generation, Limits, Sampling

STEPS = int(os.environ.get("FORETYPE_STEPS", "1500"))
NEAR = 1e-3
"""Choices closer than this may differ with the shape of a batch."""


@dataclass
class Asked:
    """What the plain model knows of a job."""

    tokens: Ids
    fields: dict[str, object]
    cancelled_after: int = -1
    """Decodes finished when it was cancelled."""


@dataclass
class Walk:
    """One engine under test, one that answers everything alone, and what was asked."""

    made: Ticking
    alone: Ticking
    random: random.Random
    script: Scripted
    paging: Paging
    open: dict[str, Asked] = field(default_factory=dict)
    answers: dict[tuple[bytes, str], Generation] = field(default_factory=dict)
    checked: int = 0

    def step(self) -> None:
        kind = self.random.random()
        if kind < 0.12 and len(self.open) < 14:
            self.submit(self.prompt())
        elif kind < 0.17 and self.open and len(self.open) < 14:
            self.submit(self.random.choice(list(self.open.values())).tokens)
        elif kind < 0.22 and self.open:
            self.cancel(self.random.choice(list(self.open)))
        elif kind < 0.23:
            self.made.context.abort()
        elif kind < 0.26:
            self.paging.stir()
            self.paging.ahead()
        else:
            self.made.tick()
        self.check()

    def cancel(self, job: str) -> None:
        self.made.loop.lanes.cancel(job, "cancelled")
        if self.open[job].cancelled_after < 0:
            self.open[job].cancelled_after = self.made.context.decodes

    def prompt(self) -> Ids:
        """Of five families; those of a family share beginnings."""
        family = self.random.randrange(5)
        whole = np.array([(i * (family + 3) * 7 + i * i) % 250 for i in range(400)], np.int32)
        tail = [self.random.randrange(250) for _ in range(self.random.randrange(4))]
        return np.append(whole[: self.random.choice([30, 60, 61, 150, 400])], np.array(tail, np.int32))

    def submit(self, tokens: Ids) -> None:
        chance = self.random
        fields: dict[str, object] = {
            "lane": chance.choice(["keystroke"] * 4 + ["alternative", "anchor", "warm", "long"]),
            "client": chance.choice("abc"),
            "limits": Limits(lines="free", tokens=chance.choice([1, 5, 20, 80])),
            "warm": chance.random() < 0.15,
        }
        if chance.random() < 0.3:
            fields["sampling"] = Sampling(temperature=1.0, seed=chance.randrange(3))
        if chance.random() < 0.06:
            fields["cache"] = False
        elif chance.random() < 0.06:
            fields["width"] = 4
        job = self.made.submit(tokens, **fields)
        self.open[job] = Asked(tokens, fields)
        if chance.random() < 0.5:  # the drafter knows the answer, as far as it goes
            known = np.frombuffer(self.answer(self.open[job]).tokens, np.int32).tolist()
            self.script.answers[job] = [t if chance.random() < 0.8 else (t + 1) % 250 for t in known]

    def answer(self, asked: Asked) -> Generation:
        """What it is when nothing else runs and nothing is kept."""
        fields = {k: v for k, v in asked.fields.items() if k in ("limits", "sampling", "warm")}
        key = asked.tokens.tobytes(), repr(fields)
        if key not in self.answers:
            self.answers[key] = self.alone.ask(asked.tokens, margins=True, cache=False, **fields)
        return self.answers[key]

    def check(self) -> None:
        made = self.made
        check(made.loop.tree, made.context)
        works = made.loop._desk.works
        busy = [r for r in made.loop.tree.residents if r.busy]
        assert {id(r) for r in busy} == {id(w.resident) for w in works if w.resident is not None}
        for work in works:
            if work.resident is not None:
                text = np.append(work.run.prompt, np.array(work.run.tokens, np.int32))
                n = min(work.resident.n, len(text))
                assert np.array_equal(work.resident.tokens[:n], text[:n])
        assert made.loop.lanes.load == (len(works), len(self.open) - len(works) - self.gone())
        for job in [job for job in self.open if job in made.done]:
            self.ended(self.open.pop(job), made.done.pop(job), made.text.pop(job, ""))

    def gone(self) -> int:
        return sum(1 for job in self.open if job in self.made.done)

    def ended(self, asked: Asked, answer: Generation, streamed: str) -> None:
        counters = answer.counters
        if asked.cancelled_after >= 0 and answer.stop == "cancelled":
            assert self.made.context.decodes <= asked.cancelled_after + 1
            assert answer.text.startswith(streamed)
            return
        assert counters.prompt == counters.reused + counters.evaluated == len(asked.tokens), answer
        assert counters.accepted <= counters.drafted
        assert streamed == answer.text
        wanted = self.answer(asked)
        if answer.tokens != wanted.tokens:
            pairs = zip(
                np.frombuffer(answer.tokens, np.int32), np.frombuffer(wanted.tokens, np.int32), strict=False
            )
            at = next(n for n, (one, other) in enumerate(pairs) if one != other)
            assert "sampling" in asked.fields or wanted.margins[at] < NEAR
        else:
            assert (answer.text, answer.stop) == (wanted.text, wanted.stop)
            self.checked += 1


@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_life(model: Model, tmp_path: Path, seed: int) -> None:
    script = Scripted()
    made = Ticking(model, cells=1024, sequences=13, slots=4, drafter=script)
    paging = made.page(tmp_path, host=3, disk=12)
    walk = Walk(made, Ticking(model, cells=1024), random.Random(seed), script, paging)
    for _ in range(STEPS // 2):
        walk.step()
    for job in walk.open:
        walk.cancel(job)
    made.tick(3)
    walk.check()
    assert walk.open == {}
    assert not script.running
    assert walk.checked > STEPS / 100
    levels = paging.report()
    assert min(levels.out_tokens, levels.host_tokens, levels.disk_tokens) > 0
    assert levels.damaged == 0
    assert levels.host_bytes <= 3 * PAGE
    assert levels.disk_bytes <= 12 * PAGE
    made.close()
    walk.alone.close()
