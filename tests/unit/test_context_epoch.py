"""Epochs: stable context stays, grows at its end, and begins anew only when that is worth its evaluation."""

import msgspec
from support.epochs import at, begun, count, lines, own, piece, want

from daemon.context.epoch import Epochs
from daemon.surroundings import Lost, Piece


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


def test_an_epoch_is_cut_before_what_must_be_hidden_by_now() -> None:
    a, b, c = (piece(name, path=f"{name}.py") for name in "abc")
    epochs = begun(a, b, c)
    cut = epochs.current(at(), hidden=lambda piece: "gone" if piece.path == "b.py" else "")
    assert cut.pieces == (a,)
    assert cut.epoch > 1
    assert cut.reason.endswith("which is gone")
    assert epochs.current(at()) == cut


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
