"""Outlines: exact text for the main languages, no error node in any, bounded, far smaller than the source."""

import ast
import statistics
import sysconfig
from pathlib import Path

import msgspec
import pytest
import regex

from indexer import outline as outlines
from indexer import render, syntax
from indexer.languages import registry
from indexer.outline import outline
from indexer.parse import parse_file
from indexer.records import Outline, ParsedFile, Symbol
from indexer.tokens import PATTERNS

SAMPLES = Path(__file__).parent.parent / "data" / "index"
STDLIB = Path(sysconfig.get_paths()["stdlib"])
PIECES = regex.compile(PATTERNS["qwen2"])


def of(source: str | bytes, name: str) -> tuple[Outline, ...]:
    data = source.encode() if isinstance(source, str) else source
    language = registry.get(name)
    return outline(data, parse_file(data, language, 10)[0], language)


def tokens(text: str) -> int:
    """Pieces of the model's pre-tokenizer: never more than its tokens, and close to them for code."""
    return len(PIECES.findall(text))


def sound(text: str, name: str) -> bool:
    return not syntax.parse(text.encode(), registry.get(name), 10).root_node.has_error


PYTHON = '''"""Keeps orders. More text."""
import os
import re as r
from dataclasses import dataclass, field

LIMIT: int = 10
__all__ = ["Order"]
TABLE = {
    "a": 1,
    "b": 2,
}

@dataclass(frozen=True)
class Order(Base, metaclass=Meta):
    """An order.

    Long text.
    """

    key: str
    items: list[str] = field(default_factory=list)

    def __init__(self, key: str, *, größe: int = 3) -> None:
        self.key = key

        def nested():
            pass

    @property
    def total(self) -> float:
        """Sum of all items."""
        return 0.0

    @staticmethod
    @cache
    def load(path: str) -> "Order": ...

    @overload
    async def save(self, to: str) -> None: ...

def main(argv: list[str]) -> int:
    class Local:
        pass
    return 0
'''
PYTHON_OUTLINE = '''"""Keeps orders."""
import os, re
from dataclasses import dataclass, field
LIMIT: int = 10
TABLE = ...
@dataclass(frozen=True)
class Order(Base, metaclass=Meta):
    """An order."""
    key: str
    items: list[str] = field(default_factory=list)
    def __init__(self, key: str, *, größe: int = 3) -> None: ...
    @property
    def total(self) -> float: """Sum of all items."""
    @staticmethod
    def load(path: str) -> "Order": ...
    @overload
    async def save(self, to: str) -> None: ...
def main(argv: list[str]) -> int: ...
'''
TYPESCRIPT = """import { A, B as C } from "./a";
/** A shape. And more. */
export abstract class Shape<T> extends Base<T> implements Named {
  static count = 0;
  constructor(private readonly name: string, public size = 1) { super(); }
  get area(): number { return 1; }
  scale(by: number): this { function inner() {} return this; }
  protected abstract draw(on: Canvas): void;
}
export interface Named { name: string; rename(to: string): void; }
export type Handler<T> = (event: T) => void;
export const make = <T>(kind: string): Shape<T> => { return null!; };
export function area(shape: Shape<unknown>): number { return shape.area; }
"""
TYPESCRIPT_OUTLINE = """import { A, B } from "./a";
// A shape.
export abstract class Shape<T> extends Base<T> implements Named {
  static count = 0;
  constructor(private readonly name: string, public size = 1);
  get area(): number;
  scale(by: number): this;
  protected abstract draw(on: Canvas): void;
}
export interface Named {
  name: string;
  rename(to: string): void;
}
export type Handler<T> = (event: T) => void;
export const make = <T>(kind: string): Shape<T> => {}
export function area(shape: Shape<unknown>): number;
"""
GO = """// Package shop sells things. Really.
package shop

import (
\t"context"
\tlog "log/slog"
)

const Limit = 10

// Store keeps orders.
type Store struct {
\tName string
\tsize int
}

type Finder interface {
\tFind(ctx context.Context, key string) (*Order, error)
}

// Find returns one order.
func (s *Store) Find(ctx context.Context, key string) (*Order, error) {
\treturn nil, nil
}

func Map[K comparable, V any](m map[K]V) []K { return nil }
"""
GO_OUTLINE = """// Package shop sells things.
package shop
import "context"
import "log/slog"
const Limit = 10
// Store keeps orders.
type Store struct {
\tName string
\tsize int
}
// Find returns one order.
func (s *Store) Find(ctx context.Context, key string) (*Order, error)
type Finder interface {
\tFind(ctx context.Context, key string) (*Order, error)
}
func Map[K comparable, V any](m map[K]V) []K
"""
RUST = """//! Orders. All of them.
use std::collections::{HashMap, HashSet};

pub const LIMIT: usize = 10;

/// A store.
pub struct Store<T> {
    pub name: String,
    items: Vec<T>,
}

pub enum State { New, Old(u32) }

pub trait Find {
    fn find(&self, key: &str) -> Option<u32>;
}

impl<T> Store<T> {
    /// Makes one.
    pub fn new(name: &str) -> Self { fn inner() {} todo!() }
}

impl Find for Foreign {
    fn find(&self, key: &str) -> Option<u32> { None }
}
"""
RUST_OUTLINE = """// Orders.
use std::collections::{HashMap, HashSet};
pub const LIMIT: usize = 10;
// A store.
pub struct Store<T> {
    pub name: String,
    items: Vec<T>,
}
impl Store {
    // Makes one.
    pub fn new(name: &str) -> Self;
}
pub enum State {
    New, Old(u32),
}
pub trait Find {
    fn find(&self, key: &str) -> Option<u32>;
}
impl Foreign {
    fn find(&self, key: &str) -> Option<u32>;
}
"""
JAVA = """package shop.orders;
import java.util.List;
/** Keeps orders. Long. */
public class Store<T extends Order> extends Base implements Finder {
    private static final int LIMIT = 10;
    public Store(String name) { super(name); }
    @Override
    public <K> List<T> find(K key, int... more) throws IOException { return null; }
    enum State { NEW, OLD; boolean done() { return this == OLD; } }
    interface Finder { int SIZE = 1; void close(); }
}
"""
JAVA_OUTLINE = """package shop.orders;
import java.util.List;
// Keeps orders.
public class Store<T extends Order> extends Base implements Finder {
    private static final int LIMIT = 10;
    public Store(String name) {}
    public <K> List<T> find(K key, int... more) throws IOException;
    enum State {
        NEW, OLD;
        boolean done();
    }
    interface Finder {
        int SIZE = 1;
        void close();
    }
}
"""
C = """#include <stdio.h>
#include "pair.h"
#ifndef PAIR_H
#define PAIR_H
#define LIMIT 10
/* A pair. Of things. */
typedef struct { int a; char *b[3]; } Pair;
typedef struct node { struct node *next; } Node, *NodePtr;
enum color { RED, GREEN = 2 };
enum { LOOSE };
typedef int (*callback)(void *data, int n);
extern int counter;
static inline Node *find(Node *n, const char *key) { return n; }
#endif
"""
C_OUTLINE = """#include "stdio.h"
#include "pair.h"
#define LIMIT 10
// A pair.
typedef struct Pair {
    int a;
    char *b[3];
} Pair;
typedef struct node {
    struct node *next;
} Node, *NodePtr;
enum color {
    RED, GREEN = 2,
};
enum { LOOSE };
typedef int (*callback)(void *data, int n);
extern int counter;
static inline Node *find(Node *n, const char *key);
"""
CPP = """#include <map>
namespace shop {
/// Keeps orders.
template <typename K, class V = int> class Store : public Base<K> {
public:
    Store() = default;
    explicit Store(int n) : n_(n) {}
    virtual V find(const K& key) const noexcept = 0;
    bool operator==(const Store&) const;
    static constexpr int kMax = 10;
    using value_type = V;
    enum class State : int { New, Old };
private:
    int n_ = 0;
};
void run(int a = 3);
}
shop::Other::Other(int x) : y(x) {}
"""
CPP_OUTLINE = """#include "map"
namespace shop {
    // Keeps orders.
    template <typename K, class V = int> class Store : public Base<K> {
        Store() = default;
        explicit Store(int n) {}
        virtual V find(const K& key) const noexcept = 0;
        bool operator==(const Store&) const;
        static constexpr int kMax = 10;
        using value_type = V;
        enum class State : int {
            New, Old,
        };
        int n_ = 0;
    };
    void run(int a = 3);
}
shop::Other::Other(int x) {}
"""
JAVASCRIPT = """import { a } from "./a.js";
/** A shape. */
export class Shape extends Base {
  #size = 1;
  constructor(name) { super(); function inner() {} }
  get area() { return 1; }
  static async load(path, { strict = true } = {}) { return null; }
}
export const area = (shape) => { return shape.area; };
exports.run = function (argv) { return 0; };
"""
JAVASCRIPT_OUTLINE = """import { a } from "./a.js";
// A shape.
export class Shape extends Base {
  #size = 1;
  constructor(name) {}
  get area() {}
  static async load(path, { strict = true } = {}) {}
}
export const area = (shape) => {}
exports.run = function (argv) {}
"""
EXACT = {
    "c": (C, C_OUTLINE),
    "cpp": (CPP, CPP_OUTLINE),
    "javascript": (JAVASCRIPT, JAVASCRIPT_OUTLINE),
    "python": (PYTHON, PYTHON_OUTLINE),
    "typescript": (TYPESCRIPT, TYPESCRIPT_OUTLINE),
    "go": (GO, GO_OUTLINE),
    "rust": (RUST, RUST_OUTLINE),
    "java": (JAVA, JAVA_OUTLINE),
}


