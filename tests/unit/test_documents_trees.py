"""Trees that follow a text equal fresh ones, whatever is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.documents.trees import Parsed, difference, follow, shifted
from indexer.languages import registry
from indexer.syntax import Node, Tree, parse

DATA = Path(__file__).parent.parent / "data" / "index"
SAMPLES = {
    "python": "python.py",
    "typescript": "client.ts",
    "tsx": "panel.tsx",
    "go": "inventory.go",
    "rust": "rust.rs",
    "ruby": "ruby.rb",
    "cpp": "cpp.cpp",
    "scala": "scala.scala",
}
PIECES = st.one_of(
    st.sampled_from(
        ['"', "'", '"""', "{", "}", "(", ")", "\n", "\r\n", "    ", "#", "/*", "*/", "größe", "日本", "🦊"]
    ),
    st.text(st.characters(codec="utf-8"), max_size=6),
    st.text(st.sampled_from("ab\ud800\udc00\udfff\r\n é"), max_size=4),
)
EDITS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 30), PIECES), min_size=1, max_size=6
)


def shape(tree: Tree) -> list[tuple[object, ...]]:
    found = []
    stack: list[Node] = [tree.root_node]
    while stack:
        node = stack.pop()
        found.append((node.type, node.byte_range, node.start_point, node.end_point, node.is_missing))
        stack.extend(node.children)
    return found


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=25, deadline=None)
@given(edits=EDITS)
def test_trees_equal_fresh_ones(name: str, edits: list[tuple[float, int, str]]) -> None:
    """Of broken code tree-sitter makes one of several trees, depending on what it could reuse; of sound code,
    and of code that is sound again, there is only one."""
    language = registry.get(name)
    original = (DATA / SAMPLES[name]).read_text(encoding="utf-8")
    whole = parse(original.encode(), language, 5.0)
    texts, parsed = [original], Parsed(whole, original.encode())
    for share, removed, added in edits:
        at = int(share * len(texts[-1]))
        texts.append(texts[-1][:at] + added + texts[-1][at + removed :])
    for text in (*texts[1:], *texts[-2::-1]):
        parsed = follow(parsed, text.encode("utf-8", "replace"), language, 5.0)
        fresh = parse(parsed.source, language, 5.0)
        assert parsed.tree.root_node.byte_range == fresh.root_node.byte_range
        assert parsed.tree.root_node.has_error == fresh.root_node.has_error
        if not fresh.root_node.has_error:
            assert str(parsed.tree.root_node) == str(fresh.root_node)
            assert shape(parsed.tree) == shape(fresh)
    assert shape(parsed.tree) == shape(whole)


texts = st.text(st.sampled_from("aé日🦊\n"), max_size=40)


@given(texts, texts, texts, texts)
def test_one_edit_makes_the_new_text(head: str, old: str, new: str, tail: str) -> None:
    before, after = (head + old + tail).encode(), (head + new + tail).encode()
    edit = difference(before, after)
    if edit is None:
        assert before == after
        return
    made = (
        before[: edit.start_byte] + after[edit.start_byte : edit.new_end_byte] + before[edit.old_end_byte :]
    )
    assert made == after
    after[edit.start_byte : edit.new_end_byte].decode()
    for text, byte, point in (
        (after, edit.start_byte, edit.start_point),
        (before, edit.old_end_byte, edit.old_end_point),
        (after, edit.new_end_byte, edit.new_end_point),
    ):
        assert point == (text[:byte].count(b"\n"), len(text[:byte].rpartition(b"\n")[2]))


def test_a_shifted_tree_keeps_what_it_knew() -> None:
    language = registry.get("python")
    old = b"x = 1\n\ndef f():\n    return x\n"
    new = b"import os\n" + old
    tree = shifted(Parsed(parse(old, language, 1.0), old), new)
    function = tree.root_node.children[-1]
    assert new[slice(*function.byte_range)] == b"def f():\n    return x"
    assert function.start_point[0] == 3
