"""What stands around a cursor, in sound, half-written and broken code of every language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.context.cursor import around, named
from daemon.documents.document import Document, language_of
from daemon.documents.mirror import Mirror
from daemon.documents.trees import Parsed, shifted
from daemon.nouns import CompletionRequest
from daemon.readers import Readers
from daemon.settings import Index
from daemon.surroundings import Surroundings
from indexer.errors import ParseBudgetExceeded
from indexer.languages import registry
from indexer.syntax import parse

DATA = Path(__file__).parent.parent / "data" / "index"
SAMPLES = sorted(p for p in DATA.iterdir() if p.suffix not in (".json", ".expected"))


def look(path: str, marked: str, tree: bool = True) -> Surroundings:
    """`marked` holds `|` where the cursor is."""
    before, _, after = marked.partition("|")
    return around(document(path, before + after, len(before), tree))


def document(path: str, text: str, offset: int, tree: bool = True) -> Document:
    source = text.encode()
    language = language_of(path, source, None)
    found = None
    if tree and language is not None:
        found = parse(source, language, 5.0)
    name = language.name if language else ""
    return Document(path=path, language=name, text=text, offset=offset, whole=True, source=source, tree=found)


def names(seen: Surroundings) -> list[str]:
    return [scope.name for scope in seen.chain]


INSIDE = {
    "a.py": "import os\n\nclass Store:\n    def add(self, item):\n        item.check()\n        |\n",
    "a.ts": "export class Store {\n  add(item: Item): void {\n    item.check();\n    |\n  }\n}\n",
    "a.tsx": "export class Store {\n  add(item: Item) {\n    item.check();\n    |\n  }\n}\n",
    "a.js": "class Store {\n  add(item) {\n    item.check();\n    |\n  }\n}\n",
    "a.rs": "impl Store {\n    fn add(&self, item: Item) {\n        item.check();\n        |\n    }\n}\n",
    "a.java": "class Store {\n    void add(Item item) {\n        item.check();\n        |\n    }\n}\n",
    "a.cs": "class Store\n{\n    void add(Item item)\n    {\n        item.Check();\n        |\n    }\n}\n",
    "a.cpp": "class Store {\n  void add(Item item) {\n    item.check();\n    |\n  }\n};\n",
    "a.kt": "class Store {\n    fun add(item: Item) {\n        item.check()\n        |\n    }\n}\n",
    "a.scala": "class Store {\n  def add(item: Item): Unit = {\n    item.check()\n    |\n  }\n}\n",
    "a.swift": "class Store {\n    func add(item: Item) {\n        item.check()\n        |\n    }\n}\n",
    "a.php": "<?php\nclass Store {\n  function add($item) {\n    $item->check();\n    |\n  }\n}\n",
    "a.rb": "class Store\n  def add(item)\n    item.check\n    |\n  end\nend\n",
}
FLAT = {
    "a.go": "package a\n\nfunc (s *Store) add(item Item) {\n\titem.check()\n\t|\n}\n",
    "a.c": "static void add(struct item *item) {\n    check(item);\n    |\n}\n",
    "a.sh": "add() {\n    check $1\n    |\n}\n",
    "a.lua": "function add(item)\n  item:check()\n  |\nend\n",
}


@pytest.mark.parametrize("tree", [True, False])
@pytest.mark.parametrize("path", [*INSIDE, *FLAT])
def test_enclosing_definitions(path: str, tree: bool) -> None:
    text = INSIDE.get(path) or FLAT[path]
    seen = look(path, text, tree)
    assert names(seen) == (["Store", "add"] if path in INSIDE else ["add"])
    line = text[: text.index("|")].count("\n")
    assert all(scope.start_line <= line < scope.end_line for scope in seen.chain)
    assert seen.zone == "code"
    assert seen.line == line
    assert "item" in seen.names or path == "a.sh"


@pytest.mark.parametrize("path", [*INSIDE, *FLAT])
@pytest.mark.parametrize("typed", ["x = foo(", "if (item", 'log("abc', "foo(item, [1, "])
def test_enclosing_definitions_while_typing(path: str, typed: str) -> None:
    text = INSIDE.get(path) or FLAT[path]
    seen = look(path, text.replace("|", f"{typed}|"))
    assert names(seen) == (["Store", "add"] if path in INSIDE else ["add"])
    assert (seen.zone == "string") == ('"' in typed)


@pytest.mark.parametrize("path", [*INSIDE, *FLAT])
def test_enclosing_definitions_of_a_file_that_ends_at_the_cursor(path: str) -> None:
    text = INSIDE.get(path) or FLAT[path]
    seen = look(path, text[: text.index("|")] + "x = foo(|")
    assert names(seen) == (["Store", "add"] if path in INSIDE else ["add"])


@pytest.mark.parametrize(
    ("path", "marked", "zone"),
    [
        ("a.py", "# a comm|ent\n", "comment"),
        ("a.py", "x = 1  # a comment|\n", "comment"),
        ("a.py", "# done\n|x = 1\n", "code"),
        ("a.py", "x = 'te|xt'\n", "string"),
        ("a.py", "x = 'text'|\n", "code"),
        ("a.py", "x = f'{na|me}'\n", "code"),
        ("a.py", "x = 'unfinished |\n", "string"),
        ("a.py", "from os import pa|th\n", "import"),
        ("a.py", "from os import |\n", "import"),
        ("a.py", "def f(a: in|t): ...\n", "type"),
        ("a.py", "def f() -> |\n", "type"),
        ("a.py", "class A|:\n    pass\n", "code"),
        ("a.ts", "let a: Stri|ng = b;\n", "type"),
        ("a.ts", "const t = `a ${va|lue}`;\n", "code"),
        ("a.ts", "const t = `te|xt`;\n", "string"),
        ("a.ts", "/* a |b */\n", "comment"),
        ("a.ts", "/* a b */|\n", "code"),
        ("a.ts", "import { a|b } from './c';\n", "import"),
        ("a.rs", "use std::co|llections;\n", "import"),
        ("a.rs", "fn f<'a>(x: &'a st|r) {}\n", "type"),
        ("a.rs", "fn f(x: &'a str) { let y = |x; }\n", "code"),
        ("a.c", '#include "a|.h"\n', "import"),
        ("a.java", "List<Stri|ng> a;\n", "type"),
        ("a.go", "// words|\npackage a\n", "comment"),
        ("a.txt", "import nothing 'quo|ted'\n", "import"),
    ],
)
def test_zones(path: str, marked: str, zone: str) -> None:
    assert look(path, marked).zone == zone


@pytest.mark.parametrize(
    ("path", "marked", "indent"),
    [
        ("a.py", "def f(a):|\n", 4),
        ("a.py", "def f(a):\n  x = 1\n  if a:|\n", 4),
        ("a.py", "def f(a):\n    |\n", 4),
        ("a.py", "def f(a):\n|\n", 4),
        ("a.py", "x = {'a':|\n", 4),
        ("a.py", "x = foo(|\n", 0),
        ("a.py", "x = foo(\n|\n", 4),
        ("a.py", "def f():\n    x = 1|\n", 4),
        ("a.ts", "const a = b:|\n", 0),
        ("a.ts", "  items.map((x) => {|\n", 6),
        ("a.go", "\tif x {|\n", 8),
        ("a.rb", "def add(item)|\n", 4),
        ("a.rb", "  items.each do |x||\n", 6),
        ("a.sh", "if true; then|\n", 4),
        ("a.sh", "if [ $# -gt 1 ]; then  # words|\n", 4),
        ("a.js", "if (a) {// words|\n", 4),
        ("a.js", "const a = 'http://b' + {|\n", 4),
        ("a.lua", "for i = 1, 3 do|\n", 4),
        ("a.js", "// if (x) {|\n", 0),
    ],
)
def test_expected_indentation(path: str, marked: str, indent: int) -> None:
    before, _, after = marked.rpartition("|")
    seen = around(document(path, before + after, len(before)))
    assert seen.indent == indent


def test_broken_code_behind_an_empty_first_line() -> None:
    assert names(look("a.py", "\n)(|\n")) == []


def test_leaving_a_block_by_indentation() -> None:
    text = "class A:\n    def f(self):\n        return 1\n"
    assert names(look("a.py", text + "        |")) == ["A", "f"]
    assert names(look("a.py", text + "    |")) == ["A"]
    assert names(look("a.py", text + "|")) == []
    assert names(look("a.py", text + "    |\n\n\nx = 1\n")) == ["A"]


def test_names_and_imports() -> None:
    seen = look(
        "a.py",
        "import os.path as p\nfrom json import dumps, loads\n\ndef f(first, second):  # note\n    res|\n",
    )
    assert seen.imports == ("path", "dumps", "loads")
    assert seen.names[:3] == ("second", "first", "loads")
    assert not {"note", "def", "import", "res"} & set(seen.names)
    many = "\n".join(f"name_{i} = {i}" for i in range(200))
    document_ = document("a.py", many + "\n", len(many) + 1)
    found = around(document_)
    every = tuple(f"name_{i}" for i in range(199, 159, -1))
    assert (found.names, named(found, document_).names) == (every[:16], every)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.name)
def test_every_place_of_every_sample(path: Path) -> None:
    """The chain holds the cursor and, where code is sound, agrees with the index's symbols."""
    text = path.read_text(encoding="utf-8")
    step = max(1, len(text) // 60)
    for offset in range(0, len(text) + 1, step):
        for cut in (text, text[:offset]):
            seen = around(document(path.name, cut, offset))
            assert seen.line == cut.count("\n", 0, offset)
            assert len(seen.names) <= 16
            starts = [scope.start_line for scope in seen.chain]
            assert starts == sorted(starts)
            assert all(scope.start_line <= seen.line and scope.name for scope in seen.chain)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(SAMPLES),
    st.floats(0, 1),
    st.integers(0, 80),
    st.sampled_from(["", " ", "\n", "x", " " * 40, "\n" * 9]),
)
def test_a_tree_of_an_older_text(path: Path, share: float, removed: int, added: str) -> None:
    """Its nodes may stand over anything, white space too."""
    old = path.read_text(encoding="utf-8")
    at = int(share * len(old))
    text = old[:at] + added + old[at + removed :]
    known = document(path.name, old, 0)
    assert known.tree is not None
    tree = shifted(Parsed(known.tree, known.source), text.encode())
    for offset in (at, min(at + removed, len(text)), min(at + 60, len(text))):
        around(
            Document(
                language=known.language, text=text, source=text.encode(), tree=tree, offset=offset, moved=True
            )
        )


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(registry.all_names()), st.text(max_size=200), st.integers(0, 200))
def test_any_text_at_all(name: str, text: str, offset: int) -> None:
    source = text.encode("utf-8", "replace")
    language = registry.get(name)
    try:
        tree = parse(source, language, 5.0)
    except ParseBudgetExceeded:
        tree = None
    seen = around(
        Document(
            text=text, source=source, language=name, tree=tree, offset=min(offset, len(text)), whole=True
        )
    )
    assert seen.indent >= 0


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    made = Mirror(Readers(Index()))
    yield made
    made.shut()


def test_typing_through_the_mirror(mirror: Mirror) -> None:
    text = "class Store:\n    def add(self, item):\n        \n\n\nclass Other:\n    pass\n"
    at = text.index("        \n") + 8
    for typed in ["", *(f"self.items.append({'item'[:n]}" for n in range(5)), 'x = """', "x = ''"]:
        whole = text[:at] + typed + text[at:]
        cursor = at + len(typed)
        request = CompletionRequest(
            id="1",
            client="c",
            door="native",
            prefix=whole[:cursor],
            suffix=whole[cursor:],
            path="a.py",
            whole=True,
        )
        mirror.see(request)
        assert mirror.settle(10)
        seen = around(mirror.see(request))
        assert names(seen) == ["Store", "add"], typed
        assert seen.indent == 8
