"""C#, Ruby, PHP, Kotlin, Scala, Swift, Bash and Lua: what is found in one real-looking sample of each.

The samples are tests/data/index/<language>.*; every symbol expected in one stands in <language>.expected.
"""

import time
from pathlib import Path
from typing import NamedTuple

import pytest

from indexer.languages import registry
from indexer.parse import extract, parse_file
from indexer.records import ParsedFile
from indexer.syntax import parse

SAMPLES = Path(__file__).resolve().parent.parent / "data" / "index"
FILES = {
    "c_sharp": "c_sharp.cs",
    "ruby": "ruby.rb",
    "php": "php.php",
    "kotlin": "kotlin.kt",
    "scala": "scala.scala",
    "swift": "swift.swift",
    "bash": "bash.sh",
    "lua": "lua.lua",
}
BUDGET_S = 10.0
LEAST_LINES_S = 10_000
"""A floor for a shared, busy machine; alone on a core each language does more than 45,000."""


class Ref(NamedTuple):
    """Line from 0, role, name, qualified name of the symbol around it."""

    line: int
    role: str
    name: str
    inside: str = ""


SIGNATURES = {
    "c_sharp": {
        "Lager.Bestand.ChangeHandler": (
            "public delegate void ChangeHandler<T>(object sender, T change) where T : struct",
            "Tells listeners about a change.",
        ),
        "Lager.Bestand.IStore": (
            "public interface IStore<in TKey, TValue> : IDisposable where TKey : notnull",
            "Stores articles by key.",
        ),
        "Lager.Bestand.Store.Store": ("public Store(string name) : base(name)", "Makes an empty store."),
        "Lager.Bestand.Store.MapAsync": (
            "internal async Task<List<TResult>> MapAsync<TResult>(Func<TValue, TResult> f)",
            "",
        ),
        "Lager.Bestand.Store.Naam": ("public string Naam", ""),
    },
    "ruby": {
        "Lager.MissingError": (
            "class MissingError < StandardError",
            "Raised when an article is missing.",
        ),
        "Lager.Store": ("class Store < Base::Repository", "Keeps articles by name."),
        "Lager.Point": ("Point = Struct.new(:x, :y)", ""),
        "Lager.Store.find": ("def find(key, fallback = nil)", "Finds one article."),
        "Lager.Store.build": ("def self.build(...)", ""),
        "Lager.Store.Node": ("class Node", ""),
    },
    "php": {
        "Lager": (
            "abstract class Lager extends Basis implements Speicherbar, \\IteratorAggregate",
            "Keeps articles by key.",
        ),
        "Lager.finde": (
            "public function finde(string|int $key, ?Artikel $fallback = null): ?Artikel",
            "Finds one article.",
        ),
        "starte": ("function starte(array &$argv, int ...$codes): int", "Starts it."),
    },
    "kotlin": {
        "Store": (
            "abstract class Store<K : Comparable<K>, out V>( private val name: String, protected var limit: "
            "Int = MAX_ITEMS, seed: Long, ) : Grund(name), Repository<K, V> where V : Any",
            "Keeps articles by key.",
        ),
        "Store.find": ("override fun find(key: K): V?", "Finds one article."),
        "Store.mapAll": ("suspend inline fun <reified R> mapAll(crossinline f: (V) -> R): List<R>", ""),
        "größe": ("var String.größe: Int", ""),
    },
    "scala": {
        "Speicherbar": ("sealed trait Speicherbar[+A] extends Serializable", "Can be stored."),
        "Store": (
            "abstract class Store[K <: Comparable[K], V](private val name: String, var limit: Int = 10)"
            "(implicit ec: ExecutionContext) extends Basis(name) with Repository[K, V]",
            "Keeps articles by key.",
        ),
        "Store.find": ("override def find(key: K): Option[V]", "Finds one article."),
        "Store.mapAll": ("def mapAll[R](f: V => R)(using ord: Ordering[R]): List[R]", ""),
    },
    "swift": {
        "maxItems": ("public let maxItems = 1_000", "Largest number of articles."),
        "Store": (
            "open class Store<Key: Hashable, Value>: Basis, Repository where Value: Codable",
            "Keeps articles by key.",
        ),
        "Store.find": ("override public func find(_ key: Key) -> Value?", "Finds one article."),
        "Store.mapAll": (
            "fileprivate func mapAll<R>(_ f: (Value) async throws -> R) async rethrows -> [R]",
            "",
        ),
        "Store.description": ("public var description: String", ""),
    },
    "bash": {
        "fail": ("fail()", "Prints a message and stops."),
        "prüfe_ort": ("function prüfe_ort", ""),
        "VERSION": ('readonly VERSION="1.2.0"', ""),
    },
    "lua": {
        "Store": ("Store = setmetatable({}, { __index = Basis })", "A store of articles."),
        "Store.new": ("function Store.new(name, ...)", "Makes an empty store."),
        "Store.find": ("function Store:find(key, fallback)", ""),
        "M.open": ("M.open = Store.öffne", "Old names."),
    },
}
"""Qualified name → signature and documentation of the first symbol called so."""

