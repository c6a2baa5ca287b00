"""Queries against a small root whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import rows

from indexer import packing
from indexer.errors import IndexDamaged
from indexer.read import Reader
from indexer.records import Chunk, FileRow, Import, IndexedFile, Outline, Reference
from indexer.store import Store

SKIPPED = [
    IndexedFile(row=FileRow(path=f"bin/{i}.dat", size=1, mtime_ns=1, digest=b"", reason="binary"))
    for i in range(5)
]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    path = tmp_path / "x.db"
    with Store(path) as store:
        store.apply(
            [
                rows.made("pkg/__init__.py"),
                rows.made("pkg/shape.py", defines=["area", "größe", "_private"], uses=["sqrt"]),
                rows.made(
                    "pkg/draw.py", ["draw"], ["area", "größe", "area"], [Import(module="shape", level=1)]
                ),
                rows.made("far/away/use.py", defines=["area"], uses=["draw"]),
                rows.made("notes.py", text="the quick brown fox\nsnake_case words here\n"),
                *SKIPPED,
            ]
        )
        store.maintain()
        store.note(complete=1, model="tiny")
    with Reader(path) as found:
        yield found


def test_definitions_by_nearness(reader: Reader) -> None:
    found = reader.definitions("area", near="pkg/draw.py")
    assert [p.path for p in found] == ["pkg/shape.py", "far/away/use.py"]
    assert reader.definitions("area", near="far/away/x.py")[0].path == "far/away/use.py"
    assert found[0].symbol == rows.symbol("area", 0)
    assert reader.definitions("größe")[0].number == 1
    assert reader.definitions("absent") == ()


def test_find_by_prefix(reader: Reader) -> None:
    assert [p.symbol.name for p in reader.find("gr")] == ["größe"]
    assert len(reader.find("", 3)) == 3


def test_symbol_at_and_siblings(reader: Reader) -> None:
    found = reader.symbol_at("pkg/shape.py", 55)
    assert found is not None
    assert (found[0], found[1].name) == (1, "größe")
    assert reader.symbol_at("pkg/shape.py", 45) is None
    assert [p.symbol.name for p in reader.siblings("pkg/shape.py", 1)] == ["area", "_private"]


def test_callers(reader: Reader) -> None:
    uses = reader.callers("area", near="pkg/shape.py")
    assert [(u.path, u.reference.start_byte) for u in uses] == [("pkg/draw.py", 7), ("pkg/draw.py", 107)]
    assert uses[0].inside is not None
    assert uses[0].inside.name == "draw"
    assert [u.path for u in reader.callers("größe")] == ["pkg/draw.py"]
    assert reader.callers("AREA") == ()


def test_outlines_of_imports(reader: Reader) -> None:
    (snippet,) = reader.import_outlines("pkg/draw.py")
    assert snippet.path == "pkg/shape.py"
    assert snippet.kind == "outline"
    assert "def area" in snippet.text
    assert reader.imports("pkg/draw.py")[0][1] == "pkg/shape.py"


def test_similar(reader: Reader) -> None:
    keys = rows.made("q.py", defines=["area"]).bands[0][1]
    assert [(p.path, p.score) for p in reader.similar(keys)] == [
        ("pkg/shape.py", 1.0),
        ("far/away/use.py", 1.0),
    ]
    assert [p.path for p in reader.similar(keys, apart="pkg/shape.py")] == ["far/away/use.py"]
    assert reader.similar(b"") == ()


@pytest.mark.parametrize(
    ("text", "path"),
    [("quick fox", "notes.py"), ("snake_case", "notes.py"), ("GRÖßE area", "pkg/draw.py"), ('" OR -x*', "")],
)
def test_search(reader: Reader, text: str, path: str) -> None:
    found = reader.search(text)
    assert (path in [s.path for s in found]) if path else not found


def test_search_leaves_a_file_out(reader: Reader) -> None:
    assert reader.search("quick", apart="notes.py") == ()


def test_status(reader: Reader) -> None:
    status = reader.status()
    assert (status.files, status.languages, status.stale) == (5, {"python": 5}, 0)
    assert status.skipped == {"binary": (5, ("bin/0.dat", "bin/1.dat", "bin/2.dat"))}
    assert status.symbols == 5
    assert reader.notes() == {"complete": 1, "model": "tiny"}


def test_files_in_pages(reader: Reader) -> None:
    first = reader.files(limit=4)
    assert [*first, *reader.files(after=first[-1].path)] == list(reader.files())
    assert len(reader.files("python")) == 5
    assert reader.file("absent") is None


def test_importance(reader: Reader) -> None:
    scores = reader.importance()
    assert max(scores, key=lambda p: scores[p]) == "pkg/shape.py"


def test_answers_follow_the_writer(reader: Reader) -> None:
    before = reader.generation()
    assert len(reader.definitions("area")) == 2
    with Store(reader.path) as store:
        store.apply([], ["far/away/use.py"])
    assert reader.generation() > before
    assert len(reader.definitions("area")) == 1


def test_a_reader_survives_replacement(reader: Reader) -> None:
    assert reader.definitions("area")
    with Store(reader.path) as store:
        store.rebuild()
        assert reader.definitions("area") == ()
        store.apply([rows.made("z.py", defines=["area"])])
        assert [p.path for p in reader.definitions("area")] == ["z.py"]


def test_there_is_none_yet(tmp_path: Path) -> None:
    with Reader(tmp_path / "x.db") as reader:
        with pytest.raises(IndexDamaged, match="no index yet"):
            reader.files()
        Store(tmp_path / "x.db").close()
        assert reader.files() == ()


def test_blobs_survive_packing() -> None:
    found = (
        Reference(name="ä" * 3, role="base", start_byte=70_000, end_byte=70_006, line=3_000, symbol=-1),
        Reference(name="b", role="import", start_byte=5, end_byte=900_000, line=0, symbol=40_000),
        Reference(name="b", role="call", start_byte=6, end_byte=7, line=1, symbol=0),
    )
    packed = packing.References(packing.references(found))
    assert packed.rows() == found
    assert packed.rows("b") == found[1:]
    assert packed.rows("c") == ()
    assert packed.counts() == {"äää": 1, "b": 1}
    assert packing.References(packing.references(())).rows() == ()
    chunks = tuple(Chunk(start_line=i, end_line=i + 1, text=f"t{i}\0") for i in range(40))
    assert packing.unpack_chunks(packing.chunks(chunks)) == chunks
    assert [packing.unpack_chunk(packing.chunks(chunks), i) for i in range(40)] == list(chunks)
    assert packing.unpack_chunk(packing.chunks(chunks), 40) is None
    outlines = (Outline(text="class A: ..."), Outline(text="x", symbol=3))
    assert packing.unpack_outlines(packing.outlines(outlines)) == outlines


def test_damaged_blobs_are_damage() -> None:
    for unpack in (packing.References, packing.unpack_outlines, packing.unpack_chunks):
        with pytest.raises(IndexDamaged):
            unpack(b"\x93nonsense")


def test_stored_numbers_of_kinds_and_roles_stay() -> None:
    assert packing.KINDS[:4] == ("module", "namespace", "class", "interface")
    assert (packing.KINDS[16], packing.ROLES) == (
        "member",
        ("call", "type", "base", "decorator", "attribute", "import", "name"),
    )
