"""A syntax tree → symbols, references and imports, for every language alike.

    source → syntax.parse → one query pass → nesting → definitions
                                           ↘ references, imports

Which nodes mean what is in the query files of languages/; nothing here knows a language. Byte ranges index
the UTF-8 source given here; text is always cut from bytes, so names need not be ASCII.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from indexer.definitions import Definitions
from indexer.imports import read_imports
from indexer.languages.registry import Language
from indexer.nesting import Range
from indexer.records import ParsedFile, Reference, Role
from indexer.syntax import Limits, Tree, captures, count_errors, parse

_ROLES: Final[tuple[Role, ...]] = ("name", "type", "call", "attribute", "decorator", "base")
"""A name with several roles gets the last of these."""
_MAX_NAME = 200
_STAR = ord("*")


def parse_file(source: bytes, language: Language, budget_s: float) -> tuple[ParsedFile, Tree]:
    """Parse and extract. `budget_s` bounds the parse and each query. Raises ParseBudgetExceeded."""
    tree = parse(source, language, budget_s)
    return extract(source, tree, language, budget_s), tree


def extract(
    source: bytes, tree: Tree, language: Language, budget_s: float = 2.0, *, uses: bool = True
) -> ParsedFile:
    """What `tree`, made from `source`, holds, without `uses` neither references nor the count of
    errors. Raises ParseBudgetExceeded."""
    limits = Limits(budget_s=budget_s)
    root = tree.root_node
    spans: dict[str, list[Range]] = {
        name: [node.byte_range for node in nodes]
        for name, nodes in captures(root, language.query(), limits).items()
        if not name.startswith("_")
    }
    newlines: list[int] = np.flatnonzero(np.frombuffer(source, np.uint8) == 10).tolist()
    definitions = Definitions(source, newlines, language)
    definitions.read(spans)
    return ParsedFile(
        language=language.name,
        symbols=tuple(definitions.symbols),
        references=_references(source, newlines, spans, definitions) if uses else (),
        imports=read_imports(source, newlines, spans, language.facts.imports.separator),
        errors=count_errors(tree, language, limits) if uses and root.has_error else 0,
    )


def _references(
    source: bytes, newlines: Sequence[int], spans: Mapping[str, Sequence[Range]], definitions: Definitions
) -> tuple[Reference, ...]:
    roles: dict[Range, Role] = {}
    for role in _ROLES:
        roles.update(dict.fromkeys(spans.get(f"reference.{role}", ()), role))
    roles.update(dict.fromkeys(spans.get("import.name", ()), "import"))
    for none in spans.get("reference.none", ()):
        roles.pop(none, None)
    for symbol in definitions.symbols:
        roles.pop((symbol.name_start, symbol.name_end), None)
    ranges = definitions.ranges
    ahead, count = 0, len(ranges)
    stack: list[tuple[int, int]] = []
    found: list[Reference] = []
    for start, end in sorted(roles):
        while ahead < count and ranges[ahead][0] <= start:
            stack.append((ranges[ahead][1], ahead))
            ahead += 1
        while stack and stack[-1][0] <= start:
            stack.pop()
        if end - start > _MAX_NAME or source[start] == _STAR:
            continue
        found.append(
            Reference(
                name=source[start:end].decode("utf-8", "replace"),
                role=roles[start, end],
                start_byte=start,
                end_byte=end,
                line=bisect_left(newlines, start),
                symbol=stack[-1][1] if stack else -1,
            )
        )
    return tuple(found)
