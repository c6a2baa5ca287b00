"""Epochs: stable context stays, grows at its end, and begins anew only when that is worth its evaluation."""

from dataclasses import replace
from typing import Any

import msgspec

from daemon.context.epoch import Epochs, Wanted
from daemon.context.written import Near
from daemon.detection import PLACEHOLDER
from daemon.surroundings import Lost, Piece, Scope, Surroundings


def count(text: str) -> int:
    return len(text.split())


def piece(name: str, /, rows: int = 4, path: str = "lib.py", **more: object) -> Piece:
    """Three words a row; with its path and its separator 3 · rows + 2 tokens."""
    text = "\n".join(f"{name} row {n}" for n in range(rows))
    made = Piece(tier="P2", kind="definition", path=path, name=name, text=text, importance=0.5)
    return msgspec.structs.replace(made, **more)


def own(name: str, /, **more: object) -> Piece:
    return piece(name, **{"path": "main.py", "kind": "text", "tier": "P3", "name": "", **more})  # type: ignore[arg-type]


def at(line: int = 0, path: str = "main.py", *chain: str) -> Surroundings:
    scopes = tuple(
        Scope(kind="function", name=name, signature=name, start_line=0, end_line=9, start_byte=0, end_byte=9)
        for name in chain
    )
    return Surroundings(path=path, root="/r", line=line, chain=scopes)


def beside(*rows: str, line: str = "being written", below: tuple[str, ...] = ()) -> Near:
    """Rows above the cursor's line, that line, and rows below."""
    return Near((*rows, line, *below), (*rows, *below))


def want(*pieces: Piece, room: int = 1000, **more: Any) -> Wanted:
    return replace(Wanted(pieces=pieces, room=room, found=pieces), **more)


def begun(*pieces: Piece, **more: Any) -> Epochs:
    epochs = Epochs(count)
    first = epochs.after(at(), want(*pieces, **more))
    assert first is not None
    epochs.adopt(at(), first)
    return epochs


def lines(piece: Piece) -> list[str]:
    return piece.text.split("\n")


def test_nothing_is_shown_before_an_epoch_is_adopted() -> None:
    epochs = Epochs(count)
    assert epochs.current(at()).pieces == ()
    assert epochs.after(at(), want(piece("a"))) is not None
    assert epochs.current(at()).pieces == ()


def test_other_scores_and_places_change_nothing() -> None:
    a, b = piece("a"), piece("b")
    epochs = begun(a, b)
    near = msgspec.structs.replace(b, importance=0.9, recency=1.0, distance=2, start_line=7, end_line=11)
    assert epochs.after(at(), want(near, a)) is None
    assert epochs.current(at(500, "main.py", "other")).pieces == (a, b)


def test_a_name_that_is_being_typed_changes_nothing() -> None:
    epochs = begun(piece("a"))
    for name in ("f", "fi", "find"):
        assert epochs.after(at(3, "main.py", name), want(piece("a"))) is None
        assert epochs.current(at(3, "main.py", name)).epoch == 1


def test_another_choice_of_lines_of_the_same_thing_changes_nothing() -> None:
    whole = piece("a", rows=10)
    epochs = begun(whole, piece("b"))
    cut = msgspec.structs.replace(whole, text="\n".join(lines(whole)[:6]))
    assert epochs.after(at(), want(cut, piece("b"))) is None
    other = msgspec.structs.replace(whole, text="\n".join([*lines(whole)[1:], "a row 10"]))
    assert epochs.after(at(), want(other, piece("b"))) is None


def test_what_is_shown_and_not_wanted_now_may_stay() -> None:
    a, b, c = (piece(name) for name in "abc")
    epochs = begun(a, b, c)
    assert epochs.after(at(), want(a)) is None
    assert epochs.after(at(), want()) is None


def test_what_is_new_is_appended_while_there_is_room() -> None:
    a, b, c = piece("a"), piece("b"), piece("c", rows=8)
    epochs = begun(a)
    lost = (Lost(tier="P3", source="caller x", tokens=9, score=0.1, why="beyond the best 15"),)
    grown = epochs.after(at(), want(b, a, room=30, lost=lost))
    assert grown is not None
    assert grown.pieces == (a, b)
    assert grown.epoch == epochs.current(at()).epoch
    assert grown.lost == lost
    epochs.adopt(at(), grown)
    more = epochs.after(at(), want(piece("d", rows=6), c, b, a, room=50))
    assert more is not None
    assert more.epoch == grown.epoch
    assert more.pieces == (a, b, piece("d", rows=6))


def test_little_is_not_worth_evaluating_what_stands_behind() -> None:
    a, little = piece("a", rows=20), piece("b", rows=2)
    assert begun(a).after(at(), want(a, little)) is None


def test_an_epoch_that_tells_little_of_what_matters_is_given_up_but_keeps_what_does() -> None:
    a, b, c, d = (piece(name) for name in "abcd")
    epochs = begun(a, b, c)
    following = epochs.after(at(), want(d, b, room=30))
    assert following is not None
    assert following.pieces == (b, d)
    assert following.epoch > epochs.current(at()).epoch
    assert "50% of what matters was not shown" in following.reason


def test_the_dearer_the_evaluation_the_more_must_be_missing() -> None:
    a, b, c, d = (piece(name) for name in "abcd")
    for share, worth in ((0.0, True), (0.5, True), (1.0, False), (9.0, False)):
        wanted = want(a, d, room=30, share=lambda tokens, share=share: share)
        assert (begun(a, b).after(at(), wanted) is not None) is worth
    wanted = want(c, d, room=30, share=lambda tokens: 9.0)
    assert begun(a, b).after(at(), wanted) is not None


