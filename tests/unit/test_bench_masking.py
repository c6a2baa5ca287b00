"""Masked repositories: what is copied, what is drawn and judged, and that nothing else changes."""

import asyncio
import dataclasses
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from support import masked as repository

from daemon.bench import contrast, gathering, masking, ours, stats, survey
from daemon.bench.masking import Mask, Source
from daemon.bench.repository import judge
from daemon.context.head import fitting
from daemon.errors import BadRequest, EngineFailed
from daemon.nouns import Extra
from indexer.frames import DATABASE
from indexer.read import Reader


class Made(NamedTuple):
    copy: survey.Copy
    sources: tuple[Source, ...]
    masks: tuple[Mask, ...]
    original: Path
    folder: Path

    @property
    def by_path(self) -> dict[str, Source]:
        return {source.path: source for source in self.sources}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("masked").resolve()
    original = repository.write(folder / "original")
    two = original / "two.py"
    two.write_text(f"from odd import x\n{two.read_text(encoding='utf-8')}\nprint(x)\n", encoding="utf-8")
    copy = survey.copy(original, folder / "copy")
    sources = asyncio.run(survey.sources(copy, folder / "index", lambda done, total: None))
    masks = masking.draw(sources, 12, 1)
    survey.write(copy, sources, masks)
    return Made(copy, sources, masks, original, folder / "index")


def test_only_what_an_index_reads_is_copied(made: Made) -> None:
    names = {path.name for path in made.copy.root.iterdir()}
    kept = {".gitignore", "notes.md", "odd.py", "one.py", "shapes.py", "test_three.py", "two.py"}
    assert names == kept
    assert "odd.py" not in made.copy.texts, "a file with marks and CRLF is not masked"


def test_a_repository_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="missing"):
        survey.copy(tmp_path / "missing", tmp_path / "copy")


def test_positions_are_the_same_for_a_seed(made: Made) -> None:
    assert masking.draw(made.sources, 12, 1) == made.masks
    assert masking.draw(made.sources[::-1], 12, 1) == made.masks
    assert masking.draw(made.sources, 12, 2) != made.masks


def test_nothing_but_the_masks_differs(made: Made) -> None:
    assert len(made.masks) >= 9
    for path in made.original.iterdir():
        if path.name in (".env", "made.py"):
            continue
        now, before = (made.copy.root / path.name).read_bytes(), path.read_bytes()
        spans = [(m.start, m.end, m.text) for m in made.masks if m.path == path.name]
        for start, _, text in sorted(spans):
            assert not now[start:].startswith(text.encode())
            now = now[:start] + text.encode() + now[start:]
        assert now == before


def test_what_is_sent_is_what_is_on_disk(made: Made) -> None:
    for mask in made.masks:
        before, after = masking.around(made.by_path[mask.path], mask, made.masks)
        assert before + after == (made.copy.root / mask.path).read_text(encoding="utf-8")
        assert after.startswith("\n")
        assert mask.kind == "rest" or not before.rpartition("\n")[2].strip()
        assert ("\n" in mask.text) is (mask.kind == "block")


def test_masks_are_apart_and_take_no_definition_away(made: Made) -> None:
    for source in made.sources:
        here = [mask for mask in made.masks if mask.path == source.path]
        lines = [mask.line for mask in here]
        assert len(here) <= 4
        assert all(abs(a - b) >= 40 for a in lines for b in lines if a != b)
        named = [symbol.name_start for symbol in source.symbols]
        assert not any(mask.start <= place < mask.end for mask in here for place in named)
        assert not any(mask.line in source.import_lines for mask in here)
    assert sum(mask.path == "test_three.py" for mask in made.masks) <= 3


def place(made: Made, path: str, words: bytes) -> tuple[Source, tuple[str, ...]]:
    """A file, and the names of another file that the masked line with `words` would need."""
    source = made.by_path[path]
    start = source.text.index(words)
    end = source.text.index(b"\n", start)
    names = [name for byte, name in source.names if start <= byte < end]
    assert names
    visible = source.words_without([(start, end)])
    return source, masking.crossing(source, names, visible, masking.definers(made.sources))


