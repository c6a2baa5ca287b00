"""Which rows add up: their segments, what the engine counted, and what it reused and evaluated of that."""

from __future__ import annotations

import msgspec
import pytest
from support.ledger import entry

from daemon.nouns import Counters, Segment, StopReason
from daemon.observe.audit import composition
from daemon.observe.entries import Entry


def row(*tokens: int, prompt: int, work: tuple[int, int], stop: StopReason = "line") -> Entry:
    """`tokens` of its segments; `work`: tokens reused and evaluated."""
    segments = tuple(Segment(kind="prefix", source="", tokens=n, tier="P0") for n in tokens)
    counters = Counters(prompt=prompt, reused=work[0], evaluated=work[1])
    made = entry(1, content=False)
    return msgspec.structs.replace(made, stop=stop, segments=segments, counters=counters)


@pytest.mark.parametrize(
    ("made", "right"),
    [
        (row(3, 4, prompt=7, work=(5, 2)), True),
        (row(3, 3, prompt=7, work=(5, 2)), False),
        (row(3, 4, prompt=7, work=(5, 1)), False),
        (row(3, 4, prompt=7, work=(5, 1), stop="superseded"), True),
        (row(3, 4, prompt=7, work=(5, 3), stop="superseded"), False),
    ],
)
def test_a_row_adds_up_or_is_named(made: Entry, right: bool) -> None:
    sums = composition([made])
    assert (sums["audited"], sums["wrong"]) == (1, [] if right else [made.id])


def test_a_row_whose_work_is_counted_elsewhere_is_not_audited() -> None:
    sums = composition([row(3, 4, prompt=0, work=(0, 0))])
    assert (sums["requests"], sums["audited"], sums["wrong"]) == (1, 0, [])
