"""What is asked in advance has a thread less, and that changes no result."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from daemon.engine import costs, vocabulary
from daemon.engine.binding import Context, Model, Part
from daemon.engine.frames import Done, Lane, Message, Submit
from daemon.engine.loop import Loop
from daemon.engine.team import Team, fewer
from daemon.engine.vocabulary import Pieces
from daemon.nouns import Generation, Limits
from indexer.tokens import TiktokenTokenizer

TEXT = "def total(items):\n    return sum(item.price for item in items)\n\n\n" * 16
"""Long enough for sums to be split among threads, where they are."""


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    made = Context(model, cells=4096, sequences=6, batch=64, threads=2, kv_type="f16+bf16", flash=True)
    yield made
    made.close()


class Bench:
    """A loop whose ticks run here."""

    def __init__(self, context: Context, model: Model) -> None:
        exported, _ = vocabulary.export(model, "loop-test-vocabulary")
        self.text = TiktokenTokenizer(exported).encode(TEXT)
        self.loop = Loop(context, Pieces(exported.pieces), 4096, self._take)
        self.loop.team = Team(context, 2, 1)
        self.done: Generation | None = None

    def _take(self, message: Message) -> None:
        self.done = message.generation if isinstance(message, Done) else self.done

    def ask(
        self, ids: bytes, lane: Lane, tokens: int, *, cache: bool = True, warm: bool = False
    ) -> Generation:
        limits = Limits(lines="free", tokens=tokens)
        self.loop.lanes.submit(
            Submit(id="1", tokens=ids, limits=limits, lane=lane, cache=cache, warm=warm, margins=True)
        )
        self.done = None
        while self.done is None:
            self.loop.tick()
        return self.done


@pytest.mark.parametrize(("kv_type", "flash"), [("f16+bf16", True), ("f16", False)])
def test_threads_change_no_result(model: Model, kv_type: str, flash: bool) -> None:
    """In the ways in which attention is computed on a CPU; the heads of this model are too small for q8_0."""
    found = []
    for threads in (2, 1):
        context = Context(model, cells=1024, sequences=1, batch=64, threads=2, kv_type=kv_type, flash=flash)
        context.set_threads(threads)
        ids = np.arange(700, dtype=np.int32) % model.n_vocab
        for at, rows in [*((at, 60) for at in range(0, 600, 60)), (600, 1), (601, 1), (602, 3)]:
            context.decode(Part(ids[at : at + rows], at, 0, 1))
            found.append(context.logits(1).copy())
        context.close()
    half = len(found) // 2
    assert all(map(np.array_equal, found[:half], found[half:]))


def test_what_was_asked_in_advance_equals_a_fresh_evaluation(context: Context, model: Model) -> None:
    bench = Bench(context, model)
    ahead = bench.ask(bench.text, "warm", 24)
    assert bench.loop.team.sparing
    taken = bench.text + ahead.tokens
    cached = bench.ask(taken, "keystroke", 8)
    assert not bench.loop.team.sparing
    assert cached.counters.evaluated <= 4
    fresh = bench.ask(taken, "keystroke", 8, cache=False)
    assert (cached.text, cached.margins) == (fresh.text, fresh.margins)
    assert len(fresh.margins) == 8


def test_warm_ups_and_whoever_waits_have_all_threads(context: Context, model: Model) -> None:
    bench = Bench(context, model)
    bench.ask(bench.text[:400], "warm", 1, warm=True)
    assert not bench.loop.team.sparing
    bench.ask(bench.text[:-40], "anchor", 4)
    assert not bench.loop.team.sparing


def test_one_less_only_where_all_compute() -> None:
    usable = costs.usable_threads()
    assert fewer(usable) == max(1, usable - 1)
    assert fewer(usable + 1) == usable + 1
    assert fewer(1) == 1
