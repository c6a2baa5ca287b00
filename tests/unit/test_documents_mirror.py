"""Open documents: what is kept, for how long, and what it tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.documents import CODE, asked, home, mirror, root

from daemon import roots
from daemon.documents.mirror import DENIED, Mirror
from daemon.documents.opening import opening
from daemon.documents.regions import MOST_TEXT
from daemon.readers import Readers
from daemon.settings import Index

__all__ = ["home", "mirror", "root"]


def test_a_whole_text_is_kept_with_its_tree(root: Path, mirror: Mirror) -> None:
    seen = mirror.see(asked(str(root / "a.py"), CODE, 20))
    assert mirror.settle(10)
    seen = mirror.see(asked(str(root / "a.py"), CODE, 20))
    assert (seen.root, seen.relative, seen.language, seen.offset, seen.whole) == (
        str(root), "a.py", "python", 20, True,
    )  # fmt: skip
    assert seen.tree is not None
    assert not seen.moved
    assert seen.source == CODE.encode()
    longer = CODE.replace("return 1", "return 12")
    again = mirror.see(asked(str(root / "a.py"), longer, 20))
    assert again.version == seen.version + 1
    assert again.tree is not None


def test_a_window_never_overwrites_a_whole_document(root: Path, mirror: Mirror) -> None:
    path = str(root / "a.py")
    mirror.open("c", path, CODE)
    window = CODE[11:60]
    seen = mirror.see(asked(path, window, 9, whole=False))
    assert (seen.whole, seen.text, seen.offset) == (True, CODE, 20)
    other = mirror.see(asked(path, "def third():\n    pass\n", 5, whole=False))
    assert (other.whole, other.tree, other.text) == (False, None, "def third():\n    pass\n")
    assert "window" in other.why
    assert [d.text for d in mirror.documents()] == [CODE]
    assert "def third" in mirror.recent()[0].text
    assert mirror.see(asked(path, "\n", 0, whole=False)).whole is False, "found in more than one place"


def test_no_path_is_no_document(mirror: Mirror) -> None:
    seen = mirror.see(asked(None, CODE, 3))
    assert (seen.path, seen.text, seen.why) == ("", CODE, "the client names no path")
    assert mirror.documents() == ()


@pytest.mark.parametrize("path", [".env", "keys/id_rsa", "home/.ssh/config", "a/client_secret_1.json"])
def test_nothing_of_a_denied_file_is_kept(path: str, mirror: Mirror) -> None:
    mirror.open("c", path, "TOKEN=canary\n")
    mirror.change("c", path, "TOKEN=canary2\n")
    mirror.visit("c", path, 0)
    mirror.accepted("c", path, "TOKEN=canary\n")
    for whole in (True, False):
        assert mirror.see(asked(path, "TOKEN=canary\n", 3, whole)).why == DENIED
    assert mirror.documents() == ()
    assert mirror.recent() == ()


def test_a_key_pasted_into_a_text_makes_it_unknown(mirror: Mirror) -> None:
    mirror.open("c", "notes.txt", "hello canary\n")
    mirror.change("c", "notes.txt", "hello canary!\n")
    assert mirror.recent()
    mirror.change("c", "notes.txt", "-----BEGIN RSA PRIVATE KEY-----\ncanary\n")
    assert mirror.documents() == ()
    assert mirror.recent() == ()


def test_copies_are_bounded_by_number_and_size(mirror: Mirror) -> None:
    for name in "abcdef":
        mirror.open("c", f"{name}.py", f"{name} = 1\n")
    assert [d.path for d in mirror.documents()] == ["f.py", "e.py", "d.py", "c.py"]
    mirror.visit("c", "c.py")
    mirror.open("c", "big.txt", "x" * 150_000)
    mirror.open("c", "bigger.txt", "y" * 150_000)
    assert [d.path for d in mirror.documents()] == ["bigger.txt"]
    mirror.open("c", "c.py", "c = 1\n")
    assert [d.path for d in mirror.documents()] == ["c.py", "bigger.txt"]


def test_nearby_edits_are_one_region_that_moves_with_the_text(mirror: Mirror) -> None:
    lines = [f"line_{i} = {i}" for i in range(100)]
    mirror.open("c", "a.py", "\n".join(lines))
    for at in (50, 51, 53):
        lines[at] += "0"
        mirror.change("c", "a.py", "\n".join(lines))
    lines[90] = "far"
    mirror.change("c", "a.py", "\n".join(lines))
    far, near = mirror.recent()
    assert (far.start_line, far.text) == (90, "far")
    assert (near.start_line, near.end_line) == (50, 54)
    lines.insert(0, "first")
    mirror.change("c", "a.py", "\n".join(lines))
    assert [(r.start_line, r.end_line) for r in mirror.recent()] == [(0, 2), (91, 92), (51, 55)]
    mirror.close("c", "a.py")
    assert mirror.recent()[2].text == "\n".join(lines[51:55])


def test_visits_and_accepted_completions(mirror: Mirror) -> None:
    text = "\n".join(f"line_{i} = {i}" for i in range(100))
    mirror.open("c", "a.py", text)
    for line in (50, 51, 52, 90):
        mirror.visit("c", "a.py", line)
    assert [(r.kind, r.start_line, r.end_line) for r in mirror.recent()] == [
        ("visited", 82, 99), ("visited", 42, 59),
    ]  # fmt: skip
    before = asked("a.py", "total = sum", 11)
    mirror.shown(before, "(prices)\n")
    mirror.see(asked("a.py", "total = sum(pr", 14))
    assert all(r.kind != "accepted" for r in mirror.recent())
    mirror.see(asked("a.py", "total = sum(prices)\nx", 21))
    assert mirror.recent()[0].kind in ("accepted", "edited")
    assert [r.text for r in mirror.recent() if r.kind == "accepted"] == ["(prices)\n"]


def test_a_large_text_is_parsed_beside_the_loop(mirror: Mirror) -> None:
    mirror = Mirror(Readers(Index()))
    text = "\n".join(f"def f{i}(a, b):\n    return a + b + {i}\n" for i in range(3_000))
    first = mirror.see(asked("a.py", text, 10))
    assert (first.tree, first.why) == (None, "not parsed yet")
    assert mirror.settle(30)
    assert mirror.see(asked("a.py", text, 10)).tree is not None
    longer = text + 'x = """'
    seen = mirror.see(asked("a.py", longer, len(longer)))
    assert seen.tree is not None
    assert seen.tree.root_node.end_byte == len(longer)
    mirror.shut()