@pytest.fixture(autouse=True)
def _roomy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small samples are shown in full where a test asks for it."""
    if "roomy" in request.fixturenames:
        monkeypatch.setattr(outlines, "FLOOR", 100_000)
        monkeypatch.setattr(outlines, "LEAN", 100_000)
        monkeypatch.setattr(outlines, "FILE_CAP", 100_000)
        monkeypatch.setattr(outlines, "TYPE_CAP", 100_000)


@pytest.fixture
def roomy() -> None:
    """See _roomy."""


@pytest.mark.usefixtures("roomy")
@pytest.mark.parametrize("name", EXACT)
def test_exact_text(name: str) -> None:
    source, expected = EXACT[name]
    found = of(source, name)
    assert found[0].symbol == -1
    assert found[0].text == expected
    assert sound(expected, name)
    assert found == of(source, name)


@pytest.mark.usefixtures("roomy")
@pytest.mark.parametrize("name", registry.all_names())
def test_every_language_has_sound_outlines(name: str) -> None:
    assert name in render.styles()
    files = [f for f in SAMPLES.rglob("*") if f.is_file() and _language(f) == name]
    for file in files:
        data = file.read_bytes()
        language = registry.get(name)
        parsed = parse_file(data, language, 10)[0]
        found = outline(data, parsed, language)
        assert found
        assert all(sound(one.text, name) for one in found), file.name
        public = [
            s
            for s in parsed.symbols
            # an include guard says nothing
            if s.exported and s.parent < 0 and s.name.isidentifier() and not _guards(s, data)
        ]
        shown = [s for s in public if s.name in found[0].text]
        assert len(shown) >= 0.9 * len(public), {s.name for s in public} - {s.name for s in shown}


def _guards(symbol: Symbol, data: bytes) -> bool:
    return symbol.kind == "macro" and f"#ifndef {symbol.name}\n".encode() in data


def _language(file: Path) -> str:
    language = registry.language_for(file.name, file.read_bytes())
    return language.name if language else ""


def test_every_sixteen_languages_have_a_style() -> None:
    assert set(registry.all_names()) == set(render.styles())
    assert len(render.styles()) >= 16


@pytest.mark.usefixtures("roomy")
def test_types_have_their_own_outline() -> None:
    data = PYTHON.encode()
    parsed = parse_file(data, registry.get("python"), 10)[0]
    own = [o for o in outline(data, parsed, registry.get("python")) if o.symbol >= 0]
    assert [parsed.symbols[o.symbol].name for o in own] == ["Order"]
    assert own[0].text in PYTHON_OUTLINE


def test_a_huge_type_is_bounded() -> None:
    methods = "\n".join(
        f"    def method_{i}(self, value_{i}: int, other: str = 'x') -> dict[str, int]: ...\n"
        for i in range(3000)
    )
    found = of(f"class Huge:\n{methods}", "python")
    assert len(found) == 2
    for one in found:
        assert len(one.text) < 12_000
        assert "more" in one.text
        assert sound(one.text, "python")


def test_interface_heavy_file_takes_a_fifth() -> None:
    """500 lines, nearly all of them declarations with comments, as in a typed API."""
    parts = [
        f"/**\n * Describes resource number {i} of the service, with all that can be asked of it.\n */\n"
        f"export interface Resource{i} extends Entity<string> {{\n"
        f"  /** Name shown to users. */\n  readonly displayName{i}: string;\n"
        f"  /** Loads the resource, or fails when it is gone. */\n"
        f"  load{i}(id: string, options?: LoadOptions): Promise<Resource{i}>;\n}}\n"
        for i in range(50)
    ]
    source = "\n".join(parts)
    assert 450 <= source.count("\n") <= 550
    text = of(source, "typescript")[0].text
    assert tokens(text) <= 0.2 * tokens(source)
    assert text.count("interface") >= 5


def test_standard_library() -> None:
    """Class-heavy files: median saved, and no error node in any outline."""
    files = sorted(STDLIB.glob("*.py"), key=lambda f: (-f.read_bytes().count(b"\n    def "), f.name))[:40]
    saved = []
    for file in files:
        data = file.read_bytes()
        found = of(data, "python")
        for one in found:
            ast.parse(one.text)
        saved.append(1 - tokens(found[0].text) / tokens(data.decode()))
        assert sound(found[0].text, "python")
    assert statistics.median(saved) >= 0.8
    assert min(saved) >= 0.75


@pytest.mark.parametrize(
    ("signature", "start", "cut_off", "expected"),
    [
        ("def f(" + "a, " * 60 + "b) -> int", 4, False, "def f(" + "a, " * 47 + "a) -> int"),
        ("def f(x: dict[str, " + "a, " * 60, 4, True, "def f(x: dict[str, " + "a, " * 43 + "a])"),
        ("f(" + "aa" * 200, 0, True, ""),
        ("f(" * 400, 0, True, ""),
        ("fn f<T>(a: Map<K, V>) -> Vec<T>", 3, False, "fn f<T>(a: Map<K, V>) -> Vec<T>"),
        ('f(a = "(,[", b', 0, True, 'f(a = "(,[")'),
        ("f(a < b, c)", 0, False, "f(a < b, c)"),
    ],
)
def test_long_heads_are_cut_where_they_still_parse(
    signature: str, start: int, cut_off: bool, expected: str
) -> None:
    assert render.shorten(signature, start, cut_off) == expected


def test_what_does_not_parse_is_left_out() -> None:
    source = b"class A:\n    def a(self): pass\n    def b(self): pass\n    def c(self): pass\n"
    language = registry.get("python")
    parsed = parse_file(source, language, 10)[0]
    broken = [msgspec.structs.replace(s, signature="def ((") if s.name == "b" else s for s in parsed.symbols]
    found = outline(source, msgspec.structs.replace(parsed, symbols=tuple(broken)), language)
    assert found[0].text == "class A:\n    def a(self): ...\n    def c(self): ...\n    # 1 more\n"


@pytest.mark.usefixtures("roomy")
def test_a_type_whose_head_does_not_parse_keeps_its_members() -> None:
    source = "namespace std VISIBLE(default)\n{\nclass A { public: int a; void f(); };\nvoid g();\n}\n"
    text = of(source, "cpp")[0].text
    assert sound(text, "cpp")
    assert "class A {" in text
    assert "void f();" in text


@pytest.mark.parametrize("name", registry.all_names())
@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"\n\n",
        b"\xff\xfe\x00",
        b"class class class {{{ ((( def def",
        b"}}}" * 500,
        "ä𝒳\r\n".encode() * 9,
    ],
)
def test_hostile_sources(name: str, source: bytes) -> None:
    assert all(sound(one.text, name) for one in of(source, name))


def test_crlf_equals_lf() -> None:
    lf, crlf = of(PYTHON, "python"), of(PYTHON.replace("\n", "\r\n"), "python")
    assert [o.text for o in lf] == [o.text for o in crlf]


def test_unknown_language_has_no_outline() -> None:
    language = msgspec.structs.replace(registry.get("python"), name="unheard")
    assert outline(b"x = 1", ParsedFile(language="unheard"), language) == ()
