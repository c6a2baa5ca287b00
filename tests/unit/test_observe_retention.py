"""How much of a text still stands: by an oracle for the alignment, by hand for what people do to texts."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from support.taking import ABOVE, BELOW, Person

from daemon.observe.fates import MARKS
from daemon.observe.retention import common, kept

LINE = "for row in rows:\n        total += row.price"
TOKENS = 11


def longest(one: str, other: str) -> int:
    for size in range(len(one), 0, -1):
        for chosen in combinations(one, size):
            rest = iter(other)
            if all(item in rest for item in chosen):
                return size
    return 0


def test_the_alignment_is_a_longest_common_subsequence() -> None:
    source = random.Random(7)
    for _ in range(300):
        one = "".join(source.choice("abc") for _ in range(source.randrange(9)))
        other = "".join(source.choice("abcd") for _ in range(source.randrange(12)))
        found = sorted(common(one, other))
        rest = iter(other)
        assert all(one[index] in rest for index in found), (one, other)
        assert len(found) == longest(one, other), (one, other)


@pytest.mark.parametrize(
    ("now", "share"),
    [
        (LINE, 1.0),
        (LINE.replace("\n        ", " "), 1.0),
        (LINE.replace("row", "item"), 8 / TOKENS),
        (LINE.split("\n", maxsplit=1)[0], 5 / TOKENS),
        ("", 0.0),
        ("return sum(rows)", 1 / TOKENS),
        (LINE.replace("\n", "\n" + "        check(row)\n" * 8), 1.0),
    ],
)
def test_what_stands_of_a_text(now: str, share: float) -> None:
    assert kept(ABOVE, LINE, BELOW, ABOVE + now + BELOW, len(ABOVE)) == pytest.approx(share)


def test_a_place_that_moved_and_one_that_is_gone() -> None:
    moved = "# a heading\n" * 50 + ABOVE + LINE + BELOW
    assert kept(ABOVE, LINE, BELOW, moved, len(ABOVE)) == 1.0
    assert kept(ABOVE, LINE, BELOW, moved, None) == 1.0
    assert kept(ABOVE, LINE, BELOW, LINE + BELOW, len(ABOVE)) == 1.0
    assert kept(ABOVE, LINE, BELOW, "# one\n" * 40, None) is None
    assert kept(ABOVE, LINE, BELOW, "# one\n" * 40, len(ABOVE)) == 0.0
    assert kept(ABOVE, "\n  ", BELOW, ABOVE + BELOW, len(ABOVE)) is None
    assert kept("", LINE, "", LINE, 0) == 1.0


def test_the_same_words_beside_the_place_are_not_the_text() -> None:
    above, below = "total = 0\n", "\ntotal = 0\n"
    assert kept(above, "total = 0", below, above + below, len(above)) == 0.0
    twice = "log(x)\n" * 3
    assert kept(twice, "log(x)\n", twice, twice + twice, len(twice)) == 0.0


async def test_looks_are_taken_when_they_are_due() -> None:
    person = Person(path="a.py", whole=True)
    name = person.shown("    ", LINE)
    person.wait(1)
    person.documents["a.py"] = ABOVE + "    " + LINE + BELOW
    person.acceptance.changed("a.py")

    async def after(seconds: float, now: str) -> list[float | None]:
        person.wait(seconds)
        person.documents["a.py"] = ABOVE + "    " + now + BELOW
        await person.acceptance.look()
        return [getattr(person.rows[name], field) for _, field in MARKS]

    assert await after(29, LINE) == [None, None, None]
    assert await after(1, LINE) == [1.0, None, None]
    assert await after(90, LINE.replace("row", "item")) == [1.0, pytest.approx(8 / TOKENS), None]
    assert await after(180, "") == [1.0, pytest.approx(8 / TOKENS), 0.0]
    person.wait(1000)
    await person.acceptance.look()
    assert (person.rows[name].outcome, person.rows[name].kept_30) == ("whole", 1.0)


async def test_without_a_document_the_client_s_last_text_tells() -> None:
    person = Person()
    name = person.shown("    ", LINE)
    person.wait(1)
    asked = person.ask("    " + LINE)
    person.answer(asked, "\n        more = 1")
    person.acceptance.asked(person.request("    " + LINE + "\n        more = 1"))  # asks ahead
    person.wait(30)
    await person.acceptance.look()
    assert person.rows[name].kept_30 == 1.0
    person.ask("    while row:")
    person.wait(90)
    await person.acceptance.look()
    assert person.rows[name].kept_120 == pytest.approx(2 / TOKENS)
    person.ask("", prefix="elsewhere = 1\n", suffix="")
    person.wait(180)
    await person.acceptance.look()
    assert person.rows[name].kept_300 is None


async def test_a_look_that_comes_far_too_late_is_left_out() -> None:
    person = Person()
    name = person.shown("    ", LINE)
    person.wait(1)
    person.ask("    " + LINE)
    person.wait(150)
    await person.acceptance.look()
    assert [getattr(person.rows[name], field) for _, field in MARKS] == [None, 1.0, None]


async def test_a_long_text_is_compared_beside_the_loop() -> None:
    person = Person()
    text = "".join(f"value_{n} = compute({n})\n" for n in range(400))
    name = person.shown("    ", text)
    person.wait(1)
    person.ask("    " + text)
    person.wait(30)
    await person.acceptance.look()
    assert person.rows[name].kept_30 == pytest.approx(1.0, abs=0.2), "of what is kept of the window"