def test_what_cannot_be_parsed_says_why(mirror: Mirror) -> None:
    mirror.open("c", "a.xyz", "what\n")
    assert mirror.documents()[0].why == "no grammar for its language"
    mirror.open("c", "b.py", "(" * 5_000)
    assert mirror.settle(10)
    assert "nest" in mirror.documents()[0].why
    mirror.open("c", "untitled", "fn main() {}\n", "rust")
    assert mirror.documents()[0].language == "rust"


def test_opening_and_focusing_is_noticed(mirror: Mirror) -> None:
    noticed: list[tuple[str, str]] = []
    mirror.noticed = lambda client, path: noticed.append((client, path))
    mirror.open("c", "a.py", "x\n")
    mirror.visit("d", "a.py")
    assert noticed == [("c", "a.py"), ("d", "a.py")]
    noticed.clear()
    mirror.open("c", "b.py", "x = 1\n" * 100)
    for line in (3, 4, 5, 60, 61):
        mirror.visit("c", "b.py", line)
    assert len(noticed) == 3  # opened, the first place, the jump


def test_a_document_opened_before_its_folder_was_indexed_is_found_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "late" / "b.py"
    path.parent.mkdir()
    monkeypatch.setattr("daemon.documents.mirror._PLACE_S", 0.0)
    mirror = Mirror(Readers(Index()))
    mirror.open("c", str(path), CODE)
    assert mirror.see(asked(str(path), CODE, 3)).root == ""
    roots.add(roots.normal(path.parent))
    for whole in (True, False):
        found = mirror.see(asked(str(path), CODE, 3, whole))
        assert (found.root, found.relative) == (str(roots.normal(path.parent)), "b.py")
    mirror.shut()


def test_a_completion_taken_in_a_file_with_crlf_is_noticed(mirror: Mirror) -> None:
    mirror.shown(asked("a.py", "if x:", 5), "\r\n    return 1\r\n")
    mirror.see(asked("a.py", "if x:\n    return 1\nz", 20))
    assert [r.text for r in mirror.recent() if r.kind == "accepted"] == ["\n    return 1\n"]


def test_no_region_is_longer_than_is_shown(mirror: Mirror) -> None:
    for number in range(3):
        mirror.see(asked("a.js", f"let x = [{'1,' * 50_000}{number}", 99_000, whole=False))
    assert max(len(r.text) for r in mirror.recent()) <= MOST_TEXT


def test_the_question_in_an_opened_document_is_where_the_person_is(mirror: Mirror) -> None:
    text = "\n".join(f"line_{i} = {i}" for i in range(100))
    mirror.open("c", "a.py", text)
    mirror.open("c", "b.py", text)
    for line in (20, 50):
        mirror.visit("c", "a.py", line)
        found = opening(mirror, "c", "a.py")
        assert found is not None
        assert found.prefix.endswith(f"\nline_{line} = {line}")
    mirror.visit("c", "b.py", 9)
    again = opening(mirror, "c", "a.py")
    assert again is not None
    assert again.prefix.endswith("\nline_50 = 50")
