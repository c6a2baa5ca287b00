"""C#, Ruby, PHP, Kotlin, Scala, Swift, Bash and Lua: what is found in one real-looking sample of each.

The samples are tests/data/index/<language>.*; every symbol expected in one stands in <language>.expected.
"""

import time
from collections.abc import Callable

import pytest
from support.samples import BUDGET_S, FILES, SAMPLES, read

from indexer.languages import registry
from indexer.parse import extract, parse_file
from indexer.syntax import parse

GROWTH = 2.0
"""A file may take so many times as long as its lines in four shorter files: 4 would be the square."""
TIMES = 8.0
"""To extract may take so many times as long as to parse, of which each language does 2 to 4."""
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


def repeatable(language: str) -> bytes:
    """The sample without what may stand only once in a file."""
    source = (SAMPLES / FILES[language]).read_bytes()
    first = {"c_sharp": b"namespace ", "php": b"const VERSION", "kotlin": b"/** Largest", "scala": b"/** Can"}
    body = source[source.index(first[language]) :] if language in first else source
    return body.removeprefix(b"#!/usr/bin/env lua\n").removesuffix(b"return M\n")


def long(language: str, lines: int) -> bytes:
    """About so many lines of the sample, again and again."""
    part = repeatable(language)
    return (b"<?php\n" if language == "php" else b"") + part * (lines // part.count(b"\n"))


def ratio(work: Callable[[], object], control: Callable[[], object]) -> float:
    """How many times as long `work` takes as `control`, in the best of five rounds: whatever else the machine
    does slows both."""
    rounds = []
    for _ in range(5):
        spent = []
        for one in (work, control):
            began = time.thread_time()
            one()
            spent.append(time.thread_time() - began)
        rounds.append(spent[0] / spent[1])
    return min(rounds)


@pytest.mark.parametrize("language", FILES)
def test_long_files_stay_quick(language: str) -> None:
    known = registry.get(language)
    short, whole = long(language, 1_000), long(language, 4_000)
    tree = parse(whole, known, BUDGET_S)
    assert extract(whole, tree, known, BUDGET_S).errors == 0
    growth = ratio(
        lambda: parse_file(whole, known, BUDGET_S),
        lambda: [parse_file(short, known, BUDGET_S) for _ in "1234"],
    )
    assert growth < GROWTH
    parsing = ratio(lambda: extract(whole, tree, known, BUDGET_S), lambda: parse(whole, known, BUDGET_S))
    assert parsing < TIMES
