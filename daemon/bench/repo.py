"""A seeded repository of any size in five languages: types, methods, calls, imports.

Same seed and same number of lines → the same bytes. Files hold about 100–700 lines in packages that import
each other; names repeat as they do in real code.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

WHOLE = ""
"""Yielded where a file may end."""
LANGUAGES = ("python", "typescript", "go", "java", "rust")
# fmt: off
_NOUNS = (
    "Order", "Item", "Account", "Invoice", "Ledger", "Parcel", "Route", "Ticket", "Session",
    "Cursor", "Buffer", "Packet", "Stream", "Filter", "Query", "Index", "Token", "Scope", "Symbol",
    "Module", "Bundle", "Worker", "Batch", "Queue", "Stage", "Price", "Margin", "Client", "Vendor",
    "Region",
)
_VERBS = (
    "load", "store", "merge", "split", "parse", "render", "resolve", "collect", "apply", "update",
    "remove", "insert", "validate", "encode", "decode", "compute", "refresh", "schedule",
    "dispatch", "publish", "measure", "balance", "compare", "filter", "expand", "reduce", "visit",
    "attach",
)
_FIELDS = (
    "count", "name", "size", "total", "limit", "offset", "owner", "status", "weight", "price",
    "label", "region", "score", "depth", "width",
)
_ADJECTIVES = (
    "Remote", "Local", "Cached", "Pending", "Signed", "Daily", "Shared", "Partial", "Sorted",
    "Bounded", "Lazy", "Nested",
)
# fmt: on
_UNCOPIED = shutil.ignore_patterns("__pycache__", "site-packages", ".git", "node_modules")


class _Writer:
    """Random choices for one file, and the lines it has so far."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.number = number
        self.lines: list[str] = []

    def add(self, text: str) -> None:
        """Lines, given as one text."""
        self.lines.extend(text.split("\n"))

    def noun(self) -> str:
        """A type's name."""
        return self.rng.choice(_ADJECTIVES) + self.rng.choice(_NOUNS) + str(self.rng.randrange(400))

    def verb(self) -> str:
        """A function's name in snake case."""
        return f"{self.rng.choice(_VERBS)}_{self.rng.choice(_NOUNS).lower()}"

    def field(self) -> str:
        """A field's name."""
        return self.rng.choice(_FIELDS)

    def number_text(self) -> str:
        """A small literal."""
        return str(self.rng.randrange(1, 5000))


