"""What nobody waits for takes nothing away from what was answered."""

from __future__ import annotations

import numpy as np
import pytest
from support.ticking import Ticking, check

from daemon.engine.binding import Model
from daemon.engine.frames import Lane


@pytest.mark.parametrize(("lane", "kept"), [("warm", True), ("anchor", True), ("keystroke", False)])
def test_less_urgent_work_parts_from_an_answer_without_cutting_it(
    model: Model, lane: Lane, kept: bool
) -> None:
    ticking = Ticking(model)
    prompt = np.arange(40, 120, dtype=np.int32)
    first = ticking.ask(prompt)
    written = np.frombuffer(first.tokens, np.int32)
    other = np.concatenate([prompt, written[:3], [(int(written[3]) + 1) % 200]]).astype(np.int32)
    ticking.ask(other, lane=lane)
    decodes = len(ticking.batches)
    again = ticking.ask(prompt)
    assert again.text == first.text
    assert (len(ticking.batches) == decodes) == kept
    check(ticking.loop.tree, ticking.context)
    ticking.close()
