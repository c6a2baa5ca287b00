"""The cells of a text are in the order of its tokens, whatever was dropped, forked, moved or brought back."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import ticking

from daemon.engine.binding import Context, Ids, Model, Part
from daemon.engine.tree import Resident, Tree

CELLS = 512


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Model:
    return ticking.load(tiny_model)


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    made = Context(model, cells=CELLS, sequences=6, batch=64, threads=2, kv_type="f16+bf16", flash=True)
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
