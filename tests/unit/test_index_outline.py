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
OUTLINES = Path(__file__).parent.parent / "data" / "outlines"
"""Each language's sample, and its outline exactly."""
EXACT = sorted(path.stem for path in OUTLINES.glob("*.source"))


def of(source: str | bytes, name: str) -> tuple[Outline, ...]:
    data = source.encode() if isinstance(source, str) else source
    language = registry.get(name)
    return outline(data, parse_file(data, language, 10)[0], language)


def tokens(text: str) -> int:
    """Pieces of the model's pre-tokenizer: never more than its tokens, and close to them for code."""
    return len(PIECES.findall(text))


def sound(text: str, name: str) -> bool:
    return not syntax.parse(text.encode(), registry.get(name), 10).root_node.has_error


def exact(name: str) -> tuple[str, str]:
    """A sample and its outline."""
    source, expected = (OUTLINES / f"{name}.{kind}" for kind in ("source", "outline"))
    return source.read_text(encoding="utf-8"), expected.read_text(encoding="utf-8")


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
    source, expected = exact(name)
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
    source, expected = exact("python")
    data = source.encode()
    parsed = parse_file(data, registry.get("python"), 10)[0]
    own = [o for o in outline(data, parsed, registry.get("python")) if o.symbol >= 0]
    assert [parsed.symbols[o.symbol].name for o in own] == ["Order"]
    assert own[0].text in expected


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
    source, _ = exact("python")
    lf, crlf = of(source, "python"), of(source.replace("\n", "\r\n"), "python")
    assert [o.text for o in lf] == [o.text for o in crlf]


def test_unknown_language_has_no_outline() -> None:
    language = msgspec.structs.replace(registry.get("python"), name="unheard")
    assert outline(b"x = 1", ParsedFile(language="unheard"), language) == ()
