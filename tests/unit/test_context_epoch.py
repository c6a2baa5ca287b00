"""Epochs: stable context stays, grows at its end, and begins anew only when it no longer matters."""

from daemon.context.epoch import Epochs
from daemon.surroundings import Lost, Piece, Scope, Surroundings


def count(text: str) -> int:
    return len(text.split())


def piece(name: str, words: int = 10, path: str = "lib.py", **more: object) -> Piece:
    text = " ".join([name, *["w"] * (words - 1)])
    return Piece(tier="P2", kind="definition", path=path, name=name, text=text, **more)  # type: ignore[arg-type]


def at(line: int = 0, path: str = "main.py", *chain: str) -> Surroundings:
    scopes = tuple(
        Scope(kind="function", name=name, signature=name, start_line=0, end_line=9, start_byte=0, end_byte=9)
        for name in chain
    )
    return Surroundings(path=path, root="/r", line=line, chain=scopes)


def begun(*pieces: Piece) -> Epochs:
    epochs = Epochs(count)
    first = epochs.after(at(), pieces, (), 100)
    assert first is not None
    epochs.adopt(at(), first)
    return epochs


def test_nothing_is_shown_before_an_epoch_is_adopted() -> None:
    epochs = Epochs(count)
    assert epochs.current(at()).pieces == ()
    assert epochs.after(at(), [piece("a")], (), 100) is not None
    assert epochs.current(at()).pieces == ()


def test_another_ranking_changes_nothing() -> None:
    a, b = piece("a"), piece("b")
    epochs = begun(a, b)
    assert epochs.after(at(), [b, a], (), 100) is None
    assert epochs.current(at(500, "main.py", "other")).pieces == (a, b)


def test_what_is_new_is_appended_while_there_is_room() -> None:
    a, b, c = piece("a"), piece("b"), piece("c", words=60)
    epochs = begun(a)
    lost = (Lost(tier="P3", source="caller x", tokens=9, score=0.1, why="beyond the best 15"),)
    grown = epochs.after(at(), [c, b, a], lost, 25)
    assert grown is not None
    assert grown.pieces == (a, b)
    assert grown.epoch == epochs.current(at()).epoch
    assert grown.lost == lost


def test_an_epoch_that_no_longer_matters_is_given_up_but_keeps_what_does() -> None:
    a, b, c, d = (piece(name) for name in "abcd")
    epochs = begun(a, b, c)
    following = epochs.after(at(), [d, b], (), 100)
    assert following is not None
    assert following.pieces == (b, d)
    assert following.epoch > epochs.current(at()).epoch
    assert "20 of 30 tokens" in following.reason


def test_a_changed_definition_ends_the_epoch() -> None:
    a, b, c = (piece(name) for name in "abc")
    epochs = begun(a, b, c)
    newer = piece("b", words=12)
    following = epochs.after(at(), [a, newer, c], (), 100)
    assert following is not None
    assert following.pieces == (a, c, newer)
    assert "has changed" in following.reason


def test_what_vanished_from_a_changed_file_is_not_shown_any_more() -> None:
    a, b, c = (piece(name, path=f"{name}.py") for name in "abc")
    epochs = begun(a, b, c)
    assert epochs.after(at(), [a, c], (), 100) is None  # not wanted now, but still true
    following = epochs.after(at(), [a, c], (), 100, changed={"b.py"})
    assert following is not None
    assert following.pieces == (a, c)


def test_the_text_being_written_is_never_shown() -> None:
    other = piece("helper", path="main.py", start_line=400, end_line=420)
    a, b = piece("a"), piece("b")
    epochs = begun(a, other, b)
    assert epochs.current(at(100)).pieces == (a, other, b)
    assert epochs.current(at(410)).pieces == (a,)
    assert epochs.current(at(100, "main.py", "helper")).pieces == (a,)
    replanned = epochs.after(at(410), [a, other, b], (), 100)
    assert replanned is not None
    assert other not in replanned.pieces


def test_files_have_their_own_epochs_and_the_oldest_is_forgotten() -> None:
    epochs = Epochs(count, keep=2)
    for name in ("x.py", "y.py", "z.py"):
        first = epochs.after(at(path=name), [piece(name)], (), 100)
        assert first is not None
        epochs.adopt(at(path=name), first)
    assert epochs.current(at(path="x.py")).pieces == ()
    assert [epochs.current(at(path=n)).pieces[0].name for n in ("y.py", "z.py")] == ["y.py", "z.py"]


def test_in_a_window_a_piece_of_the_file_is_recognised_by_its_lines() -> None:
    own = Piece(
        tier="P3",
        kind="text",
        path="main.py",
        text="a = 1\n\n  b = 2\nc = 3\nd = 4",
        start_line=900,
        end_line=905,
    )
    other = piece("other")
    epochs = begun(other, own)
    assert epochs.current(at(256), ["b = 2", "a = 1", "c = 3"]).pieces == (other, own)
    assert epochs.current(at(256), ["x", "a = 1", "b = 2", "c = 3", "d"]).pieces == (other,)
    assert epochs.current(at(900), ["x", "y"]).pieces == (other, own)


def test_what_is_shown_of_the_file_itself_may_grow_older() -> None:
    a, b, own = piece("a"), piece("b"), piece("Main", path="main.py", start_line=300, end_line=320)
    epochs = begun(a, b, own)
    newer = piece("Main", words=12, path="main.py", start_line=300, end_line=320)
    assert epochs.after(at(), [a, b, newer], (), 300) is None
    assert epochs.current(at()).pieces == (a, b, own)
