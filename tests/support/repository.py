"""A real, indexed root in this process, and what surrounds a place in one of its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from daemon import roots
from daemon.context.cursor import scope
from daemon.context.oneline import WORD
from daemon.documents.contents import Content
from daemon.readers import Readers
from daemon.settings import Index
from daemon.surroundings import Surroundings
from indexer.frames import DATABASE, Setup, Task
from indexer.languages import registry
from indexer.make import Maker
from indexer.parse import parse_file
from indexer.store import Store

_NEAR = 20


def indexed(root: Path, files: Mapping[str, str]) -> tuple[Path, Readers]:
    """Write the files, register the folder and index it as the indexer's children do."""
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    root = roots.normal(root)
    roots.add(root)
    folder = roots.folder(root)
    folder.mkdir(parents=True)
    maker = Maker(Setup(), None)
    made = [maker.make(Task(root=str(root), path=path)) for path in sorted(files)]
    with Store(folder / DATABASE) as store:
        store.apply([one.file for one in made if one.file is not None])
        store.maintain()
    return root, Readers(Index())


def parsed(path: str, text: str) -> Content:
    """A buffer as an overlay holds it."""
    language = registry.language_for(path, text.encode())
    assert language is not None
    return Content(text.encode(), parse_file(text.encode(), language, 60.0)[0], language)


class Buffers:
    """Unsaved buffers: (root, path) → text."""

    def __init__(self, texts: Mapping[tuple[str, str], str] | None = None) -> None:
        self._texts = dict(texts or {})

    def overlay(self, here: tuple[str, str] = ("", "")) -> dict[tuple[str, str], Content]:
        return {key: parsed(key[1], text) for key, text in self._texts.items()}


def around(root: Path, path: str, text: str, before: str) -> Surroundings:
    """The surroundings of the cursor behind the first `before` in a file's text."""
    offset = text.index(before) + len(before)
    found = parsed(path, text).parsed
    byte, line = len(text[:offset].encode()), text.count("\n", 0, offset)
    lines = text.split("\n")
    order = [line, *(n for far in range(1, _NEAR) for n in (line - far, line + far) if 0 <= n < len(lines))]
    chain = [s for s in found.symbols if s.span.start_byte <= byte <= s.span.end_byte]
    return Surroundings(
        path=path,
        root=str(root),
        language=found.language,
        line=line,
        chain=tuple(
            scope(s)
            for s in chain
            if s.kind in ("class", "interface", "struct", "function", "method", "constructor")
        ),
        names=tuple(dict.fromkeys(name for n in order for name in WORD.findall(lines[n]))),
        imports=tuple(dict.fromkeys(n for i in found.imports for n in i.names or (i.module,))),
    )
