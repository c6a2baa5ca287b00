"""What one line of code tells by itself: whether it opens a block, is finished, closes something."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from indexer.languages import registry

WORD = re.compile(r"[^\W\d]\w*")
TAB = 4
IMPORT = re.compile(r"(?:import|from|use|using|package|#include|require|export \*)\b")
_TOP = 200
"""Lines of a file in which its imports stand, …"""
_MOST_NAMES = 40
"""… and most lines of one of them."""
_STRINGS = re.compile(r"\\.|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`")
_BRACELESS = frozenset(("python", "ruby", "lua", "bash"))


def opens(line: str, language: str) -> bool:
    """Whether a line opens a block of statements in its language."""
    text = without_comment(line, language).rstrip()
    if not text:
        return False
    words = _block_words(language)
    first = WORD.search(text)
    leading = first.group() if first else ""
    if language in ("python", ""):
        if text.endswith(":") and (leading in words or leading in ("case", "match")) and _depth(text) <= 0:
            return True
        if language == "python":
            return False
    if text.endswith("{"):
        return not literal(text)
    last = text.split(" ")[-1].lstrip(")")
    if language in _BRACELESS and language != "python":
        whole = leading in words and language == "ruby" and not text.endswith("end")
        return (
            last in ("do", "then", "else")
            or whole
            or bool(language == "lua" and "function" in text and text.endswith(")"))
        )
    return last in ("do", "then") and language == ""


def literal(text: str) -> bool:
    """The brace at the end begins a value: `x = {`, `f({`, `return {`, `: {`."""
    head = text.rstrip()[:-1].rstrip()
    return head.endswith(("=", "(", "[", ",", ":", "?", "return")) and not head.endswith(("=>", "):"))


def closes(line: str) -> bool:
    """The line begins with what closes a bracket or a block."""
    return line.strip().startswith((")", "]", "}", "end"))


def is_comment(line: str, language: str) -> bool:
    """Nothing but a comment stands on the line."""
    mark = _comment_mark(language)
    return bool(mark) and line.lstrip().startswith(mark)


def finished(line: str) -> bool:
    """Brackets are closed and the last character ends an expression or a statement."""
    return _depth(line) <= 0 and line.endswith((";", ")", "]", "}", '"', "'", "`"))


def _depth(line: str) -> int:
    """Brackets that are open at the end of a line, strings left out."""
    code = _STRINGS.sub("", line)
    return sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))


def without_comment(line: str, language: str) -> str:
    """A line without the comment at its end. `#` begins one only behind white space: in a shell `$#` is a
    number."""
    mark = _comment_mark(language)
    if not mark or mark not in line:
        return line
    kept = _STRINGS.sub(lambda m: "_" * len(m.group()), line)
    found = re.search((r"(?:^|\s)" if mark == "#" else "") + re.escape(mark), kept)
    return line[: found.start()] if found else line


def indent_of(line: str) -> int:
    """Columns of leading white space; a tab counts 4."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(TAB))


@functools.cache
def _block_words(language: str) -> frozenset[str]:
    if not language:
        return frozenset(word for name in registry.all_names() for word in registry.get(name).block_words)
    found = registry.find(language)
    return frozenset(found.block_words) if found else _block_words("")


@functools.cache
def _comment_mark(language: str) -> str:
    found = registry.find(language)
    return found.line_comment if found else ""


def import_lines(lines: Sequence[str]) -> frozenset[int]:
    """Lines at the top of a file that import, those of the names in brackets too."""
    found: set[int] = set()
    depth = since = 0
    for number, line in enumerate(lines[:_TOP]):
        if depth <= 0 or number - since > _MOST_NAMES:
            depth, since = 0, number
            if not IMPORT.match(line):
                continue
        found.add(number)
        depth += _depth(line)
    return frozenset(found)
