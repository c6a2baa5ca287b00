"""What is shown of the file being written: never the lines near the cursor, nor what it says no more."""

import msgspec
from support.epochs import at, begun, beside, lines, own, piece, want

from daemon.detection import PLACEHOLDER


def test_the_text_being_written_is_never_shown() -> None:
    a, b, other = piece("a"), piece("b"), own("helper")
    epochs = begun(a, other, b)
    first = epochs.current(at(), beside("far away"))
    assert first.pieces == (a, other, b)
    cut = epochs.current(at(), beside("above", *lines(other)[1:], "below"))
    assert cut.pieces == (a,)
    assert cut.epoch > first.epoch, "inside an epoch pieces are only appended"
    assert epochs.current(at(), beside("far away")) == cut, "its rest may not be evaluated any more"
    replanned = epochs.after(at(), want(a, other, b), beside(*lines(other)))
    assert replanned is not None
    assert other not in replanned.pieces
    assert b in replanned.pieces


def test_a_shown_piece_stays_while_the_cursor_is_only_near_it() -> None:
    a, other = piece("a"), own("helper")
    epochs = begun(a, other)
    assert epochs.after(at(), want(a), beside(*lines(other))) is None
    assert epochs.current(at(), beside("far away")).pieces == (a, other)


def test_lines_written_above_a_piece_bring_it_no_nearer() -> None:
    other = own("helper", start_line=60, end_line=64)
    epochs = begun(piece("a"), other)
    for line in range(200):
        written = beside(*(f"written {n}" for n in range(max(0, line - 30), line)))
        assert other in epochs.current(at(line), written).pieces


BODY = """\
def run(self, orders):
    \"\"\"What it does,
    said in two lines.\"\"\"
    # ...
    for order in orders:
        self.old_call(order)
        # ...
        yield order"""


def test_the_head_of_a_definition_that_is_being_written_may_be_shown() -> None:
    outline, around = own("x", kind="outline", name="Main"), own("y", kind="enclosing", name="run", text=BODY)
    epochs = begun(outline, around)
    heads = [*lines(outline), *(row.strip() for row in lines(around)[:3])]
    assert epochs.current(at(), beside(*heads)).pieces == (outline, around)


def test_the_condensed_body_of_a_definition_is_not_shown_where_it_is_being_written() -> None:
    a, around = piece("a"), own("y", kind="enclosing", name="run", text=BODY)
    epochs = begun(a, around)
    written = ("log(orders)", "for order in orders:")
    near = beside(*written, line="self.new_call(ord", below=("check(order)", "yield order", "total = 0"))
    assert epochs.current(at(), near).pieces == (a,)


def test_a_line_being_edited_in_the_middle_of_a_piece_is_not_shown_as_it_was() -> None:
    a, other = piece("a"), own("helper", rows=5)
    for edited in range(5):
        epochs = begun(a, other)
        rows = lines(other)
        near = beside("above", *rows[:edited], line="helper row x", below=(*rows[edited + 1 :], "below"))
        assert epochs.current(at(), near).pieces == (a,), edited


def test_a_line_written_into_a_short_piece_does_not_hide_it() -> None:
    other = own("helper", rows=3)
    first, second, third = lines(other)
    for near in (beside(first, second, below=(third,)), beside(first, line="edited", below=(third,))):
        assert begun(piece("a"), other).current(at(), near).pieces == (piece("a"),)


def test_lines_that_every_block_repeats_do_not_make_another_place_the_same() -> None:
    check = "if err != nil {\nreturn nil, err"
    other = own("other", text=f"a, err := one()\n{check}\nb, err := two()\n{check}")
    epochs = begun(piece("a"), other)
    rows = check.split("\n")
    near = beside("c, err := six()", *rows, line="d, err := ten()", below=tuple(rows))
    assert other in epochs.current(at(), near).pieces


def test_what_is_shown_of_the_file_itself_may_grow_older() -> None:
    a, b, mine = piece("a"), piece("b"), own("Main", kind="enclosing", name="Main", tier="P1")
    states = {"lib.py": b"1", "main.py": b"1"}
    epochs = begun(a, b, mine, states=lambda paths: {path: states[path] for path in paths})
    newer = msgspec.structs.replace(mine, text=f"{mine.text}\nMain row 4")
    assert epochs.after(at(), want(a, b, newer, states=lambda paths: dict.fromkeys(paths, b"1"))) is None
    assert epochs.current(at()).pieces == (a, b, mine)


def test_what_the_file_says_no_more_is_not_shown_any_more() -> None:
    a, b = piece("a"), piece("b")
    for kind in ("text", "recent", "accepted"):
        mine = own("old", kind=kind)
        epochs = begun(a, mine, b, text=f"import os\n{mine.text}\n")
        grown = f"import os\nimport sys\n  {mine.text}\nmore\n"
        assert epochs.after(at(), want(a, b, text=grown)) is None
        assert epochs.after(at(), want(a, b, text=None)) is None, "only a part of it is known"
        renamed = mine.text.replace("old row 2", "new row 2")
        following = epochs.after(at(), want(a, mine, b, text=renamed))
        assert following is not None
        assert following.pieces == (a, b)
        epochs.adopt(at(), following)
        assert epochs.after(at(), want(a, mine, b, text=renamed)) is None, "once and for all"


def test_a_line_whose_secret_was_taken_out_is_there() -> None:
    a, secret = piece("a"), own("", kind="recent", text=f'key = "{PLACEHOLDER}"\nuse(key)')
    epochs = begun(a, secret)
    assert epochs.after(at(), want(a, text='key = "hidden"\nuse(key)\n')) is None


def test_an_accepted_completion_may_be_a_part_of_its_lines() -> None:
    a, taken = piece("a"), own("", kind="accepted", text="(orders, key=str)\n    return be")
    epochs = begun(a, taken)
    text = "    best = max(orders, key=str)\n    return best\n"
    assert epochs.after(at(), want(a, text=text)) is None


def test_what_was_chosen_is_given_up_when_it_is_being_written() -> None:
    a, b, other = piece("a"), piece("b"), own("helper")
    epochs = begun(a)
    first = epochs.after(at(), want(b, other))
    assert first is not None
    assert other in first.pieces
    second = epochs.after(at(), want(b, other), beside(*lines(other)))
    assert second is not None
    assert other not in second.pieces
