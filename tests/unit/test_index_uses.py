"""C#, Ruby, PHP, Kotlin, Scala, Swift, Bash and Lua: references, imports, and what tells a language."""

from typing import NamedTuple

import pytest
from support.samples import FILES, read

from indexer.languages import registry


class Ref(NamedTuple):
    """Line from 0, role, name, qualified name of the symbol around it."""

    line: int
    role: str
    name: str
    inside: str = ""


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
