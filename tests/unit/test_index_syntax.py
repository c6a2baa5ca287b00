"""Parsing under budgets, hostile shapes, incremental edits, and the registry of languages."""

import contextlib
import time
from pathlib import Path

import msgspec
import pytest

from indexer.errors import NestingTooDeep, ParseBudgetExceeded
from indexer.languages import registry
from indexer.parse import extract, parse_file
from indexer.syntax import Edit, Limits, captures, check_depth, parse, path_at

NAMES = registry.all_names()
MINE = ("c", "cpp", "go", "java", "javascript", "python", "rust", "tsx", "typescript")
HOSTILE = {
    "open": b"(" * 100_000,
    "nested": b"x=" + b"[" * 100_000 + b"]" * 100_000,
    "braces": b"{" * 100_000,
    "flat": b") ( " * 20_000,
    "unary": b"x = " + b"-" * 20_000 + b"1",
    "dots": b"a" + b".b" * 20_000,
    "line": b"x" * 1_000_000,
    "nul": b"\0" * 5_000,
    "all bytes": bytes(range(256)) * 50,
    "not utf-8": b"\xe9\xe8" * 2_000 + b"\nclass A: pass\n",
    "empty": b"",
}


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_shapes_end(name: str, shape: str) -> None:
    began = time.monotonic()
    with contextlib.suppress(ParseBudgetExceeded):
        parse_file(HOSTILE[shape], registry.get(name), 0.3)
    assert time.monotonic() - began < 20


def test_depth_is_refused_before_parsing() -> None:
    for source in (HOSTILE["open"], HOSTILE["nested"], HOSTILE["braces"]):
        with pytest.raises(NestingTooDeep):
            parse(source, registry.get("python"), 1.0)
    check_depth(b"()" * 5_000 + b"(" * 1_000)
    with pytest.raises(NestingTooDeep):
        check_depth(b"(" * 1_001)


def test_parse_budget_then_as_before() -> None:
    language = registry.get("python")
    with pytest.raises(ParseBudgetExceeded):
        parse(b"x = foo(1, 2)\n" * 200_000, language, 0.01)
    tree = parse(b"x = 1\n", language, 0.01)
    assert not tree.root_node.has_error


def test_query_budget() -> None:
    language = registry.get("python")
    tree = parse(b"x = (foo(1), 2)\n" * 60_000, language, 60.0)
    with pytest.raises(ParseBudgetExceeded):
        captures(tree.root_node, language.query(), Limits(budget_s=0.001))


def test_query_byte_range() -> None:
    language = registry.get("python")
    source = b"def a(): pass\ndef b(): pass\ndef c(): pass\n"
    tree = parse(source, language, 1.0)
    found = captures(tree.root_node, language.query(), Limits(start_byte=15, end_byte=20))
    assert [source[slice(*node.byte_range)] for node in found["name"]] == [b"b"]


def test_edited_tree_equals_a_fresh_one() -> None:
    language = registry.get("python")
    before = "def größe(): return 1\n\nclass B:\n    def c(self): pass\n".encode()
    at = before.index(b"    def c")
    new = b"    def d(self): pass\n"
    after = before[:at] + new + before[at:]
    old = parse(before, language, 1.0)
    edit = Edit(
        start_byte=at,
        old_end_byte=at,
        new_end_byte=at + len(new),
        start_point=(3, 0),
        old_end_point=(3, 0),
        new_end_point=(4, 0),
    )
    tree = parse(after, language, 1.0, old, [edit])
    assert extract(after, tree, language) == parse_file(after, language, 1.0)[0]
    assert [s.qualified for s in extract(before, old, language).symbols] == ["größe", "B", "B.c"]


def test_path_at() -> None:
    source = b"class A:\n    def b(self):\n        return call(1)\n"
    tree = parse(source, registry.get("python"), 1.0)
    kinds = [node.type for node in path_at(tree, source.index(b"call"))]
    assert kinds[0] == "module"
    assert kinds[-1] == "identifier"
    assert [k for k in kinds if k.endswith("definition")] == ["class_definition", "function_definition"]
    assert path_at(tree, len(source) + 10)


@pytest.mark.parametrize("name", NAMES)
def test_every_language_is_whole(name: str) -> None:
    language = registry.get(name)
    assert language.name == name
    assert language.query() is language.query()
    assert language.extensions
    assert language.facts.imports.style
    parse_file(b"", language, 5.0)


@pytest.mark.parametrize(
    ("path", "head", "name"),
    [
        ("a/b.PY", b"", "python"),
        ("SConstruct", b"", "python"),
        ("run", b"#!/usr/bin/env -S python3.11 -u\n", "python"),
        ("run", b"#!/usr/bin/node\n", "javascript"),
        ("a.tsx", b"", "tsx"),
        ("a.d.ts", b"", "typescript"),
        ("a.h", b"#ifndef A_H\nint f(void);\n", "c"),
        ("a.h", b"#pragma once\nnamespace a {\nclass B;\n}\n", "cpp"),
        ("a.xyz", b"", None),
        ("Makefile", b"all:\n", None),
        ("run", b"#!\n", None),
    ],
)
def test_language_for(path: str, head: bytes, name: str | None) -> None:
    found = registry.language_for(path, head)
    assert (found.name if found else None) == name


def test_unknown_fact_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError, match="speed"):
        msgspec.toml.decode(b'name = "x"\ngrammar = "x:y"\nspeed = 3\n', type=registry.Facts)


def test_adding_a_language_touches_its_folder_only() -> None:
    rooms = ("syntax.py", "parse.py", "definitions.py", "nesting.py", "docs.py", "imports.py")
    code = [(Path(registry.__file__).parent.parent / room).read_text(encoding="utf-8") for room in rooms]
    for name in MINE:
        folder = "typescript" if name == "tsx" else name
        assert (Path(registry.__file__).parent / folder / "facts.toml").is_file()
        assert not any(f'"{name}"' in text for text in code), name
