"""Open texts that differ from their files: what they hold, and for how long they count."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Event, Thread

import pytest
from support.documents import CODE, asked, home, mirror, root
from support.repository import parsed

from daemon.documents import contents
from daemon.documents.contents import Pause
from daemon.documents.mirror import Mirror
from indexer.languages.registry import Language
from indexer.records import ParsedFile

__all__ = ["home", "mirror", "root"]


def test_unsaved_is_what_differs_from_the_file(root: Path, mirror: Mirror) -> None:
    path = str(root / "a.py")
    mirror.open("c", path, CODE)
    assert mirror.unsaved() == ()
    changed = CODE.replace("first", "renamed")
    mirror.change("c", path, changed)
    assert [d.text for d in mirror.unsaved()] == [changed]
    ((place, content),) = mirror.overlay().items()
    assert (place, content.source) == ((str(root), "a.py"), changed.encode())
    assert [s.name for s in content.parsed.symbols] == ["renamed", "second"]
    assert mirror.overlay()[place] is content
    (root / "a.py").write_bytes(changed.replace("\n", "\r\n").encode())
    assert mirror.unsaved() == ()
    assert mirror.overlay() == {}


def test_only_a_text_that_was_left_comes_with_references(root: Path, mirror: Mirror) -> None:
    place, other = (str(root), "a.py"), root / "b.py"
    other.write_text(CODE, encoding="utf-8")
    typed = CODE.replace("first", "renamed") + "renamed()\n"
    mirror.see(asked(str(root / "a.py"), typed, 3))
    assert mirror.settle(10)
    here = mirror.overlay(place)[place]
    assert ([s.name for s in here.parsed.symbols], here.parsed.references) == (["renamed", "second"], ())
    assert here.outline(-1).startswith("import os\ndef renamed")
    assert mirror.overlay(place)[place] is here
    mirror.open("c", str(other), CODE)
    assert mirror.settle(10)
    left = mirror.overlay((str(root), "b.py"))[place]
    assert "renamed" in [r.name for r in left.parsed.references]
    assert mirror.overlay(place)[place] is left


def test_work_waits_for_a_pause() -> None:
    done: list[str] = []
    pause = Pause(done.append)
    for item in ("a", "b", "a"):
        pause.after(item)
    assert pause.settle(10)
    assert done == ["a", "b"]
    pause.after("c")
    assert pause.settle(10)
    assert done == ["a", "b", "c"]
    pause.shut()
    pause.after("d")
    assert done == ["a", "b", "c"]


def test_a_text_that_was_only_shown_gives_way_to_a_newer_file(root: Path, mirror: Mirror) -> None:
    path = root / "a.py"
    mirror.see(asked(str(path), CODE + "x", 3))
    assert [d.relative for d in mirror.unsaved()] == ["a.py"]
    later = time.time() + 10
    os.utime(path, (later, later))
    assert mirror.unsaved() == ()


def test_a_file_that_was_removed_leaves_nothing_of_a_text_that_was_only_shown(
    root: Path, mirror: Mirror
) -> None:
    path = root / "a.py"
    mirror.see(asked(str(path), CODE + "x", 3))
    mirror.open("c", str(root / "new.py"), CODE)
    assert {d.relative for d in mirror.unsaved()} == {"a.py", "new.py"}
    path.unlink()
    assert [d.relative for d in mirror.unsaved()] == ["new.py"]


class Racing(dict[int, str]):
    """Whoever writes one entry waits until another thread has written all."""

    def __init__(self) -> None:
        self.begun, self.written, self.done = Event(), Event(), Event()

    def __setitem__(self, number: int, text: str) -> None:
        super().__setitem__(number, text)
        self._wait()

    def setdefault(self, number: int, text: str = "") -> str:
        found = super().setdefault(number, text)
        self._wait()
        return found

    def _wait(self) -> None:
        self.written.set()
        assert self.done.wait(10)


def test_an_outline_asked_for_while_all_are_made_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    content = parsed("a.py", CODE)
    racing = content._outlines = Racing()
    real = contents.outline

    def slow(source: bytes, file: ParsedFile, language: Language, only: int | None = None) -> object:
        if only is None:
            racing.begun.set()
            assert racing.written.wait(10)
        return real(source, file, language, only)

    def complete() -> None:
        content.complete()
        racing.done.set()

    monkeypatch.setattr(contents, "outline", slow)
    thread = Thread(target=complete)
    thread.start()
    assert racing.begun.wait(10)
    assert content.outline(0) == ""
    thread.join()
    assert content.outline(0) == ""