def test_the_price_is_that_of_what_stands_behind_as_well() -> None:
    prices: list[int] = []
    a, b, c = (piece(name) for name in "abc")

    def share(tokens: int) -> float:
        prices.append(tokens)
        return 0.0

    assert begun(a, b).after(at(), want(a, c, room=28, behind=100, share=share)) is not None
    assert prices == [100 + 14], "what both heads begin with is evaluated"


def test_a_changed_definition_ends_the_epoch() -> None:
    a, b, c = (piece(name, path=f"{name}.py") for name in "abc")
    epochs = begun(a, b, c, states=lambda paths: dict.fromkeys(paths, b"1"))
    newer = msgspec.structs.replace(b, text="b other\nb else")
    following = epochs.after(at(), want(a, newer, c, states=lambda paths: {"b.py": b"2"}))
    assert following is not None
    assert following.pieces == (a, c, newer)
    assert "has changed" in following.reason


def test_a_change_elsewhere_in_a_file_ends_nothing() -> None:
    a, b = piece("a"), piece("b")
    epochs = begun(a, b, states=lambda paths: {"lib.py": b"1"})
    cut = msgspec.structs.replace(a, text="\n".join(lines(a)[:3]))
    epochs.adopt(at(), msgspec.structs.replace(epochs.current(at()), pieces=(cut, b)))
    assert epochs.after(at(), want(a, b, states=lambda paths: {"lib.py": b"2"})) is None


def test_what_vanished_from_a_changed_file_is_not_shown_any_more() -> None:
    a, b, c = (piece(name, path=f"{name}.py") for name in "abc")
    epochs = begun(a, b, c, states=lambda paths: dict.fromkeys(paths, b"1"))
    assert epochs.after(at(), want(a, c)) is None  # not wanted now, but still true
    following = epochs.after(at(), want(a, c, states=lambda paths: {"b.py": b""}))
    assert following is not None
    assert following.pieces == (a, c)


def test_an_appended_piece_does_not_make_older_ones_look_new() -> None:
    a, b = piece("a", path="a.py"), piece("b", path="b.py")
    epochs = begun(a, states=lambda paths: dict.fromkeys(paths, b"1"))
    grown = epochs.after(at(), want(a, b, states=lambda paths: {"a.py": b"2", "b.py": b"2"}))
    assert grown is not None
    assert grown.states == {"a.py": b"1", "b.py": b"2"}


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


def test_an_epoch_is_cut_before_what_is_left_out_by_now() -> None:
    a, b, c = (piece(name, path=f"{name}.py") for name in "abc")
    epochs = begun(a, b, c)
    cut = epochs.current(at(), left_out=lambda path: path == "b.py")
    assert cut.pieces == (a,)
    assert cut.epoch > 1
    assert epochs.current(at()) == cut


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


def test_what_the_client_sends_no_more_is_not_shown_any_more() -> None:
    a, b = piece("a"), piece("b")
    for kind in ("clipboard", "diagnostic"):
        sent = piece("old", kind=kind, path="", name="", tier="P4")
        epochs = begun(a, b, sent)
        assert epochs.after(at(), want(a, b, found=(a, b, sent))) is None, "it may be true and not wanted"
        following = epochs.after(at(), want(a, b))
        assert following is not None
        assert following.pieces == (a, b)


def test_a_region_that_grew_is_not_appended_beside_its_older_text() -> None:
    a, region = piece("a"), own("edited", rows=6, kind="recent")
    grown = msgspec.structs.replace(region, text="\n".join([*lines(region), "edited row 6", "edited row 7"]))
    assert begun(a, region).after(at(), want(a, grown)) is None


def test_what_was_chosen_is_chosen_again_until_it_is_evaluated() -> None:
    a, b, c, d, e = (piece(name) for name in "abcde")
    epochs = begun(a, b)
    first = epochs.after(at(), want(c, d, room=30))
    assert first is not None
    near = msgspec.structs.replace(d, importance=0.4)
    assert epochs.after(at(), want(near, c, room=30)) is first, "an interrupted evaluation goes on"
    other = epochs.after(at(), want(d, e, room=30))
    assert other is not None
    assert other.pieces == (d, e)
    assert epochs.after(at(), want(a, b)) is None, "the person is back where the epoch is right"
    again = epochs.after(at(), want(d, e, room=30))
    assert again is not None
    assert again.epoch > other.epoch


def test_what_was_chosen_is_given_up_when_it_is_being_written() -> None:
    a, b, other = piece("a"), piece("b"), own("helper")
    epochs = begun(a)
    first = epochs.after(at(), want(b, other))
    assert first is not None
    assert other in first.pieces
    second = epochs.after(at(), want(b, other), beside(*lines(other)))
    assert second is not None
    assert other not in second.pieces


def test_who_asks_for_context_now_gets_what_is_chosen_now() -> None:
    a, b, c = (piece(name) for name in "abc")
    epochs = begun(a, b)
    alone = epochs.alone(at(), want(b, a, c))
    assert alone.pieces == (b, a, c)
    assert alone.epoch > epochs.current(at()).epoch


def test_files_have_their_own_epochs_and_the_oldest_is_forgotten() -> None:
    epochs = Epochs(count, keep=2)
    for name in ("x.py", "y.py", "z.py"):
        first = epochs.after(at(path=name), want(piece(name)))
        assert first is not None
        epochs.adopt(at(path=name), first)
    assert epochs.current(at(path="x.py")).pieces == ()
    assert [epochs.current(at(path=n)).pieces[0].name for n in ("y.py", "z.py")] == ["y.py", "z.py"]


def test_a_piece_without_lines_that_tell_is_no_reason_for_anything() -> None:
    empty = Piece(tier="P4", kind="recent", path="lib.py", text="}\n\n}", importance=1.0)
    assert begun(piece("a")).after(at(), want(piece("a"), empty)) is None
