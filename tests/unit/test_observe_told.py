"""What clients tell of answers in files with other line ends."""

from __future__ import annotations

import pytest
from support.taking import Person

from daemon.documents.positions import denormalise

TAKEN = "for row in rows:\n        total += row\n"
BLOCK = TAKEN + "    return total"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
async def test_what_a_client_counts_is_in_the_line_ends_that_it_was_sent(newline: str) -> None:
    person = Person()
    asked = person.ask("    ", newline=newline)
    person.answer(asked, denormalise(BLOCK, newline))
    person.acceptance.accepted(asked.id, "line", characters=len(denormalise(TAKEN, newline)))
    person.acceptance.close()
    assert person.outcomes == [("line", len(TAKEN))]