REFERENCES = {
    "c_sharp": [
        Ref(29, "attribute", "Serializable", "Lager.Bestand.Store"),
        Ref(30, "base", "Base", "Lager.Bestand.Store"),
        Ref(30, "base", "IStore", "Lager.Bestand.Store"),
        Ref(31, "type", "IComparable", "Lager.Bestand.Store"),
        Ref(45, "call", "ArgumentNullException", "Lager.Bestand.Store.Store"),
        Ref(50, "attribute", "MethodImpl", "Lager.Bestand.Store.Find"),
        Ref(60, "type", "Task", "Lager.Bestand.Store.MapAsync"),
        Ref(63, "call", "List", "Lager.Bestand.Store.MapAsync"),
        Ref(63, "call", "Zähle", "Lager.Bestand.Store.MapAsync"),
        Ref(81, "call", "CompareTo", "Lager.Bestand.Artikel.CompareTo"),
    ],
    "ruby": [
        Ref(10, "base", "StandardError", "Lager.MissingError"),
        Ref(24, "base", "Repository", "Lager.Store"),
        Ref(25, "base", "Countable", "Lager.Store"),
        Ref(45, "type", "Set", "Lager.Store.@items"),
        Ref(50, "type", "MissingError", "Lager.Store.find"),
        Ref(87, "call", "build", "main"),
        Ref(90, "call", "main"),
    ],
    "php": [
        Ref(8, "import", "prüfe"),
        Ref(29, "type", "LoggerInterface", "Protokolliert.logger"),
        Ref(33, "call", "info", "Protokolliert.log"),
        Ref(53, "attribute", "Entity", "Lager"),
        Ref(54, "base", "Basis", "Lager"),
        Ref(54, "base", "IteratorAggregate", "Lager"),
        Ref(56, "base", "Zählbar", "Lager"),
        Ref(75, "call", "NotFound", "Lager.finde"),
        Ref(99, "call", "öffne", "starte"),
        Ref(99, "type", "Lager", "starte"),
        Ref(99, "call", "strlen", "starte"),
    ],
    "kotlin": [
        Ref(0, "decorator", "JvmName"),
        Ref(6, "import", "Basis"),
        Ref(34, "decorator", "Serializable", "Store"),
        Ref(40, "base", "Grund", "Store"),
        Ref(40, "base", "Repository", "Store"),
        Ref(44, "call", "lazy", "Store.count"),
        Ref(64, "call", "max", "Store.mapAll.hilfe"),
        Ref(84, "base", "Repository", "Lager"),
        Ref(97, "call", "find", "main"),
    ],
    "scala": [
        Ref(2, "import", "mutable"),
        Ref(3, "import", "UUID"),
        Ref(13, "base", "Ordered", "Artikel"),
        Ref(20, "call", "Artikel", "Artikel.apply"),
        Ref(27, "decorator", "SerialVersionUID", "Store"),
        Ref(29, "base", "Basis", "Store"),
        Ref(43, "call", "max", "Store.find.hilfe"),
        Ref(60, "base", "Zustand", "Zustand.Neu"),
        Ref(74, "call", "compare", "starte"),
    ],
    "swift": [
        Ref(19, "base", "CaseIterable", "Zustand"),
        Ref(36, "decorator", "MainActor", "Store"),
        Ref(38, "base", "Basis", "Store"),
        Ref(39, "call", "Store", "Store.shared"),
        Ref(41, "decorator", "Published", "Store.zustand"),
        Ref(68, "call", "fallback", "Store.find"),
        Ref(84, "base", "CustomStringConvertible"),
        Ref(86, "call", "removeAll", "Store.räume"),
        Ref(99, "call", "find", "starte"),
    ],
    "bash": [
        Ref(23, "call", "fail", "prüfe_ort"),
        Ref(30, "call", "inner", "lager.öffne"),
        Ref(36, "call", "prüfe_ort", "main"),
        Ref(39, "call", "lager::öffne", "main"),
        Ref(47, "call", "prüfe_ort", "main"),
        Ref(52, "call", "main"),
    ],
    "lua": [
        Ref(29, "call", "max", "Store.find.hilfe"),
        Ref(31, "call", "hilfe", "Store.find"),
        Ref(35, "call", "find", "Store.räume"),
        Ref(40, "call", "new", "Store.öffne"),
        Ref(60, "call", "start", "starte"),
    ],
}

