"""What is asked in advance has a thread less, and that changes no result."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.ticking import Ticking

from daemon.engine import costs
from daemon.engine.binding import Context, Ids, Model, Part
from daemon.engine.team import Team, fewer
from daemon.nouns import Generation, Limits

TEXT = "def total(items):\n    return sum(item.price for item in items)\n\n\n" * 16
"""Long enough for sums to be split among threads, where they are."""


@pytest.fixture
def made(model: Model) -> Iterator[Ticking]:
    made = Ticking(model, cells=4096, flash=True)
    made.context.set_threads(2)
    made.loop.team = Team(made.context, 2, 1)
    yield made
    made.close()


def ask(made: Ticking, text: Ids, tokens: int, **more: object) -> Generation:
    return made.ask(text, limits=Limits(lines="free", tokens=tokens), margins=True, **more)


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


def test_what_was_asked_in_advance_equals_a_fresh_evaluation(made: Ticking) -> None:
    text = np.frombuffer(made.tokenizer.encode(TEXT), np.int32)
    ahead = ask(made, text, 24, lane="warm")
    assert made.loop.team.sparing
    taken = np.append(text, np.frombuffer(ahead.tokens, np.int32))
    cached = ask(made, taken, 8)
    assert not made.loop.team.sparing
    assert cached.counters.evaluated <= 4
    fresh = ask(made, taken, 8, cache=False)
    assert (cached.text, cached.margins) == (fresh.text, fresh.margins)
    assert len(fresh.margins) == 8


def test_warm_ups_and_whoever_waits_have_all_threads(made: Ticking) -> None:
    text = np.frombuffer(made.tokenizer.encode(TEXT), np.int32)
    ask(made, text[:100], 1, lane="warm", warm=True)
    assert not made.loop.team.sparing
    ask(made, text[:-10], 4, lane="anchor")
    assert not made.loop.team.sparing


def test_one_less_only_where_all_compute() -> None:
    usable = costs.usable_threads()
    assert fewer(usable) == max(1, usable - 1)
    assert fewer(usable + 1) == usable + 1
    assert fewer(1) == 1
