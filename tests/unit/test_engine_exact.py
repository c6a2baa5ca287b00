"""What is computed for a text does not depend on where in the cache it lies, nor on what else lies there."""

import numpy as np
import pytest

from daemon.engine.binding import Context, Model, Part
from daemon.engine.placing import kv_type
from daemon.settings import Engine

CALLS = [48] * 12 + [1, 1, 2, 70, 1]
"""Rows of decode calls: prompt slices, single rows behind 512 positions, and more rows than a tile has."""


def evaluated(context: Context, text: np.ndarray) -> list[np.ndarray]:
    """Logits behind every call; the sequence is empty again."""
    found, at = [], 0
    for rows in CALLS:
        assert context.decode(Part(text[at : at + rows], at, 0, 1))
        found.append(context.logits(1)[0].copy())
        at += rows
    context.cut(0, 0)
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_logits_are_the_same_in_any_cells(model: Model, threads: int) -> None:
    chosen = kv_type(Engine(), flash=True, gpu=False)
    context = Context(model, cells=2048, sequences=4, batch=96, threads=threads, kv_type=chosen, flash=True)
    text = np.random.default_rng(3).integers(0, model.n_vocab // 2, sum(CALLS) + 400).astype(np.int32)
    alone = evaluated(context, text)
    for others in (7, 31, 300):
        context.cut(1, 0)
        for at in range(0, others, 50):
            rows = text[at : min(at + 50, others)][::-1].copy()
            assert context.decode(Part(rows, at, 1, 0))
        assert all((a == b).all() for a, b in zip(alone, evaluated(context, text), strict=True)), others
    context.close()
