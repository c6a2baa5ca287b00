"""Drafts through the whole loop over a real context: they make answers cheaper and never other."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import tiny

from daemon.engine.binding import Context, Model
from daemon.engine.costs import RowCosts
from daemon.engine.device import Log
from daemon.engine.draftmodel import DraftModel
from daemon.engine.drafts import MODEL, Drafts
from daemon.engine.frames import Done, Message, Start, Submit
from daemon.engine.loop import Loop
from daemon.engine.startup import build
from daemon.engine.vocabulary import Pieces
from daemon.engine.worth import Costs
from daemon.errors import EngineFailed
from daemon.nouns import Generation, Limits, Sampling
from daemon.settings import Engine

PROMPTS = int(os.environ.get("FORETYPE_TEST_PROMPTS", "120"))
"""500 before a release: drafts have to be exact."""
TOKENS = 14


class Rig:
    """A main model that is also its own draft model, and a loop that ticks as long as an answer takes."""

    def __init__(self, model: Model) -> None:
        self.pieces = Pieces(model.pieces())
        self.fim = model.facts("tiny", "x").fim
        self.contexts = [
            Context(model, cells=1024, sequences=6, batch=64, threads=1, kv_type="f16", flash=False)
            for _ in range(2)
        ]
        self.model = DraftModel("tiny", self.contexts[1], self.pieces.control, sure=0.0)
        self.loop = Loop(self.contexts[0], self.pieces, 1024, self._take)
        self.done: dict[str, Generation] = {}
        self.number = 0

    def _take(self, message: Message) -> None:
        if isinstance(message, Done):
            self.done[message.id] = message.generation

    def drafts(self, only: frozenset[str]) -> Drafts:
        """All of them pay: next to rows of the main model nothing else takes time."""
        costs = Costs(RowCosts(((1, 1e6), (16, 1.1e6)), 16))
        return Drafts(self.pieces, self.fim, costs, model=self.model, only=only)

    def ask(self, prompt: list[int], **more: object) -> Generation:
        """Written anew: what was generated before is forgotten."""
        ids = np.array(prompt, np.int32)
        for resident in self.loop.tree.residents:
            resident.choices.clear()
            resident.behind = None
            if resident.match(ids) == len(ids):
                self.loop.tree.cut(resident, len(ids))
        self.number += 1
        fields = {"limits": Limits(lines="free", tokens=TOKENS), **more}
        job = Submit(id=str(self.number), tokens=ids.tobytes(), **fields)  # type: ignore[arg-type]
        self.loop.lanes.submit(job)
        while job.id not in self.done:
            self.loop.tick()
        return self.done.pop(job.id)

    def prompts(self, count: int, seed: int) -> Iterator[list[int]]:
        """Fill-in-the-middle prompts of a few words, so that text repeats itself."""
        rng = random.Random(seed)
        words = [i for i, piece in enumerate(self.pieces.pieces) if len(piece) > 2]
        for _ in range(count):
            some = rng.sample(words, 8)
            text = [rng.choice(some) for _ in range(rng.randrange(4, 60))]
            at = rng.randrange(1, len(text))
            yield [self.fim.pre, *text[:at], self.fim.suf, *text[at:], self.fim.mid, rng.choice(some)]

    def close(self) -> None:
        self.loop.lanes.close()
        for context in self.contexts:
            context.close()


@pytest.fixture(scope="module")
def rig(tiny_model: Path) -> Iterator[Rig]:
    log = Log()
    model = Model(tiny_model, 0, log)
    log.close()
    made = Rig(model)
    yield made
    made.close()


def test_a_model_that_drafts_for_itself_is_always_right(rig: Rig) -> None:
    rig.loop.drafter = rig.drafts(frozenset({MODEL}))
    for prompt in rig.prompts(40, seed=1):
        drafted = rig.ask(prompt)
        assert drafted.counters.accepted == drafted.counters.drafted
        plain = rig.ask(prompt, draft=False)
        assert (drafted.tokens, drafted.stop) == (plain.tokens, plain.stop)
        if plain.counters.generated == TOKENS:
            assert drafted.counters.drafted > 0
            assert drafted.counters.steps < plain.counters.steps


def test_drafts_change_no_answer_at_the_same_width(rig: Rig) -> None:
    rig.loop.drafter = rig.drafts(frozenset({"own", "suffix", "earlier"}))
    drafted_tokens = 0
    for prompt in rig.prompts(PROMPTS, seed=2):
        drafted = rig.ask(prompt, width=4)
        plain = rig.ask(prompt, width=4, draft=False)
        assert (drafted.tokens, drafted.text, drafted.stop) == (plain.tokens, plain.text, plain.stop)
        drafted_tokens += drafted.counters.drafted
    assert drafted_tokens > PROMPTS // 4


def test_a_stop_or_a_limit_inside_a_draft_cuts_exactly_there(rig: Rig) -> None:
    rng = random.Random(4)
    rig.loop.drafter = rig.drafts(frozenset({MODEL}))
    inside = 0
    for prompt in rig.prompts(PROMPTS, seed=3):
        whole = rig.ask(prompt, draft=False)
        if len(whole.text) < 4:
            continue
        at = rng.randrange(1, len(whole.text) - 1)
        stop = whole.text[at : at + rng.randrange(1, 4)]
        limits = Limits(lines="free", tokens=TOKENS, stop=(stop,))
        if rng.random() < 0.4:
            limits = Limits(lines="free", tokens=rng.randrange(1, TOKENS))
        plain, drafted = rig.ask(prompt, limits=limits, draft=False), rig.ask(prompt, limits=limits)
        assert (drafted.text, drafted.stop, drafted.stop_word) == (plain.text, plain.stop, plain.stop_word)
        assert drafted.tokens == plain.tokens
        if limits.stop:
            assert drafted.text == whole.text[: whole.text.index(stop)]
        inside += drafted.counters.drafted > 0
        assert drafted.counters.accepted == drafted.counters.drafted, "nothing is drafted behind the end"
    assert inside > PROMPTS // 2


def test_sampled_answers_are_the_same_with_drafts(rig: Rig) -> None:
    """A draft takes no random number: what is sampled is what would have been."""
    rig.loop.drafter = rig.drafts(frozenset({MODEL}))
    for n, prompt in enumerate(rig.prompts(40, seed=5)):
        sampling = Sampling(temperature=0.7, seed=n)
        drafted = rig.ask(prompt, sampling=sampling)
        assert drafted.tokens == rig.ask(prompt, sampling=sampling, draft=False).tokens


def test_half_typed_words_are_drafted_and_healed(rig: Rig) -> None:
    rig.loop.drafter = rig.drafts(frozenset({"own", "suffix", MODEL}))
    for prompt in rig.prompts(60, seed=6):
        must = rig.pieces.pieces[prompt[1]][:2]
        drafted = rig.ask(prompt, must=must)
        assert drafted.text == rig.ask(prompt, must=must, draft=False).text


def started(model: Path, settings: Engine, **draft: Any) -> tuple[Loop, list[Message]]:
    said: list[Message] = []
    start = Start(path=str(model), name="tiny", sha256="drafting", context=1024, settings=settings, **draft)
    loop, _ = build(start, said.append)
    return loop, said


def answer(loop: Loop, said: list[Message]) -> Generation:
    prompt = np.arange(40, dtype=np.int32)
    limits = Limits(lines="free", tokens=8)
    loop.lanes.submit(Submit(id="a", tokens=prompt.tobytes(), limits=limits))
    while not (done := [m.generation for m in said if isinstance(m, Done)]):
        loop.tick()
    return done[0]


def why_no_model(loop: Loop) -> str:
    return next(source.why for source in loop.report(0).sources if source.name == MODEL)


def test_a_draft_model_that_cannot_be_used_is_refused_and_the_main_one_serves(
    tiny_model: Path, tmp_path: Path
) -> None:
    other = tiny.write(tmp_path / "other.gguf", sentencepiece=True)
    loop, said = started(tiny_model, Engine(threads=1), draft=str(other), draft_name="other")
    assert why_no_model(loop).startswith("other cannot draft for tiny: token 0 is")
    assert answer(loop, said).counters.generated > 0
    loop, said = started(tiny_model, Engine(threads=1), draft=str(tmp_path / "gone.gguf"), draft_name="gone")
    assert "cannot be loaded" in why_no_model(loop)
    assert answer(loop, said).counters.generated > 0
    loop, _ = started(tiny_model, Engine(threads=1), draft_note="no model is called x")
    assert why_no_model(loop) == "no model is called x"


def test_the_main_model_can_draft_for_itself_at_start(tiny_model: Path) -> None:
    settings = Engine(threads=1, draft_sure=0)
    loop, said = started(tiny_model, settings, draft=str(tiny_model), draft_name="tiny")
    assert isinstance(loop.drafter, Drafts)
    assert loop.drafter.model is not None
    assert loop.drafter.model.name == "tiny"
    assert answer(loop, said).stop in ("limit", "eos")


def test_drafts_can_be_restricted_and_switched_off(tiny_model: Path) -> None:
    loop, said = started(tiny_model, Engine(threads=1, draft="off"), draft=str(tiny_model))
    assert (loop.drafter, loop.report(0).sources) == (None, ())
    assert answer(loop, said).counters.drafted == 0
    loop, _ = started(tiny_model, Engine(threads=1, draft="free"), draft=str(tiny_model))
    assert MODEL not in {source.name for source in loop.report(0).sources}


def test_the_draft_model_has_the_threads_that_were_measured(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[int, int] = {}
    real = Context.set_threads

    def seen(context: Context, threads: int) -> None:
        given[id(context)] = threads
        real(context, threads)

    monkeypatch.setattr(Context, "set_threads", seen)
    started(tiny_model, Engine(threads=1), draft=str(tiny_model), draft_name="tiny")
    assert list(given.values()) == [1, 1]


def test_a_model_whose_context_cannot_be_made_is_let_go(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Path] = []
    real = Model.close

    def seen(model: Model) -> None:
        closed.append(model.path)
        real(model)

    monkeypatch.setattr(Model, "close", seen)
    with pytest.raises(EngineFailed):
        started(tiny_model, Engine(threads=1, kv_type="q8_0", flash_attention="off"))
    assert closed == [tiny_model]
