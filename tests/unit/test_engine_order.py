"""The cells of a text are in the order of its tokens, whatever was dropped, forked, moved or brought back."""

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import ticking

from daemon.engine.binding import Context, Ids, Model, Part
from daemon.engine.tree import Resident, Tree

CELLS = 512


class Watched(Context):
    """Notes the bytes of every state that is read."""

    read: list[int]

    def state_get(self, sequence: int, into: mmap.mmap) -> bool:
        self.read.append(len(into))
        return super().state_get(sequence, into)


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Model:
    return ticking.load(tiny_model)


@pytest.fixture
def context(model: Model) -> Iterator[Watched]:
    made = Watched(model, cells=CELLS, sequences=6, batch=64, threads=2, kv_type="f16+bf16", flash=True)
    made.read = []
    yield made
    made.close()


def text(number: int, length: int) -> Ids:
    return np.random.default_rng(number).integers(0, 250, length).astype(np.int32)


def evaluated(context: Context, tree: Tree, tokens: Ids) -> tuple[Resident, np.ndarray]:
    """In calls of 16 rows from the beginning on, whatever is known; the logits behind the last one."""
    resident = tree.acquire(tokens)
    tree.cut(resident, min(resident.n, (len(tokens) - 1) // 16 * 16) // 16 * 16)
    while resident.n < len(tokens):
        rows = tokens[resident.n : resident.n + 16]
        assert tree.make_room(len(rows))
        assert context.decode(Part(rows, resident.n, resident.sequence, 1))
        tree.extend(resident, rows, 16)
    return resident, context.logits(1)[0].copy()


def test_logits_are_those_of_an_empty_cache_after_any_history(context: Context) -> None:
    tree, chance = Tree(context), np.random.default_rng(11)
    alone = {}
    texts = [np.concatenate([text(n // 3, 60), text(100 + n, 90)]) for n in range(9)]
    for number, one in enumerate(texts):
        resident, alone[number] = evaluated(context, tree, one)
        tree.release(resident)
        for other in list(tree.residents):
            tree.drop(other)
    moved = 0
    for _ in range(150):
        number = int(chance.integers(len(texts)))
        before = tree._top
        resident, logits = evaluated(context, tree, texts[number])
        moved += tree._top < before
        assert (logits == alone[number]).all()
        tree.release(resident)
        ticking.check(tree, context)
        if chance.random() < 0.3:
            tree.cut(resident, int(chance.integers(1, resident.n)))
        if chance.random() < 0.2:
            tree.drop(resident)
        if chance.random() < 0.1:
            tree.settle()
    assert moved > 3


def test_what_several_hold_is_moved_once(context: Context) -> None:
    tree = Tree(context)
    first, _ = evaluated(context, tree, text(1, 160))
    others = [evaluated(context, tree, np.concatenate([text(1, 144), text(n, 32)]))[0] for n in (2, 3)]
    fill, _ = evaluated(context, tree, text(9, 200))
    tree.drop(fill)
    lengths = [(r, r.tokens[: r.n].copy()) for r in (first, *others)]
    assert tree.cells_used == 160 + 2 * 32
    assert tree.make_room(CELLS - tree.cells_used)
    assert tree.cells_used == 160 + 2 * 32
    ticking.check(tree, context)
    for resident, tokens in lengths:
        assert (resident.tokens[: resident.n] == tokens).all()
    assert not tree.make_room(CELLS - tree.cells_used + 1)


def test_a_long_text_moves_a_piece_at_a_time(context: Watched) -> None:
    tree = Tree(context)
    first, _ = evaluated(context, tree, text(1, 64))
    long, _ = evaluated(context, tree, text(2, 400))
    size = context.state_size(long.sequence)
    tree.drop(first)
    assert tree.make_room(CELLS - 400)
    assert len(context.read) == 2
    assert size * 0.6 < max(context.read) < size * 0.7
    assert size <= sum(context.read) < size * 1.01
    ticking.check(tree, context)


def test_what_stands_where_it_stays_is_not_moved(context: Watched) -> None:
    tree = Tree(context)
    first, _ = evaluated(context, tree, text(1, 96))
    second, _ = evaluated(context, tree, text(2, 200))
    fork, _ = evaluated(context, tree, np.concatenate([text(1, 80), text(3, 48)]))
    tree.drop(second)
    size = context.state_size(fork.sequence)
    assert tree.make_room(CELLS - 96 - 48)
    assert len(context.read) == 1
    assert context.read[0] < size / 2
    assert (fork.cells[:80] == first.cells[:80]).all()
    ticking.check(tree, context)