def test_a_name_that_only_another_file_shows_is_cross_file(made: Made) -> None:
    source, found = place(made, "two.py", b"total += Shape5(value)")
    assert source.imported == ("shapes.py",)
    assert set(found) == {"Shape5", "surface_5"}
    assert place(made, "two.py", b"average = total / max(1")[1] == ()
    assert place(made, "shapes.py", b"doubled = self.edge * 3")[1] == ()
    assert any(mask.cross for mask in made.masks)
    assert any(not mask.cross for mask in made.masks)


def test_a_name_that_the_rest_of_the_file_shows_is_not(made: Made) -> None:
    source = made.by_path["two.py"]
    more = dataclasses.replace(source, text=source.text + b"\nprint(Shape5)\n")
    defined = masking.definers(made.sources)
    assert masking.crossing(more, ["Shape5", "Shape6"], more.words_without([]), defined) == ()
    assert masking.crossing(source, ["Shape5"], {}, defined) == ("Shape5",)
    assert masking.crossing(dataclasses.replace(source, near=frozenset()), ["Shape5"], {}, defined) == ()


async def test_a_package_sees_its_folder_without_imports(tmp_path: Path) -> None:
    root = (tmp_path / "go").resolve()
    root.mkdir()
    filling = "// filling\n" * 40
    (root / "a.go").write_text(f"package p\n\nfunc Alpha(x int) int {{\n\treturn x\n}}\n{filling}")
    (root / "b.go").write_text(
        f"package p\n\nfunc Beta(x int) int {{\n\ty := x + 1\n\treturn Alpha(y)\n}}\n{filling}"
    )
    copy = survey.copy(root, tmp_path / "copy")
    sources = await survey.sources(copy, tmp_path / "index", lambda done, total: None)
    assert {mask.path: mask.cross for mask in masking.draw(sources, 4, 1)} == {"a.go": (), "b.go": ("Alpha",)}


def test_no_character_is_cut() -> None:
    text = "".join(f'    greeting_{n} = "你好, 世界 é", translate({n})\n' for n in range(40)).encode()
    names = tuple((found.start(), "translate") for found in re.finditer(b"translate", text))
    source = Source("one.py", "python", text, names=names)
    for seed in range(40):
        for mask in masking.draw([source], 4, seed):
            assert text[mask.start : mask.end].decode() == mask.text


def test_lines_that_stand_elsewhere_too_are_told(made: Made) -> None:
    everything = "\n".join(
        (made.copy.root / path).read_text(encoding="utf-8") for path in sorted(made.copy.texts)
    )
    lines = [line.strip() for line in everything.split("\n")]
    single = [mask for mask in made.masks if mask.kind != "block"]
    assert {mask.copied for mask in single} == {True, False}
    assert all(mask.copied is (mask.lines in lines) for mask in single)


def shelf(made: Made, room: int) -> gathering.Shelf:
    reader = Reader(made.folder / DATABASE)
    texts = {path: (made.copy.root / path).read_text(encoding="utf-8") for path in made.copy.texts}
    return gathering.Shelf(made.by_path, texts, reader.outlines, lambda text: len(text.split()), room)


def test_the_ring_holds_chunks_of_visited_files(made: Made) -> None:
    mask = next(m for m in made.masks if m.path == "two.py")
    wide = gathering.ring(shelf(made, 10_000), mask, 1)
    assert wide == gathering.ring(shelf(made, 10_000), mask, 1)
    assert 2 <= len(wide) <= gathering.CHUNKS
    assert all(3 <= len(extra["text"].splitlines()) <= gathering.CHUNK for extra in wide)
    assert "shapes.py" in {extra["filename"] for extra in wide}
    with Reader(made.folder / DATABASE) as reader:
        assert "odd.py" in {edge.path for edge in reader.edges("two.py")}, (
            "imported, and no text of it is known"
        )
    narrow = gathering.ring(shelf(made, 150), mask, 1)
    assert narrow == wide[len(wide) - len(narrow) :]
    assert sum(len(extra["text"].split()) for extra in narrow) <= 150


