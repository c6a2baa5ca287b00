"""Each polish rule on its own."""

import msgspec
import pytest

from daemon.nouns import CompletionRequest
from daemon.polish import balance, trim
from daemon.polish.around import around, line_comment
from daemon.polish.brackets import open_quote, scan
from daemon.polish.control import CONTROL
from daemon.polish.lines import Above, Below


@pytest.mark.parametrize("mark", CONTROL)
def test_every_control_string_is_found_whole_and_in_part(mark: str) -> None:
    assert trim.control_at(f"a < b {mark}", 0, ("", "")) == 6
    assert trim.control_at(mark, 0, ("", f"x{mark}")) == -1
    for size in range(1, len(mark)):
        assert trim.control_partial("a " + mark[:size], 0) == 2
    assert trim.control_partial("a < b", 0) == 5


@pytest.mark.parametrize(
    ("head", "first", "unit", "text"),
    [
        ("x =", " 1", 4, " 1"),
        ("x = ", " 1", 4, "1"),
        ("x = ", "  ", 4, ""),
        ("name:     ", "   1", 4, "   1"),
        ("x = 1 ", " # one", 4, " # one"),
        ("", "    a", 4, "    a"),
        ("    ", " a", 4, "a"),
        ("    ", "    a", 4, "    a"),
        ("    ", "   a", 4, "a"),
        ("  ", "   a", 2, "  a"),
        ("   ", " a", 4, "a"),
        ("   ", "  a", 4, "  a"),
        ("\t", " a", 4, " a"),
    ],
)
def test_leading(head: str, first: str, unit: int, text: str) -> None:
    assert trim.leading(head, first, unit) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("return tot", "return "),
        ("a\nb c", "a"),
        ("\n  ab", "\n  "),
        ("a\nb\n", "a\nb"),
        ("foo(", "foo("),
        ("ab", ""),
    ],
)
def test_boundary(text: str, kept: str) -> None:
    assert trim.boundary(text) == kept


@pytest.mark.parametrize(
    ("text", "rest", "kept"),
    [
        ("a \n", "", "a"),
        ("not ", "x:", "not "),
        ("a, ", ")", "a,"),
        ("a ", " b", "a"),
        ("a\n    ", "b", "a\n    "),
        ("a\n", "  ", "a"),
        (" \n ", "b", ""),
    ],
)
def test_trailing(text: str, rest: str, kept: str) -> None:
    assert trim.trailing(text, rest) == kept


@pytest.mark.parametrize(
    ("text", "rest", "quote", "expected"),
    [
        ("i++)", ")", "", ("i++", 0)),
        ("foo(a)", ")", "", ("foo(a)", 0)),
        ("a", " )", "", ("a", 0)),
        ("a) b", " )", "", ("a) b", 2)),
        ('b")', '")', '"', ("b", 0)),
        ('a" + "b"', '"', '"', ('a" + "b', 0)),
        ("a]", ")", "", ("a]", 0)),
        ("x.", ".foo", "", ("x", 0)),
        ("items", "s", "", ("items", 0)),
        ("", ")", "", ("", 0)),
        ("a) -> b", ") -> int:", "", ("a", 0)),
    ],
)
def test_same_line(text: str, rest: str, quote: str, expected: tuple[str, int]) -> None:
    assert trim.same_line(text, rest, quote) == expected


@pytest.mark.parametrize(
    ("prefix", "suffix", "style"),
    [
        ("a\n\tb\n\tc\n", "", ("\t", 4)),
        ("a\n  b\n    c\n", "", (" ", 2)),
        ("a\n    b\n        c\n", "", (" ", 4)),
        ("", "\n    a\n", (" ", 4)),
        ("a\nb\n", "", ("", 4)),
        ("\ta\n  b\n", "", ("", 4)),
    ],
)
def test_indent_style(prefix: str, suffix: str, style: tuple[str, int]) -> None:
    assert trim.indent_style(prefix, suffix) == style


@pytest.mark.parametrize(
    ("line", "style", "expected"),
    [
        ("        a", ("\t", 4), "\t\ta"),
        ("  a", ("\t", 4), "\ta"),
        ("\t * a", ("\t", 4), "\t * a"),
        ("      a", ("\t", 4), "\t  a"),
        ("\t\ta", (" ", 2), "    a"),
        ("\ta", ("", 4), "\ta"),
        ("a\tb", (" ", 2), "a\tb"),
    ],
)
def test_reindent(line: str, style: tuple[str, int], expected: str) -> None:
    assert trim.reindent(line, style) == expected


def test_trivial_and_closing_lines() -> None:
    assert all(map(trim.trivial, ("}", "i++;", "  return", "[0, 0, 0, 0, 0],", "")))
    assert not trim.trivial("return total")
    assert all(map(trim.closer, ("}", "  end", "else:", "</div>", "});", '"""')))
    assert not any(map(trim.closer, ("} else {", "#", "{", "// ----", "")))


def test_fences() -> None:
    assert trim.fence("  ```python", "python", ("", ""))
    assert not trim.fence("```", "markdown", ("", ""))
    assert not trim.fence("```", "python", ("a\n```\n", ""))
    assert not trim.fence("x ```", "python", ("", ""))


