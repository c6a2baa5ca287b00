"""Symbols, references and imports: against Python's own parser, and against hand-checked samples."""

import ast
import json
import random
import sysconfig
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.docs import Comments, docstring, first_sentence
from indexer.imports import expand
from indexer.languages import registry
from indexer.parse import extract, parse_file
from indexer.records import ParsedFile
from indexer.syntax import parse

SAMPLES = Path(__file__).resolve().parent.parent / "data" / "index"
CHECKED = sorted(path.name.removesuffix(".json") for path in SAMPLES.glob("*.json"))
STDLIB = Path(sysconfig.get_path("stdlib"))
BUDGET_S = 20.0
Row = tuple[str, str, int, int, int, int]

DIFFERENT = {"test/test_compile.py"}
"""The grammar does not know a line break after the dot of `(a.⏎b)` when the next line is indented less."""


def read(name: str) -> tuple[bytes, ParsedFile]:
    source = (SAMPLES / name).read_bytes()
    language = registry.language_for(name, source[: registry.HEAD])
    assert language is not None
    return source, parse_file(source, language, BUDGET_S)[0]


def oracle(source: bytes) -> set[Row]:
    """Functions and classes as Python's ast has them: kind, qualified name, bytes, lines."""
    begins = [0, *(at + 1 for at, byte in enumerate(source) if byte == ord("\n"))]
    rows: set[Row] = set()

    def place(node: ast.AST) -> int:
        return begins[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def walk(node: ast.AST, front: str, in_class: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                walk(child, front, in_class)
                continue
            decorators = [place(d) for d in child.decorator_list]
            start = source.rindex(b"@", 0, min(decorators)) if decorators else place(child)
            assert child.end_lineno is not None
            assert child.end_col_offset is not None
            end = begins[child.end_lineno - 1] + child.end_col_offset
            is_class = isinstance(child, ast.ClassDef)
            kind = "class" if is_class else "method" if in_class else "function"
            name = f"{front}{child.name}"
            rows.add((kind, name, start, end, source.count(b"\n", 0, start), child.end_lineno))
            walk(child, f"{name}.", is_class)

    walk(ast.parse(source), "", False)
    return rows


def found(parsed: ParsedFile) -> set[Row]:
    return {
        (
            "method" if s.kind == "constructor" else s.kind,
            unicodedata.normalize("NFKC", s.qualified),
            s.span.start_byte,
            s.span.end_byte,
            s.span.start_line,
            s.span.end_line,
        )
        for s in parsed.symbols
        if s.kind in ("class", "function", "method", "constructor")
    }


def stdlib_sample(count: int) -> Iterator[Path]:
    files = [p for p in STDLIB.rglob("*.py") if not {"site-packages", "lib2to3"} & set(p.parts)]
    files.sort()
    random.Random(20).shuffle(files)
    yield from files[:count]


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_python_equals_ast() -> None:
    checked = 0
    for path in stdlib_sample(60):
        source = path.read_bytes().replace(b"\r\n", b"\n")
        try:
            source.decode("utf-8")
            expected = oracle(source)
        except (SyntaxError, ValueError):
            continue
        if path.relative_to(STDLIB).as_posix() in DIFFERENT:
            continue
        parsed, _ = parse_file(source, registry.get("python"), BUDGET_S)
        assert found(parsed) == expected, path
        checked += 1
    assert checked >= 50


@pytest.mark.parametrize("name", CHECKED)
def test_samples(name: str) -> None:
    _, parsed = read(name)
    expected = json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    symbols = [
        [
            s.kind,
            s.qualified,
            s.span.start_line + 1,
            s.span.end_line,
            "-+"[s.exported],
            s.signature,
            s.doc,
        ]
        for s in parsed.symbols
    ]
    assert symbols == expected["symbols"]
    imports = [[i.line + 1, i.level, i.module, list(i.names)] for i in parsed.imports]
    assert imports == expected["imports"]
    references: dict[str, set[str]] = {}
    for reference in parsed.references:
        references.setdefault(reference.role, set()).add(reference.name)
    assert {role: sorted(names) for role, names in references.items()} == expected["references"]
    assert parsed.errors == 0


@pytest.mark.parametrize("name", CHECKED)
def test_ranges_slice_to_names(name: str) -> None:
    source, parsed = read(name)
    assert not source.isascii() or name in ("client.ts", "server.go")
    for symbol in parsed.symbols:
        assert source[symbol.name_start : symbol.name_end].decode() == symbol.name
        assert symbol.span.start_byte <= symbol.name_start < symbol.name_end <= symbol.span.end_byte
        assert symbol.span.start_line == source.count(b"\n", 0, symbol.span.start_byte)
    for reference in parsed.references:
        assert source[reference.start_byte : reference.end_byte].decode() == reference.name
        assert reference.line == source.count(b"\n", 0, reference.start_byte)


@pytest.mark.parametrize("name", CHECKED)
def test_parents_come_first_and_qualify(name: str) -> None:
    _, parsed = read(name)
    for index, symbol in enumerate(parsed.symbols):
        assert -1 <= symbol.parent < index
        if symbol.parent >= 0:
            assert symbol.qualified.startswith(parsed.symbols[symbol.parent].qualified + ".")
    assert all(-1 <= reference.symbol < len(parsed.symbols) for reference in parsed.references)


def test_enough_checked_symbols() -> None:
    counts = dict.fromkeys((".ts", ".go"), 0)
    for name in CHECKED:
        suffix = Path(name).suffix.replace(".tsx", ".ts")
        if suffix in counts:
            expected = json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
            counts[suffix] += len(expected["symbols"])
    assert min(counts.values()) >= 200


def test_references_know_their_symbol() -> None:
    _, parsed = read("python.py")
    places = {
        (r.name, parsed.symbols[r.symbol].qualified if r.symbol >= 0 else "") for r in parsed.references
    }
    assert ("lies", "Order.öffne") in places
    assert ("to_thread", "Order.öffne.lies") in places
    assert ("lru_cache", "Order.öffne") in places
    assert ("Iterable", "") in places


def test_line_ends_change_nothing() -> None:
    source, parsed = read("python.py")
    twin, _ = parse_file(source.replace(b"\n", b"\r\n"), registry.get("python"), BUDGET_S)
    assert [(s.kind, s.qualified, s.signature, s.doc) for s in twin.symbols] == [
        (s.kind, s.qualified, s.signature, s.doc) for s in parsed.symbols
    ]
    assert [s.span.end_line for s in twin.symbols] == [s.span.end_line for s in parsed.symbols]


def test_broken_source_keeps_the_rest() -> None:
    parsed, _ = parse_file(
        b"def a(:\n    pass\n\nclass B:\n    def c(self): pass\n", registry.get("python"), 5.0
    )
    assert {"B", "B.c"} <= {s.qualified for s in parsed.symbols}
    assert parsed.errors > 0


def test_tree_expansion() -> None:
    assert expand("a::{b, c::{d as e, self}, f::*}", "::") == [
        ("a", ("b", "c")),
        ("a::c", ("d",)),
        ("a::f", ("*",)),
    ]
    assert expand("x", "::") == [("", ("x",))]
    assert len(expand("a::{" * 500 + "b" + "}" * 500, "::")) == 1


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["It works, e.g. here. More."], "It works, e.g. here."),
        (["", "Two", "lines.", "", "Other."], "Two lines."),
        (["-----", "See {@link Foo} now"], "See Foo now"),
        (["@param x what"], ""),
        (["Vollständig。Mehr"], "Vollständig。"),
        (["x" * 500], "x" * 200),
    ],
)
def test_first_sentence(rows: list[str], sentence: str) -> None:
    assert first_sentence(rows) == sentence


def test_docstring_quotes() -> None:
    assert docstring(b'r"""\n  A b.\n\n  C."""') == "A b."
    assert docstring(b"'x'") == "x"


def test_speed() -> None:
    """A floor for a shared, busy machine; alone on a core more than 100,000 lines/s are seen."""
    language = registry.get("python")
    source = (STDLIB / "argparse.py").read_bytes()
    best = 0.0
    for _ in range(5):
        began = time.thread_time()
        extract(source, parse(source, language, BUDGET_S), language, BUDGET_S)
        best = max(best, source.count(b"\n") / (time.thread_time() - began))
    assert best > 20_000


def test_a_comment_of_white_space_ends_the_search_for_documentation() -> None:
    source = b"\n   class A: pass\n"
    assert Comments(source, [0, 17], [(1, 3)], []).above(4) == (4, "")
    assert Comments(source, [0, 17], [], [(1, 3)]).above(4) == (4, "")
