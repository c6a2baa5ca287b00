"""What recall must not do: answer one question with another's text, and work for nobody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.typed import Typing
from support.waiting import until

from daemon.settings import Recall


@pytest.fixture
async def ahead(tmp_path: Path) -> AsyncIterator[Typing]:
    """Recall with prefetch."""
    found = Typing(tmp_path, recall=Recall())
    yield found
    found.engine.go_on()
    await found.pipeline.close()


async def resting(typing: Typing) -> None:
    await until(lambda: typing.pipeline.recall.prefetch.resting, 5)


async def test_a_rendered_prompt_is_evaluated_each_time_and_nothing_in_advance(ahead: Typing) -> None:
    fim = "<|fim_prefix|># 0\n{}<|fim_suffix|>\n<|fim_middle|>"
    for typed in ("total = ", "names = "):  # another prompt that shows the same document
        asked = ahead.ask("total = ", rendered=fim.format(typed), context="none")
        done = await ahead.pipeline.complete(asked)
        await resting(ahead)
        assert (done.recall, done.raw) == ("", ahead._rest(f"# 0\n{typed}"))
    assert len(ahead.engine.jobs) == 2