IMPORTS = {
    "c_sharp": [
        ("System", (), 0),
        ("System.Collections.Generic", (), 1),
        ("System.Text.Json", (), 2),
        ("System.Math", (), 3),
        ("System.Linq", (), 4),
    ],
    "ruby": [("set", (), 2), ("../lib/store", (), 3), ("lager/parser", (), 4)],
    "php": [
        ("Countable", (), 6),
        ("Psr\\Log", ("LoggerInterface", "NullLogger"), 7),
        ("Lager\\Werkzeug", ("prüfe",), 8),
        ("Lager\\Werkzeug", ("LIMIT",), 9),
        ("/bootstrap.php", (), 11),
        ("helpers.php", (), 12),
    ],
    "kotlin": [
        ("java.util.concurrent", ("ConcurrentHashMap",), 4),
        ("kotlin.math", ("*",), 5),
        ("lager.basis", ("Basis",), 6),
    ],
    "scala": [
        ("scala.collection", ("mutable",), 2),
        ("java.util", ("UUID", "List"), 3),
        ("lager.basis", ("_",), 4),
    ],
    "swift": [("Foundation", (), 0), ("LagerKern", (), 1), ("UIKit.UIView", (), 2)],
    "bash": [("/lib/common.sh", (), 4), ("./lager.env", (), 5)],
    "lua": [
        ("dkjson", (), 2),
        ("lager.basis", (), 3),
        ("lager.util", (), 4),
        ("lager.log", (), 4),
        ("strict", (), 5),
    ],
}


def read(language: str) -> tuple[bytes, ParsedFile]:
    source = (SAMPLES / FILES[language]).read_bytes()
    return source, parse_file(source, registry.get(language), BUDGET_S)[0]


@pytest.mark.parametrize("language", FILES)
def test_every_symbol_is_found_where_it_stands(language: str) -> None:
    source, parsed = read(language)
    rows = (SAMPLES / f"{language}.expected").read_text(encoding="utf-8").splitlines()
    expected = [row.split() for row in rows if not row.startswith("#")]
    found = []
    for symbol in parsed.symbols:
        span = symbol.span
        assert not source[span.start_byte : span.end_byte][-1:].isspace()
        lines = f"{span.start_line}-{span.end_line}"
        found.append([symbol.kind, symbol.qualified.replace(" ", "·"), lines, "-+"[symbol.exported]])
    assert found == expected
    assert len(parsed.symbols) == len(expected)
    assert parsed.errors == 0


