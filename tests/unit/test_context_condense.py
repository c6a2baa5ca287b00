"""Long definitions and outlines, shortened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daemon.context.condense import brief, condense, named

PYTHON = '''@cached
def load(
    path: str,
    *,
    strict: bool = False,
) -> Config:
    """Read a configuration.

    More words.
    """
    log.info("reading %s", path)
    text = read(path)
    values = {}
    other = compute(
        1,
        2,
    )
    for line in text.split():
        key, value = line.split("=")
        noise = 1
        if strict and key in values:
            raise KeyError(key)
        values[key] = value
    return Config(values)
'''


def test_signature_documentation_control_flow_and_lines_with_names() -> None:
    text = condense(PYTHON.rstrip("\n").split("\n"), {"values"})
    assert (
        text
        == '''@cached
def load(
    path: str,
    *,
    strict: bool = False,
) -> Config:
    """Read a configuration.

    More words.
    """
    # ...
    values = {}
    # ...
    for line in text.split():
        # ...
        if strict and key in values:
            raise KeyError(key)
        values[key] = value
    return Config(values)'''
    )
    compile(text, "condensed", "exec")


def test_braces_stay_balanced() -> None:
    code = """func (s *Store) Load(path string) error {
	data := read(path)
	for _, row := range data {
		log(row)
		if row.ok {
			s.rows = append(s.rows, row)
		}
	}
	return nil
}"""
    text = condense(code.split("\n"), {"rows"}, "//")
    assert text.count("{") == text.count("}") == 3
    assert "log(row)" not in text
    assert "s.rows = append" in text
    assert "// ..." in text


@given(st.lists(st.text("ab ({[)]}:\n\t\"'#", max_size=12), max_size=40), st.sets(st.text("ab", min_size=1)))
def test_any_text_gives_no_more_lines(lines: list[str], names: set[str]) -> None:
    rows = "\n".join(lines).split("\n")
    text = condense(rows, names)
    assert text.count("\n") <= len(rows)
    assert condense(rows, names) == text


def test_an_outline_in_few_lines_keeps_what_the_file_uses() -> None:
    outline = "class A:\n" + "".join(
        f'    @property\n    def method{n}(self) -> int: """Number {n}."""\n' for n in range(30)
    )
    text = brief(outline, "x.method27()", 5)
    assert text.split("\n") == [
        "class A:",
        "    def method0(self) -> int: ...",
        "    def method1(self) -> int: ...",
        "    def method2(self) -> int: ...",
        "    def method27(self) -> int: ...",
        f"    # {', '.join(f'method{n}' for n in range(3, 27))}",
    ]


def test_what_a_short_outline_leaves_out_is_named_before_its_end() -> None:
    outline = "class A {\n  one(): void;\n  #two(): void;\n  _three(): void;\n  four(): void;\n}\n"
    assert brief(outline, "x.four()", 3, "//", also=["five", "one"]).split("\n") == [
        "class A {",
        "  four(): void;",
        "  // one, five",
        "}",
    ]
    assert named(outline) == ["one", "four"]
    assert brief("class B: ...", "", also=["five"]) == "class B: ...\n    # five"


def test_a_long_head_ends_behind_a_parameter() -> None:
    kept, most = "def f(self, a: int", ", ".join(f"b{n}: dict[str, int]" for n in range(20))
    text = brief(f"class A:\n    {kept}, {most}) -> int: ...\n", "")
    head = text.split("\n")[1]
    assert head.startswith(f"    {kept}, b0: dict[str, int], ")
    assert head.endswith("], ...)")
    assert len(head) <= 126