def test_scan() -> None:
    assert scan("a), (b").closers == ((1, ")"),)
    assert scan("a), (b").unclosed == 1
    assert scan("')' it's)").closers == ((8, ")"),)
    assert scan('x")', '"').closers == ((1, '"'), (2, ")"))
    assert scan("x\\'y", "'") == scan("", "'")
    assert open_quote('f("a') == '"'
    assert open_quote("# don't") == ""
    assert open_quote('"a" + ') == ""


def test_below_waits_for_the_second_line_where_it_doubts() -> None:
    below = Below("", "", "\nfirst_line()\nsecond_line()\n")
    assert below.see(0, "first_line()", telling=False) is None
    assert below.pending == 0
    assert below.see(1, "second_line()", telling=True) == 0
    other = Below("", "", "\nfirst_line()\nsecond_line()\n")
    other.see(0, "first_line()", telling=False)
    assert other.see(1, "something_else()", telling=True) is None
    assert other.pending is None
    assert other.see(2, "first_line()", telling=True) == 2


def test_above_searches_only_what_a_model_can_see() -> None:
    far = "alpha_line()\nbeta_line()\ngamma_line()\n" + "filler_line = 1\n\n" * 3_000
    above = Above(far)
    assert [
        above.see(i, line, i == 0) for i, line in enumerate(("zero_line()", "alpha_line()", "beta_line()"))
    ] == [
        None,
        None,
        None,
    ]
    assert above.pending is None


@pytest.mark.parametrize(
    ("prefix", "suffix", "language", "closers", "wanted"),
    [
        ("f(", "\n", "python", ")", 0),
        ("f(", ")\n", "python", "", 0),
        ("f(a[", ")\n", "python", "]", 0),
        ("def f():\n    g(\n        a,\n        ", "\n    )\n", "python", "", 0),
        ("void f() {\n  if (a) {\n    b();\n  ", "\n}\n", "cpp", "}", 0),
        ("void f() {\n  ", "\n  }\n}\n", "cpp", "", 1),
        ("  ", "\n  }\n}\n", "cpp", "", 2),
        ("func f() {\n\ta(", "\n\nfunc g() {\n}\n", "go", ")}", 0),
        ("class A {\npublic:\n  int f() {\n    ", "\n  }\n};\n", "cpp", "", 0),
        ("int a() {\n}\n\nint f() {\n#if X\n  ", "\n#endif\n}\n", "c", "", 0),
        ("// it's {\nlet a = f('(', ", ");\n", "typescript", "", 0),
        ("fn f<'a>(x: &'a str, ", ") -> &'a str {\n}\n", "rust", "", 0),
        ("{(", ")\n", "typescript", "", 0),
        ("fn f() {\n  match a {\n    A(", "\n      b()\n    }\n  }\n}\n", "rust", ")", 1),
        ('void f() {\n  asm("=f"', "c));\n}\n", "cpp", "", 1),
        ("{([", "", "typescript", "])}", 0),
        ("x" * 30_000, "", "python", "", 0),
    ],
)
def test_around(prefix: str, suffix: str, language: str, closers: str, wanted: int) -> None:
    asked = CompletionRequest(id="1", client="t", door="t", prefix=prefix, suffix=suffix, language=language)
    found = around(asked)
    assert found is not None
    assert (found.closers, found.wanted) == (closers, wanted)


def test_a_definition_too_large_to_look_at_is_not_judged() -> None:
    long = "\n" + "    x = 1\n" * 5000
    for prefix, suffix in (("f(" + long, ""), ("f(", long)):
        asked = CompletionRequest(id="1", client="t", door="t", prefix=prefix, suffix=suffix)
        assert around(asked) is None
    assert line_comment(msgspec.structs.replace(asked, path="/x/a.rs")) == "//"
    assert line_comment(asked) == ""


@pytest.mark.parametrize(
    ("text", "tidy", "done"),
    [
        ("a()", "a()", "a()"),
        ("if (a) {", "if (a) {", "if (a) {"),
        ("if (a) {\n    b();", "if (a) {\n    b();", "if (a) {\n    b();\n  }"),
        ("each((x) => {\n    b();", "each((x) => {\n    b();", "each((x) => {\n    b();\n  })"),
        ("a();\n  if (b) {", "a();", "a();"),
        ("a();\n  f(b,\n    c,", "a();", "a();"),
        ("f(b,\n    c,", "f(b,\n    c,", "f(b,\n    c,"),
        (
            "if (a) {\n    for (;;) { // x\n      b();",
            "",
            "if (a) {\n    for (;;) { // x\n      b();\n    }\n  }",
        ),
        ("if (a) {\n    for (;;) {", "if (a) {", "if (a) {"),
    ],
)
def test_an_end_in_the_middle(text: str, tidy: str, done: str) -> None:
    assert balance.tidy_end(text, "", "//") == (tidy or text)
    assert balance.closed(tidy or text, "  ", 0, "", "//") == done