@pytest.mark.parametrize("language", FILES)
def test_parents_enclose_and_names_are_exact(language: str) -> None:
    source, parsed = read(language)
    for symbol in parsed.symbols:
        name = source[symbol.name_start : symbol.name_end].decode().strip("`")
        assert name == symbol.name
        if symbol.parent >= 0:
            above = parsed.symbols[symbol.parent]
            assert symbol.qualified == f"{above.qualified}.{symbol.name}"


@pytest.mark.parametrize("language", FILES)
def test_signatures_and_documentation(language: str) -> None:
    _, parsed = read(language)
    for qualified, expected in SIGNATURES[language].items():
        symbol = next(s for s in parsed.symbols if s.qualified == qualified)
        assert (symbol.signature, symbol.doc) == expected


@pytest.mark.parametrize("language", FILES)
def test_references_know_their_role_and_place(language: str) -> None:
    source, parsed = read(language)
    found = set()
    for use in parsed.references:
        assert source[use.start_byte : use.end_byte].decode() == use.name
        inside = parsed.symbols[use.symbol].qualified if use.symbol >= 0 else ""
        found.add(Ref(use.line, use.role, use.name, inside))
    assert set(REFERENCES[language]) <= found


@pytest.mark.parametrize("language", FILES)
def test_imports(language: str) -> None:
    _, parsed = read(language)
    assert [(i.module, i.names, i.line) for i in parsed.imports] == IMPORTS[language]


@pytest.mark.parametrize("language", FILES)
def test_facts(language: str) -> None:
    facts = registry.get(language).facts
    assert registry.language_for(f"src/{FILES[language]}", b"") is registry.get(language)
    assert facts.line_comment in ("//", "#", "--")
    assert facts.block_words
    assert facts.test_patterns
    assert facts.imports.style != "none"
    assert facts.imports.candidates


@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("bin/run", b"#!/usr/bin/env bash\nset -e\n", "bash"),
        ("bin/run", b"#!/bin/sh\n", "bash"),
        ("bin/run", b"#!/usr/bin/env -S zsh -f\n", "bash"),
        ("bin/run", b"#!/usr/bin/ruby2.7\n", "ruby"),
        ("bin/run", b"#! /usr/bin/env php\n<?php\n", "php"),
        ("bin/run", b"#!/usr/bin/env lua5.4\n", "lua"),
        ("home/.bashrc", b"", "bash"),
        ("Rakefile", b"", "ruby"),
        ("build.gradle.kts", b"", "kotlin"),
        ("build.sbt", b"", "scala"),
        ("test/all.bats", b"", "bash"),
    ],
)
def test_files_without_a_telling_ending(path: str, head: bytes, language: str) -> None:
    found = registry.language_for(path, head)
    assert found is not None
    assert found.name == language


def repeatable(language: str) -> bytes:
    """The sample without what may stand only once in a file."""
    source = (SAMPLES / FILES[language]).read_bytes()
    first = {"c_sharp": b"namespace ", "php": b"const VERSION", "kotlin": b"/** Largest", "scala": b"/** Can"}
    body = source[source.index(first[language]) :] if language in first else source
    return body.removeprefix(b"#!/usr/bin/env lua\n").removesuffix(b"return M\n")


@pytest.mark.parametrize("language", FILES)
def test_long_files_stay_quick(language: str) -> None:
    part = repeatable(language)
    source = (b"<?php\n" if language == "php" else b"") + part * (4_000 // part.count(b"\n"))
    known = registry.get(language)
    known.query()
    began = time.process_time()
    parsed = extract(source, parse(source, known, BUDGET_S), known, BUDGET_S)
    spent = time.process_time() - began
    assert parsed.errors == 0
    assert source.count(b"\n") / spent > LEAST_LINES_S
