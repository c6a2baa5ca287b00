"""What accepting a completion does to a document, judged by its syntax tree. Pure; nothing of polish is used.

- duplicated: the last lines of what was inserted are the first lines that follow (blank ones passed over), or
  two that follow stand in it one after the other. Lines that only close something are left to `unbalanced`;
- unbalanced: a bracket has lost its partner. Brackets are those of the code: strings and comments have none.
  They are matched by kind, each closer with the nearest opener. Worse are all texts after which more brackets
  stand alone than before, save those that only open brackets where the person types on: at the end of a line,
  or on the text's last line when nothing follows there. Those are counted as `opened`;
- restyled: an inserted line is indented by tabs in a file of spaces or the other way round, or a line below
  one that opens a block goes in by another width than all such lines of the file do.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from indexer import syntax
from indexer.errors import ParseBudgetExceeded
from indexer.languages.registry import Language

_PAIRS = {")": "(", "]": "[", "}": "{"}
_OPENERS = frozenset(_PAIRS.values())
_BUDGET_S = 5.0
_MOST = 8
"""Lines that are compared with those that follow."""
_LEAST = 6
"""Characters without white space that make a line worth comparing."""
_SURE = 0.9
"""Share of a file's indentation that makes it its style."""
_ENOUGH = 4
"""Lines that say so at least."""
_BLANK_BEHIND = re.compile(r"\s*(//.*|#.*|/\*.*|--.*)?\Z")
_OPENS = re.compile(r"[{:(\[]\s*\Z")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A document, `text` put in at `start` in place of what stood up to `end`; code points, LF only."""

    document: str
    start: int
    end: int
    text: str
    language: Language

    @property
    def after(self) -> str:
        """The document as it is then."""
        return self.document[: self.start] + self.text + self.document[self.end :]


def faults(given: Accepted) -> frozenset[str]:
    """Which of `duplicated`, `unbalanced`, `restyled`, `opened` it is."""
    if not given.text.strip():
        return frozenset()
    found = {"duplicated"} if duplicated(given) else set()
    if restyled(given):
        found.add("restyled")
    return frozenset(found | balance(given))


def duplicated(given: Accepted) -> bool:
    """Whether lines that follow stand there twice."""
    line = given.document.rfind("\n", 0, given.start) + 1
    rest_end = given.document.find("\n", given.end)
    rest = given.document[given.end : rest_end if rest_end >= 0 else len(given.document)]
    new = _full(given.document[line : given.start] + given.text + rest)
    following = _full(given.document[rest_end + 1 :])[:_MOST] if rest_end >= 0 else []
    if not following or not new:
        return False
    for size in range(1, min(len(new), len(following)) + 1):
        if new[-size:] == following[:size] and any(_says(one) for one in following[:size]):
            return True
    pair = following[:2]
    told = len(pair) == 2 and all(_says(one) for one in pair)
    return told and any(new[n : n + 2] == pair for n in range(len(new) - 1))


def _full(text: str) -> list[str]:
    """Lines with text, without blanks at their ends."""
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def _says(line: str) -> bool:
    dense = "".join(line.split())
    return len(dense) >= _LEAST and any(map(str.isalpha, dense))


def balance(given: Accepted) -> frozenset[str]:
    """`unbalanced`, `opened` or nothing. A text that no parser gets through is not judged."""
    try:
        before, after = (list(brackets(text, given.language)) for text in (given.document, given.after))
    except ParseBudgetExceeded:
        return frozenset()
    alone = unmatched(before)
    more = unmatched(after) - alone
    if more.total() <= (alone - unmatched(after)).total():
        return frozenset()
    begin = len(given.document[: given.start].encode())
    end = begin + len(given.text.encode())
    left = list(_left_open([one for one in after if begin <= one[0] < end]))
    goes_on = all(
        _goes_on(given.after.encode(), at, end) for at in _last_of_lines(given.after.encode(), left)
    )
    if goes_on and more <= Counter(bracket for _, bracket in left):
        return frozenset({"opened"})
    return frozenset({"unbalanced"})


def brackets(text: str, language: Language) -> Iterator[tuple[int, str]]:
    """(byte, bracket) of every bracket in the code of `text`. Raises ParseBudgetExceeded."""
    cursor, entering = syntax.parse(text.encode(), language, _BUDGET_S).walk(), True
    while True:
        node = cursor.node
        if entering and node is not None and not node.child_count and not node.is_named:
            for place, char in enumerate("" if node.is_missing else node.type):
                if char in _PAIRS or char in _OPENERS:
                    yield node.start_byte + place, char
        if entering and cursor.goto_first_child():
            continue
        entering = cursor.goto_next_sibling()
        if not entering and not cursor.goto_parent():
            return


def unmatched(found: Sequence[tuple[int, str]]) -> Counter[str]:
    """Brackets that stand alone."""
    alone: Counter[str] = Counter()
    stack: list[str] = []
    for _, char in found:
        if char in _OPENERS:
            stack.append(char)
        elif _PAIRS[char] in stack:
            while (top := stack.pop()) != _PAIRS[char]:
                alone[top] += 1
        else:
            alone[char] += 1
    return alone + Counter(stack)


def _left_open(found: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    stack: list[tuple[int, str]] = []
    for at, char in found:
        if char in _OPENERS:
            stack.append((at, char))
        elif stack and stack[-1][1] == _PAIRS[char]:
            stack.pop()
    return stack


def _last_of_lines(raw: bytes, left: Sequence[tuple[int, str]]) -> list[int]:
    """The last bracket of every line that leaves some open."""
    return list({raw.rfind(b"\n", 0, at): at for at, _ in left}.values())


def _goes_on(raw: bytes, at: int, end: int) -> bool:
    """Whether nothing but a comment stands behind a bracket on its line, or the text ended on that line and
    nothing follows there: that is where the person types on."""
    line_end = raw.find(b"\n", at)
    line_end = line_end if line_end >= 0 else len(raw)
    if _BLANK_BEHIND.match(raw[at + 1 : line_end].decode("utf-8", "replace")):
        return True
    return end > at and b"\n" not in raw[at:end] and not raw[end:line_end].strip()


def restyled(given: Accepted) -> bool:
    """Whether what was inserted is indented in another way than the rest of the file."""
    there = given.document.split("\n")
    tabs = sum(line.startswith("\t") for line in there)
    spaces = sum(line.startswith("  ") and bool(line.strip()) for line in there)
    first = given.document[given.document.rfind("\n", 0, given.start) + 1 : given.start]
    new = (first + given.text).split("\n")
    inserted = [line for line in new[1:] if line.strip()]
    if tabs + spaces >= _ENOUGH:
        if tabs >= _SURE * (tabs + spaces) and any(line.startswith("  ") for line in inserted):
            return True
        if spaces >= _SURE * (tabs + spaces) and any("\t" in _indent(line) for line in inserted):
            return True
    steps = Counter(_steps(there))
    usual, times = max(steps.items(), key=lambda item: item[1], default=("", 0))
    if steps.total() < _ENOUGH or times < _SURE * steps.total():
        return False
    return any(step != usual and step not in steps for step in _steps(new))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _steps(lines: Sequence[str]) -> Iterator[str]:
    """By what lines go in below a line that opens a block."""
    full = [line for line in lines if line.strip()]
    for line, below in itertools.pairwise(full):
        outer, inner = _indent(line), _indent(below)
        if _OPENS.search(line) and inner != outer and inner.startswith(outer):
            yield inner[len(outer) :]
