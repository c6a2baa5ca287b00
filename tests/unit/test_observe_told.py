"""Answers in files with other line ends, many for one question, and clocks that are set."""

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


async def test_who_asks_for_more_answers_again_and_again_is_not_followed_in_all() -> None:
    person = Person()
    for _ in range(50):
        person.shown("    ", BLOCK)
        newest = [person.request("    ", alternative=True) for _ in range(7)]
        for number, one in enumerate(newest):
            person.answer(one, f"each({number})")
        person.wait(1)
    (offer,) = person.acceptance._open.values()
    assert len(offer.others) <= 16
    person.ask("    each(6)")
    assert person.outcomes == [("whole", len("each(6)"))]


async def test_a_clock_that_is_set_back_makes_no_answer_wait_for_ever() -> None:
    person = Person()
    person.shown("    ", BLOCK)
    person.wait(-3600)
    person.ask("    " + BLOCK)
    (row,) = person.rows.values()
    assert (row.outcome, row.after_ms) == ("whole", 0.0)
