"""Bytes → syntax tree → captures, under wall-clock budgets; and what stands around a position.

The budget is tree-sitter's own clock (`timeout_micros`), checked in C on every hundredth operation. The newer
progress callback of py-tree-sitter 0.25.2 cannot be used: it formats its argument with "Ip", which
Py_BuildValue only knows since Python 3.14, and crashes before. The core is pinned below 0.26 anyway.

Parsing and queries in tree-sitter do not recurse, so depth cannot overflow a stack; but an error node with
100,000 children makes queries quadratic, hence the scan for depth before a parse and a clock on queries.
A single step of error recovery can still be quadratic (50,000 open generics in Java or C#) and outlast any
budget: whoever parses foreign files does so in a child that can be killed (indexer/pool.py).
"""

from __future__ import annotations

import array
import itertools
import threading
import time
import warnings
from collections.abc import Sequence

import msgspec
from tree_sitter import Node, Parser, Query, QueryCursor, Tree

from indexer.errors import NestingTooDeep, ParseBudgetExceeded
from indexer.languages.registry import Language

__all__ = [
    "Edit", "Limits", "Node", "Tree", "captures", "check_depth", "count_errors", "moved", "parse", "path_at",
]  # fmt: skip

MAX_DEPTH = 1_000
_OPEN, _CLOSE = b"([{", b")]}"
_NO_BRACKETS = bytes(b for b in range(256) if b not in _OPEN + _CLOSE)
_STEP = bytes(1 if b in _OPEN else 255 for b in range(256))


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a text, as tree-sitter wants it. Bytes; points are (row, column in bytes)."""

    start_byte: int
    old_end_byte: int
    new_end_byte: int
    start_point: tuple[int, int]
    old_end_point: tuple[int, int]
    new_end_point: tuple[int, int]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one query may cost."""

    budget_s: float = 2.0
    match_limit: int = 65_536
    """Matches in progress at once; tree-sitter drops the oldest beyond."""
    start_byte: int = 0
    end_byte: int = 0xFFFF_FFFF


class _Tools(threading.local):
    """Parsers and cursors of this thread, by language or query and budget."""

    def __init__(self) -> None:
        self.parsers: dict[tuple[str, int], Parser] = {}
        self.cursors: dict[tuple[int, int, int], QueryCursor] = {}


_tools = _Tools()
_problems: dict[str, Query] = {}
_warnings_lock = threading.Lock()


def check_depth(source: bytes, cap: int = MAX_DEPTH) -> None:
    """Raise NestingTooDeep when brackets nest deeper than `cap`, those in strings and comments included."""
    brackets = source.translate(None, _NO_BRACKETS)
    if len(brackets) <= cap:
        return
    steps = array.array("b", brackets.translate(_STEP))
    if max(itertools.accumulate(steps)) > cap:
        raise NestingTooDeep(f"brackets nest deeper than {cap}")


def parse(
    source: bytes,
    language: Language,
    budget_s: float,
    old: Tree | None = None,
    edits: Sequence[Edit] | None = None,
) -> Tree:
    """The tree of UTF-8 `source`. With `old`, the tree before `edits` (in the order they happened), its
    untouched parts are reused; `old` itself stays as it is. Raises ParseBudgetExceeded, NestingTooDeep."""
    check_depth(source)
    parser = _parser(language, max(1, int(budget_s * 1e6)))
    before = moved(old, *(edits or ())) if old is not None else None
    try:
        return parser.parse(source, before) if before is not None else parser.parse(source)
    except ValueError:
        parser.reset()
        raise ParseBudgetExceeded(f"{language.name}: no tree within {budget_s:g} s") from None


def moved(tree: Tree, *edits: Edit) -> Tree:
    """A copy whose nodes stand where `edits` moved them, not parsed again."""
    found = tree.copy()
    for edit in edits:
        found.edit(**msgspec.structs.asdict(edit))
    return found


def captures(node: Node, query: Query, limits: Limits) -> dict[str, list[Node]]:
    """Capture name → nodes below `node`, each node once per name, in no order. Raises ParseBudgetExceeded."""
    cursor = _cursor(query, limits)
    cursor.set_byte_range(limits.start_byte, limits.end_byte)
    began = time.monotonic()
    found = cursor.captures(node)
    if time.monotonic() - began >= limits.budget_s:
        raise ParseBudgetExceeded(f"query not done within {limits.budget_s:g} s")
    return found


def path_at(tree: Tree, byte: int) -> tuple[Node, ...]:
    """Nodes around a byte offset, the root first, the smallest last. One step per level of depth."""
    cursor = tree.walk()
    path = [tree.root_node]
    while cursor.goto_first_child_for_byte(byte) is not None:
        node = cursor.node
        if node is None or not node.start_byte <= byte:
            break
        path.append(node)
    return tuple(path)


def _parser(language: Language, micros: int) -> Parser:
    key = (language.name, micros)
    parser = _tools.parsers.get(key)
    if parser is None:
        with _warnings_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            parser = Parser(language.grammar(), timeout_micros=micros)
        _tools.parsers[key] = parser
    return parser


def _cursor(query: Query, limits: Limits) -> QueryCursor:
    micros = max(1, int(limits.budget_s * 1e6))
    key = (id(query), micros, limits.match_limit)
    cursor = _tools.cursors.get(key)
    if cursor is None:
        with _warnings_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            cursor = QueryCursor(query, match_limit=limits.match_limit, timeout_micros=micros)
        _tools.cursors[key] = cursor  # it keeps its query alive, so the query's id stays its own
    return cursor


def count_errors(tree: Tree, language: Language, limits: Limits) -> int:
    """Error and missing nodes."""
    query = _problems.get(language.name)
    if query is None:
        query = Query(language.grammar(), "(ERROR) @problem (MISSING) @problem")
        _problems[language.name] = query
    return len(captures(tree.root_node, query, limits).get("problem", ()))
