"""What became of answers, told from nothing but the texts that follow, or by the client."""

from __future__ import annotations

import pytest
from support.taking import ABOVE, BELOW, Person

LINE = "for row in rows:"
BLOCK = "for row in rows:\n        total += row\n    return total"


async def test_a_row_says_what_kind_of_answer_it_was_and_quotes_nothing() -> None:
    person = Person()
    name = person.shown("    ", LINE)
    person.wait(2)
    person.ask("    " + LINE)
    (row,) = person.rows.values()
    assert (row.id, row.door, row.language, row.window, row.tiers) == (
        name,
        "infill",
        "python",
        "simple",
        "P0 P3",
    )
    assert (row.outcome, row.characters, row.lines, row.taken) == ("whole", len(LINE), 1, len(LINE))
    assert (row.after_ms, row.told) == (2000.0, False)
    assert not any(LINE[:5] in str(value) for value in (row, person.rows))


@pytest.mark.parametrize(
    ("text", "typed", "outcome", "taken"),
    [
        (LINE, LINE, "whole", len(LINE)),
        (LINE, LINE + "\n    x", "whole", len(LINE)),
        (LINE + "\n", LINE, "whole", len(LINE)),
        (BLOCK, LINE, "line", len(LINE)),
        (BLOCK, LINE + "\n", "line", len(LINE) + 1),
        (LINE, "for", "left", 0),
        (LINE, "for ", "word", 4),
        (LINE, "for row", "word", 7),
        (LINE, "fo", "left", 0),
        (LINE, "f", "left", 0),
        (LINE, "while", "over", 0),
        (LINE, "for x", "over", 0),
        (")", ")", "typed", 0),
    ],
)
async def test_what_one_step_says(text: str, typed: str, outcome: str, taken: int) -> None:
    person = Person()
    person.shown("    ", text)
    person.wait(1)
    person.ask("    " + typed)
    person.acceptance.close()
    assert person.outcomes == [(outcome, taken)]


async def test_who_types_letter_by_letter_has_typed_it() -> None:
    person = Person()
    person.shown("    ", LINE)
    for at in range(1, len(LINE) + 1):
        person.wait(0.2)
        asked = person.ask("    " + LINE[:at])
        person.answer(asked, LINE[at:])
    assert person.outcomes == [("typed", 0)]


async def test_typing_on_and_taking_the_rest_is_one_answer() -> None:
    person = Person()
    first = person.shown("    ", LINE)
    for at in (1, 2, 3):
        person.wait(0.3)
        person.shown("    " + LINE[:at], LINE[at:])
    person.wait(1)
    person.ask("    " + LINE)
    assert list(person.rows) == [first]
    assert person.outcomes == [("whole", len(LINE))]


async def test_word_by_word_to_the_end() -> None:
    person = Person()
    person.shown("    ", LINE)
    for part in ("for ", "for row", "for row in", LINE):
        person.wait(1)
        person.ask("    " + part)
    assert person.outcomes == [("whole", len(LINE))]


async def test_a_word_taken_and_then_something_else() -> None:
    person = Person()
    person.shown("    ", LINE)
    person.wait(1)
    person.ask("    for row")
    person.wait(1)
    person.ask("    for rows")
    assert person.outcomes == [("word", 7)]


async def test_another_answer_in_its_place_leaves_it() -> None:
    person = Person()
    person.shown("    ", LINE)
    person.wait(1)
    person.shown("    f", "irst = rows[0]")
    person.wait(1)
    person.ask("    first = rows[0]")
    assert person.outcomes == [("left", 0), ("whole", 14)]


async def test_going_elsewhere() -> None:
    person = Person()
    person.shown("    ", LINE)
    person.ask("", prefix=ABOVE[:20], suffix=ABOVE[20:] + BELOW)
    person.shown("    ", LINE)
    person.ask("", prefix=ABOVE + "    " + BELOW[:-4], suffix=BELOW[-4:])
    person.shown("    ", LINE)
    person.ask("", prefix=ABOVE[:20], suffix=ABOVE[20:] + "    " + LINE + BELOW)
    assert person.outcomes == [("left", 0), ("left", 0), ("whole", len(LINE))]


async def test_a_window_that_slid() -> None:
    person = Person()
    long = "".join(f"line_{n} = {n}\n" for n in range(60))
    person.shown("", LINE, prefix=long + "    ")
    person.wait(1)
    person.ask("", prefix=long[100:] + "    " + LINE)
    assert person.outcomes == [("whole", len(LINE))]


async def test_asking_ahead_takes_nothing() -> None:
    """As llama.vim does: it asks at once for what would follow, and shows that later from its cache."""
    person = Person()
    person.shown("    ", "total")
    person.wait(0.05)
    ahead = person.ask("    total")
    person.answer(ahead, " += row")
    person.wait(1)
    person.ask("    x")
    assert person.outcomes == [("over", 0)]
    person.shown("    ", "total")
    person.answer(person.ask("    total"), " += row")
    person.wait(1)
    person.ask("    total += row")
    assert person.outcomes[1:] == [("whole", 5)], "what follows is shown now, and asked ahead of"
    person.wait(1)
    person.ask("    total += row\n    return")
    assert person.outcomes[2:] == [("whole", 7)]


async def test_the_better_of_several_answers() -> None:
    person = Person()
    main = person.ask("    ")
    other = person.ask("    ", alternative=True)
    person.answer(main, "pass")
    person.answer(other, LINE)
    person.wait(1)
    person.ask("    " + LINE)
    assert person.outcomes == [("whole", len(LINE))]


