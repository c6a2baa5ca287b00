"""Drafts driven without an engine: a request whose text is known, step by step."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from daemon.engine.costs import RowCosts
from daemon.engine.drafts import Drafts
from daemon.engine.frames import Submit
from daemon.engine.judging import MOST
from daemon.engine.vocabulary import Pieces
from daemon.engine.worth import Costs
from daemon.machine import FimIds
from indexer.tokens import to_bytes

PIECES = Pieces([bytes([65 + n % 26]) * (1 + n // 26) if n < 90 else b"" for n in range(100)])
FIM = FimIds(pre=90, suf=91, mid=92)


def costs(*points: tuple[int, float]) -> Costs:
    return Costs(RowCosts(points, 16))


CHEAP = costs((1, 10.0), (16, 12.0))
DEAR = costs((1, 10.0), (2, 40.0), (16, 400.0))
LAPTOP = costs((1, 10.0), (2, 12.0), (5, 19.0), (8, 30.0))


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


class Driven(NamedTuple):
    """Steps, tokens drafted, and tokens accepted by source."""

    steps: int
    drafted: int
    accepted: Counter[str]


def drive(drafts: Drafts, prompt: list[int], truth: list[int], run: str = "r", **more: object) -> Driven:
    """Let a request generate `truth`."""
    job = Submit(id=run, tokens=to_bytes(prompt), **more)  # type: ignore[arg-type]
    generated: list[int] = []
    steps = drafted = 0
    accepted: Counter[str] = Counter()
    drafts.begin(job)
    while len(generated) < len(truth):
        room = min(MOST, len(truth) - len(generated) - 1)
        draft = drafts.propose(run, ids(*prompt), generated, room)
        assert len(draft.tokens) <= room
        agreed = 0
        while agreed < len(draft.tokens) and draft.tokens[agreed] == truth[len(generated) + agreed]:
            agreed += 1
        if len(draft.tokens):
            drafts.learn(draft, agreed)
            accepted[draft.source] += agreed
        generated = truth[: len(generated) + agreed + 1]
        steps, drafted = steps + 1, drafted + len(draft.tokens)
    drafts.end(run, generated)
    return Driven(steps, drafted, accepted)


KNOWN = list(range(40))
