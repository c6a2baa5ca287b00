"""Names that the head of a file imports, remembered while only the cursor's line changes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

from daemon.context.oneline import WORD
from daemon.documents.document import Document
from indexer.errors import ParseBudgetExceeded
from indexer.imports import read_imports
from indexer.languages.registry import Language
from indexer.syntax import Limits, captures

_HEAD: Final = 16_384
"""Bytes of a file in which its imports are looked for."""
_BUDGET_S: Final = 0.02
_MOST: Final = 64

_known: OrderedDict[tuple[str, bytes], tuple[str, ...]] = OrderedDict()
_lock = Lock()


def imported(document: Document, byte: int, language: Language | None) -> tuple[str, ...]:
    """Imported names, and the last part of a module that is imported whole. `byte` is the cursor's."""
    if document.tree is None or language is None:
        return ()
    key = (language.name, _without_line(document.source, byte))
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    try:
        limits = Limits(budget_s=_BUDGET_S, end_byte=_HEAD)
        found = captures(document.tree.root_node, language.import_query(), limits)
    except ParseBudgetExceeded:
        return ()
    spans = {name: [node.byte_range for node in nodes] for name, nodes in found.items() if name[0] != "_"}
    names: dict[str, None] = {}
    for entry in read_imports(document.source, [], spans, language.facts.imports.separator):
        last = WORD.findall(entry.module)[-1:]
        names.update(dict.fromkeys(name for name in entry.names or last if WORD.fullmatch(name)))
    with _lock:
        _known[key] = tuple(names)
        if len(_known) > _MOST:
            _known.popitem(last=False)
    return tuple(names)


def _without_line(source: bytes, byte: int) -> bytes:
    """The head without the cursor's line, so that a keystroke does not change it."""
    start = source.rfind(b"\n", 0, byte) + 1
    if start >= _HEAD:
        return source[:_HEAD]
    end = source.find(b"\n", byte)
    return source[:start] + (source[end : end + _HEAD - start] if end >= 0 else b"")