def camel(name: str) -> str:
    """snake_case → camelCase."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def put(place: Path, root: Path | None, lines: int, seed: int) -> tuple[str, ...]:
    """Copy `root` to `place`, or generate so many lines there; what to say of it."""
    if root is None:
        return (f"generated {generate(place, lines, seed)} lines with seed {seed}",)
    shutil.copytree(root, place, symlinks=True, ignore=_UNCOPIED)
    return ()


def generate(folder: Path, lines: int, seed: int, longest: int = 700) -> int:
    """Write a repository of at least `lines` lines under `folder`; how many lines it has. A file ends
    where it can after 100 to `longest` lines."""
    rng = random.Random(seed)
    total = number = 0
    while total < lines:
        language = LANGUAGES[number % len(LANGUAGES)]
        suffix, make = _MAKERS[language]
        writer = _Writer(random.Random(rng.random()), number)
        wanted = min(rng.randrange(100, longest), max(20, lines - total))
        for block in make(writer):
            if block:
                writer.add(block)
            elif len(writer.lines) >= wanted:
                break
        place = folder / f"pkg{number // 50:03}" / language / f"{writer.verb()}_{number}{suffix}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(writer.lines) + "\n", encoding="utf-8")
        total += len(writer.lines)
        number += 1
    return total


def _python(w: _Writer) -> Iterator[str]:
    yield '"""Generated module."""\n\nfrom __future__ import annotations\n\nimport json\nimport os.path'
    for _ in range(w.rng.randrange(1, 5)):
        yield f"from pkg{w.rng.randrange(40):03}.python.{w.verb()}_{w.rng.randrange(400)} import {w.noun()}"
    while True:
        yield WHOLE
        name, fields = w.noun(), [w.field() for _ in range(3)]
        yield f'\n\nclass {name}({w.noun()}):\n    """Holds {fields[0]} and {fields[1]}. Generated."""\n'
        yield f"    {fields[0]}: int = {w.number_text()}\n    {fields[1]}: str = {fields[2]!r}"
        for _ in range(w.rng.randrange(2, 7)):
            verb, other, kind = w.verb(), w.verb(), w.noun()
            yield (
                f"\n    def {verb}(self, {w.field()}: int, other: {kind} | None = None) -> list[str]:\n"
                f'        """{verb.replace("_", " ").capitalize()}."""\n'
                f"        found = []\n"
                f"        for number in range({w.number_text()}):\n"
                f"            if number % {w.rng.randrange(2, 9)} == 0 and self.{fields[0]} > number:\n"
                f"                found.append(json.dumps([number, self.{fields[1]}]))\n"
                f"            else:\n"
                f"                self.{other}(number, {kind}())\n"
                f"        return found or [os.path.join(self.{fields[1]}, {w.field()!r})]"
            )
        yield f"\n\ndef {w.verb()}(items: list[{name}]) -> int:\n    return sum(i.{fields[0]} for i in items)"


def _typescript(w: _Writer) -> Iterator[str]:
    for _ in range(w.rng.randrange(1, 5)):
        yield f'import {{ {w.noun()} }} from "../typescript/{w.verb()}_{w.rng.randrange(400)}";'
    while True:
        yield WHOLE
        shape, name, a, b = w.noun(), w.noun(), w.field(), w.field()
        yield f"\nexport interface {shape} {{\n  {a}: number;\n  {b}Text: string;\n  tags?: string[];\n}}\n"
        yield f"/** Keeps {a}. Generated. */\nexport class {name} extends {w.noun()} implements {shape} {{"
        yield f"  {a} = {w.number_text()};\n  {b}Text = {a!r};\n  private items: Map<string, {shape}>;"
        for _ in range(w.rng.randrange(2, 7)):
            verb, other = camel(w.verb()), camel(w.verb())
            yield (
                f"\n  async {verb}({b}: number, other?: {shape}): Promise<string[]> {{\n"
                f"    const found: string[] = [];\n"
                f"    for (let i = 0; i < {w.number_text()}; i++) {{\n"
                f"      if (i % {w.rng.randrange(2, 9)} === 0 && this.{a} > i) {{\n"
                f"        found.push(`${{i}}:${{this.{b}Text}}`);\n"
                f"      }} else {{\n        await this.{other}(i, other);\n      }}\n    }}\n"
                f"    return found;\n  }}"
            )
        yield f"}}\n\nexport function {camel(w.verb())}(items: {name}[]): number {{"
        yield f"  return items.reduce((sum, item) => sum + item.{a}, 0);\n}}"


def _go(w: _Writer) -> Iterator[str]:
    other = f"example.com/pkg{w.rng.randrange(40):03}/go"
    yield f'package generated\n\nimport (\n\t"fmt"\n\t"strings"\n\t"{other}"\n)'
    while True:
        yield WHOLE
        name, a, b = w.noun(), w.field().title(), w.field().title() + "Text"
        yield f"\n// {name} keeps {a}. Generated.\ntype {name} struct {{\n\t{a} int\n\t{b} string\n}}"
        for _ in range(w.rng.randrange(2, 7)):
            verb = camel("_" + w.verb())
            yield (
                f"\n// {verb} does its work.\n"
                f"func (s *{name}) {verb}(limit int, other *{w.noun()}) ([]string, error) {{\n"
                f"\tfound := make([]string, 0, limit)\n"
                f"\tfor i := 0; i < {w.number_text()}; i++ {{\n"
                f"\t\tif i%{w.rng.randrange(2, 9)} == 0 && s.{a} > i {{\n"
                f"\t\t\tfound = append(found, fmt.Sprintf({a + ' %d'!r}, i))\n".replace("'", '"')
                + f"\t\t\tcontinue\n\t\t}}\n\t\tfound = append(found, strings.ToLower(s.{b}))\n\t}}\n"
                f"\treturn found, nil\n}}"
            )
        yield f"\nfunc New{name}({a.lower()} int) *{name} {{\n\treturn &{name}{{{a}: {a.lower()}}}\n}}"


def _java(w: _Writer) -> Iterator[str]:
    yield f"package generated.pkg{w.rng.randrange(40):03};\n"
    yield "import java.util.ArrayList;\nimport java.util.List;"
    while True:
        yield WHOLE
        name, a, b = w.noun(), w.field(), w.field() + "Text"
        yield f"\n/** Keeps {a}. Generated. */\nclass {name} extends {w.noun()} {{"
        yield f"    private int {a} = {w.number_text()};\n    protected final String {b};"
        yield f"\n    {name}(String {b}) {{\n        this.{b} = {b};\n    }}"
        for _ in range(w.rng.randrange(2, 7)):
            verb, other, kind = camel(w.verb()), camel(w.verb()), w.noun()
            yield (
                f"\n    @Override\n    public List<String> {verb}(int limit, {kind} other) {{\n"
                f"        List<String> found = new ArrayList<>();\n"
                f"        for (int i = 0; i < {w.number_text()}; i++) {{\n"
                f"            if (i % {w.rng.randrange(2, 9)} == 0 && this.{a} > i) {{\n"
                f'                found.add(i + ":" + this.{b});\n'
                f"            }} else {{\n                other.{other}(i, null);\n"
                f"            }}\n        }}\n"
                f"        return found;\n    }}"
            )
        yield "}"


def _rust(w: _Writer) -> Iterator[str]:
    yield f"use std::collections::HashMap;\nuse crate::pkg{w.rng.randrange(40):03}::{w.verb()};"
    while True:
        yield WHOLE
        name, a, b = w.noun(), w.field(), w.field() + "_text"
        yield f"\n/// Keeps {a}. Generated.\n#[derive(Debug, Clone)]\npub struct {name} {{"
        yield f"    pub {a}: usize,\n    {b}: String,\n    index: HashMap<String, usize>,\n}}"
        yield f"\nimpl {name} {{"
        for _ in range(w.rng.randrange(2, 7)):
            verb = w.verb()
            yield (
                f"\n    /// {verb.replace('_', ' ').capitalize()}.\n"
                f"    pub fn {verb}(&mut self, limit: usize, other: Option<&{w.noun()}>) -> Vec<String> {{\n"
                f"        let mut found = Vec::with_capacity(limit);\n"
                f"        for number in 0..{w.number_text()} {{\n"
                f"            if number % {w.rng.randrange(2, 9)} == 0 && self.{a} > number {{\n"
                f'                found.push(format!("{{}}:{{}}", number, self.{b}));\n'
                f"            }} else if let Some(value) = other {{\n"
                f"                self.index.insert(self.{b}.clone(), number);\n            }}\n        }}\n"
                f"        found\n    }}"
            )
        yield "}"


_MAKERS: dict[str, tuple[str, Callable[[_Writer], Iterator[str]]]] = {
    "python": (".py", _python),
    "typescript": (".ts", _typescript),
    "go": (".go", _go),
    "java": (".java", _java),
    "rust": (".rs", _rust),
}