def test_full_text_and_outlines_are_of_the_same_files(made: Made) -> None:
    mask = next(m for m in made.masks if m.path == "one.py")
    whole = gathering.fulltext(shelf(made, 10_000), mask, 1)
    assert [extra["filename"] for extra in whole] == ["shapes.py"]
    assert whole[0]["text"] == (made.copy.root / "shapes.py").read_text(encoding="utf-8")
    outlines = gathering.outlined(shelf(made, 10_000), mask, 1)
    assert [extra["filename"] for extra in outlines] == ["shapes.py"]
    assert len(outlines[0]["text"]) < len(whole[0]["text"])
    cut = gathering.fulltext(shelf(made, 30), mask, 1)[0]["text"]
    assert gathering.outlined(shelf(made, 150), mask, 1)
    for variant in (gathering.ring, gathering.fulltext, gathering.outlined):
        for room in range(20, 200):
            sent = tuple(Extra(**extra) for extra in variant(shelf(made, room), mask, 1))
            assert fitting(sent, room, lambda text: bytes(4 * len(text.split()))) == sent, "all is shown"
    assert whole[0]["text"].startswith(cut)
    assert cut.endswith("\n")
    assert len(cut.split()) <= 30


def test_a_checkout_is_named_by_its_commit(tmp_path: Path) -> None:
    root = repository.write(tmp_path / "checkout")
    assert survey.commit(root) == ""
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=root, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True)
    assert survey.commit(root) == head.stdout.strip()[:12]
    (root / "one.py").write_text("x = 1\n", encoding="utf-8")
    assert survey.commit(root).endswith(" with changes")


def answer(text: str, stop: str = "line") -> ours.Answer:
    return ours.Answer(text, 5, 20, prompt=50, evaluated=50, stop=stop)


BLOCK = Mask("a.py", "block", 0, 1, 0, "x = 1\n    y = 2", "x = 1\ny = 2", ())
LINE = dataclasses.replace(BLOCK, kind="line", text="x = 1")


@pytest.mark.parametrize(
    ("mask", "text", "exact"),
    [
        (BLOCK, "x = 1\n\n    y = 2  \n", True),
        (BLOCK, "x = 1", False),
        (BLOCK, "x = 1\n  y = 2", False),
        (LINE, "\n  x = 1 \nmore", True),
        (LINE, "x = 2", False),
    ],
)
def test_a_block_must_match_whole_a_line_its_first_line(mask: Mask, text: str, exact: bool) -> None:
    row = judge(mask, answer(text))
    assert row["exact"] is exact
    assert (row["similarity"] == 1.0) is exact
    assert (row["tokens"], row["ms"]) == (50, 20)


def test_an_engine_that_failed_is_no_wrong_answer() -> None:
    with pytest.raises(EngineFailed, match=r"a\.py:1"):
        judge(LINE, answer("", "engine"))


def test_figures_of_groups_and_pairs() -> None:
    masks = [
        dataclasses.replace(LINE, start=n, cross=("A",) if n < 4 else (), copied=n % 2 == 0)
        for n in range(10)
    ]
    solved = {"none": {0, 9}, "ring": {0, 1, 9}, "tiers": {0, 1, 2, 3, 9}}
    rows = {
        name: [{"exact": n in hits, "similarity": 0.5, "tokens": 10, "ms": 2.0} for n in range(10)]
        for name, hits in solved.items()
    }
    found = contrast.figures(masks, rows)
    assert (found["n"], found["n_cross"], found["n_copy"], found["n_unique"]) == (10, 4, 5, 5)
    assert (found["em_tiers"], found["em_cross_tiers"], found["em_local_none"]) == (0.5, 1.0, 1 / 6)
    assert (found["tokens_ring"], found["ms_ring"], found["es_ring"]) == (10, 2, 0.5)
    assert found["em_gain_tiers_over_none"] == pytest.approx(0.3)
    assert found["em_gain_low_tiers_over_none"] <= 0.3
    assert found["p_cross_tiers_over_ring"] == 0.5
    assert [made.row_count for made in contrast.tables(masks, rows, found)] == [3, 3, 6]


def test_intervals_and_tests_of_pairs() -> None:
    low, high = stats.bootstrap([0.0] * 50 + [1.0] * 50)
    assert 0.38 < low < 0.5 < high < 0.62
    assert stats.bootstrap([1.0, 0.0, 1.0]) == stats.bootstrap([1.0, 0.0, 1.0])
    assert stats.mcnemar(0, 0) == 1.0
    assert stats.mcnemar(8, 0) == pytest.approx(2 / 256)
    assert stats.mcnemar(3, 5) == stats.mcnemar(5, 3)