async def test_replaced_text_and_crlf() -> None:
    person = Person(client="editor", path="a.py", whole=True)
    asked = person.ask("    print(", suffix=")" + BELOW)
    person.answer(asked, "total,\r\n          rows)", replaced=1)
    person.documents["a.py"] = ABOVE + "    print(total,\n          rows)" + BELOW
    person.wait(1)
    person.acceptance.changed("a.py")
    assert person.outcomes == [("whole", 22)]


@pytest.mark.parametrize(
    ("now", "outcomes"),
    [
        (ABOVE + "    " + LINE + BELOW, [("whole", len(LINE))]),
        (ABOVE + "    for row" + BELOW, []),
        (ABOVE + "    while" + BELOW, [("over", 0)]),
        (ABOVE + "    " + BELOW, []),
        ("# above\n" + ABOVE + "    " + BELOW, []),
        (ABOVE + "    " + BELOW + "# below\n", []),
        (ABOVE + "    f()" + BELOW, [("over", 0)]),
        (ABOVE + "    f)" + BELOW, []),
        (ABOVE + BELOW, []),
    ],
)
async def test_a_changed_document_tells_too(now: str, outcomes: list[tuple[str, int]]) -> None:
    person = Person(path="a.py", whole=True)
    person.shown("    ", LINE)
    person.documents["a.py"] = now
    person.wait(1)
    person.acceptance.changed("b.py")
    person.acceptance.changed("a.py")
    assert person.outcomes == outcomes


async def test_what_the_client_tells_goes_before_what_texts_say() -> None:
    person = Person()
    one = person.shown("    ", LINE)
    assert person.acceptance.shown(one)
    assert person.acceptance.dismissed(one)
    two = person.shown("    ", LINE)
    person.wait(1)
    person.ask("    " + LINE)
    assert person.outcomes == [("dismissed", 0), ("typed", 0)]
    assert person.acceptance.accepted(two, "accepted", elapsed_ms=700)
    assert person.outcomes == [("dismissed", 0), ("whole", len(LINE))]
    assert (person.rows[two].told, person.rows[two].after_ms) == (True, 700.0)
    assert not person.acceptance.accepted("cmpl-x", "accepted")
    assert not person.acceptance.shown("")


async def test_who_tells_only_what_is_shown_is_judged_by_the_texts() -> None:
    person = Person()
    person.acceptance.shown(person.shown("    ", LINE))
    person.wait(0.5)
    person.ask("    " + LINE)
    person.acceptance.shown(person.shown("    ", LINE))
    person.wait(0.5)
    person.ask("    x")
    assert person.outcomes == [("whole", len(LINE)), ("over", 0)]
    assert all(row.told for row in person.rows.values())


@pytest.mark.parametrize(
    ("path", "named", "known", "language"),
    [
        ("a.py", None, "", "python"),
        (None, "golang", "", "go"),
        (None, "x" * 99, "", "x" * 40),
        ("a.py", None, "go", "go"),
    ],
)
async def test_the_language(path: str | None, named: str | None, known: str, language: str) -> None:
    person = Person()
    person.answer(person.ask("    ", path=path, language=named), LINE, language=known)
    person.acceptance.close()
    assert [row.language for row in person.rows.values()] == [language]


async def test_told_parts() -> None:
    person = Person()
    name = person.shown("    ", BLOCK)
    person.acceptance.accepted(name, "word")
    person.acceptance.accepted(name, "word")
    person.acceptance.accepted(name, "word", characters=10)
    assert person.outcomes == []
    person.acceptance.accepted(name, "line")
    person.acceptance.close()
    assert person.outcomes == [("line", len(LINE) + 1)]


async def test_what_nobody_looks_at_is_not_shown() -> None:
    person = Person()
    person.answer(person.ask("    ", warm=True), LINE)
    person.answer(person.ask("    ", margins=True), LINE)
    person.answer(person.ask("    ", anchor_lines=3), LINE)
    person.answer(person.ask("    "), LINE, stop="superseded")
    person.answer(person.ask("    "), " \n")
    person.acceptance.close()
    assert person.rows == {}


async def test_clients_are_kept_apart_and_bounded() -> None:
    person = Person()
    for number in range(100):
        person.shown("    ", LINE, client=f"c{number}")
    assert person.outcomes == [("left", 0)] * 36
    person.ask("    " + LINE, client="c99")
    assert person.outcomes[-1] == ("left", 0), "it asked ahead"
    person.wait(1)
    person.ask("    " + LINE, client="c98")
    assert person.outcomes[-1] == ("whole", len(LINE))


async def test_an_answer_of_which_nothing_is_heard() -> None:
    person = Person()
    person.shown("    ", LINE)
    person.wait(599)
    await person.acceptance.look()
    assert person.outcomes == []
    person.wait(1)
    await person.acceptance.look()
    assert person.outcomes == [("left", 0)]


async def test_off_follows_nothing() -> None:
    person = Person()
    person.acceptance.close()
    person.shown("    ", LINE)
    person.wait(1)
    person.ask("    " + LINE)
    assert person.rows == {}


async def test_a_burst_of_typing_is_not_taking() -> None:
    """Of a client that waits a little before it asks."""
    person = Person()
    person.shown("    ", LINE)
    for at in (3, 6, 8, 11, 14, len(LINE)):
        person.wait(0.4)
        person.shown("    " + LINE[:at], LINE[at:] or "\n    pass")
    person.acceptance.close()
    assert person.outcomes[0] == ("typed", 0)
