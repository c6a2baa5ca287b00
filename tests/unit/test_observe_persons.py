"""Random persons at random texts: what they do with an answer is what the rows say they did."""

from __future__ import annotations

import random

import pytest
from support.taking import Person

WORDS = [
    "for",
    "row",
    "in",
    "rows:",
    "x",
    "=",
    "(",
    ")",
    "[1]",
    "\n",
    "\n    ",
    " ",
    "é",
    "漢字",
    "🙂",
    "\t",
    '"a"',
    ",",
]


def text(source: random.Random, most: int) -> str:
    return "".join(source.choice(WORDS) + source.choice((" ", "")) for _ in range(source.randint(1, most)))


def ends_word(answer: str, at: int) -> bool:
    return not (answer[at - 1].isalnum() and answer[at].isalnum())


def act(source: random.Random, answer: str, suffix: str) -> tuple[str, str, int]:
    """(what stands in the place afterwards, outcome, characters taken)."""
    whole = answer.rstrip()
    action = source.choice(("whole", "more", "part", "over", "nothing"))
    if action == "whole" or (action == "part" and len(whole) < 6):
        return whole, "whole", len(whole)
    if action == "more":
        return answer + "more", "whole", len(answer)
    if action == "part":
        at = source.randint(4, len(whole) - 1)
        line = answer[at - 1] == "\n" or answer[at] == "\n"
        kind = "line" if line else "word" if ends_word(answer, at) else "left"
        return answer[:at], kind, 0 if kind == "left" else at
    if action == "over":
        return "#", "over", 0
    return "", "left", 0


@pytest.mark.parametrize("manner", ["window", "whole", "document", "slid"])
async def test_what_they_do_is_what_is_counted(manner: str) -> None:
    source = random.Random(manner)
    for _ in range(400):
        before, after = "first = 1\n" + text(source, 60) + "\n", "\nlast = 2\n" + text(source, 60)
        answer = text(source, 12)
        if len(answer.strip()) < 2 or "#" in before + answer + after:
            continue
        person = Person(path="a.py", whole=manner in ("whole", "document"))
        person.shown("", answer, prefix=before, suffix=after)
        person.wait(1)
        new, outcome, taken = act(source, answer, after)
        if manner == "document":
            person.documents["a.py"] = before + new + after
            person.acceptance.changed("a.py")
        else:
            cut = min(len(before) // 2, max(0, len(before) - 400)) if manner == "slid" else 0
            person.ask("", prefix=before[cut:] + new, suffix=after)
        person.acceptance.close()
        assert person.outcomes == [(outcome, taken)], (before, answer, after, new)
