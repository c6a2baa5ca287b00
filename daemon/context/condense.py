"""A long definition in few lines: signature, documentation, control flow, and what touches the names in use.

By lines and brackets alone, so that broken code is condensed as well as sound code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from daemon.context.oneline import WORD

_CONTROL = re.compile(
    r"\s*(?:@|\}|(?:async\s+)?(?:if|elif|else|elsif|unless|for|foreach|while|loop|do|try|except|catch|rescue"
    r"|ensure|finally|with|match|case|switch|when|default|select|return|raise|throw|throws|yield|break"
    r"|continue|goto|defer|end|done|fi|esac|then|class|def|fn|func|function|fun|sub)\b)"
)
_CLOSERS = re.compile(r"\s*[)\]}]+[;,)]*\s*$")
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|--|\"\"\"|''')")
_DOC = re.compile(r"(:) (?:\"{3}|'{3}).*$")
_ASIDE = re.compile(r"\s*(?:@|//|/\*|\*|#(?!\[|include)|\"{3}|'{3})")
MOST_MEMBERS = 10
"""Lines of a shortened outline."""
_LONGEST_HEAD = 120
"""Characters of a member's head from which on it is shortened."""
_MOST_NAMED = 24
"""Members that are only named."""
_FEW = 6
_MOST_HEAD = 12
"""Lines of a signature or of documentation that are kept."""
_MOST_JOINED = 20
"""Lines one statement can have before an open bracket is taken for a mistake."""


def condense(lines: Sequence[str], names: Collection[str], comment: str = "#", most: int = 0) -> str:
    """`lines` of one definition, shortened. A stretch left out is one comment line at its indentation; the
    result has no more lines than the input, and ends behind `most` lines. `comment` begins a comment to the
    end of the line."""
    statements = list(_statements(lines))
    if not statements:
        return ""
    gap = -1
    begin = _head(lines, statements)
    kept = ["\n".join(lines[:begin]).strip("\n")]
    touched = _touched(lines, set(names))
    for start, end in statements:
        if start < begin:
            continue
        if most and len(kept) >= most:
            return "\n".join([*kept, *_closing(lines)])
        text = "\n".join(lines[start:end])
        if _wanted(text, any(touched[start:end])):
            kept += [f"{' ' * gap}{comment} ..."] if gap >= 0 else []
            kept.append(text)
            gap = -1
        elif gap < 0:
            gap = len(text) - len(text.lstrip())
    kept += [f"{' ' * gap}{comment} ..."] if gap >= 0 else []
    return "\n".join(kept)


def head(lines: Sequence[str]) -> int:
    """How many lines the decorators, the signature and the documentation of a definition take."""
    statements = list(_statements(lines))
    return _head(lines, statements) if statements else 0


def _closing(lines: Sequence[str]) -> Sequence[str]:
    """The last line, where it closes a block."""
    return lines[-1:] if lines[-1].strip() in ("}", "};", "end") else ()


def brief(
    outline: str, text: str, most: int = MOST_MEMBERS, comment: str = "#", also: Iterable[str] = ()
) -> str:
    """An outline in at most `most` lines: heads without documentation or decorators. Members whose names
    `text` holds come first, because a file uses the same few members of a type again and again. One comment
    names others and `also`: a name is what a model cannot guess."""
    lines = _heads(outline)
    closing = len(_closing(lines)) if len(lines) > 1 else 0
    members = range(1, len(lines) - closing)
    kept = list(members)
    if len(lines) > most:
        used = [n for n in members if any(len(w) > 2 and w in text for w in _name(lines[n]))]
        rest = [n for n in members if n not in set(used)]
        kept = sorted([*used, *rest][: most - 1 - closing])
    told = {name for n in kept for name in _name(lines[n])}
    left = (name for n in members if n not in kept for name in _name(lines[n]))
    names = [n for n in dict.fromkeys((*left, *also)) if n not in told and not n.startswith("_")]
    body = [_short(lines[n]) for n in kept]
    if names:
        pad = " " * min((len(line) - len(line.lstrip()) for line in body), default=4)
        body.append(f"{pad}{comment} {', '.join(names[:_MOST_NAMED])}")
    return "\n".join([*lines[:1], *body, *lines[len(lines) - closing :]])


def _short(head: str) -> str:
    """A head without the parameters that make it long."""
    if len(head) <= _LONGEST_HEAD:
        return head
    cut = depth = 0
    for at, char in enumerate(head[:_LONGEST_HEAD]):
        depth += (char in "([{<") - (char in ")]}>")
        if char == "," and depth == 1 and "(" in head[:at]:
            cut = at
    return f"{head[:cut]}, ...)" if cut else head


def named(outline: str) -> list[str]:
    """The names of an outline's members that are not private."""
    return [name for line in _heads(outline)[1:] for name in _name(line) if not name.startswith("_")]


def _heads(outline: str) -> list[str]:
    """The lines of an outline that declare something."""
    lines = [_DOC.sub(r"\1 ...", line) for line in outline.rstrip().split("\n") if not _ASIDE.match(line)]
    return [line for line in lines if line.strip() not in ("...", "")]


def _touched(lines: Sequence[str], names: set[str]) -> list[bool]:
    """Which lines hold a name, leaving out names that stand in so many lines that they choose none."""
    held = [names.intersection(WORD.findall(line)) for line in lines]
    counts = Counter(chain.from_iterable(held))
    most = max(_FEW, len(lines) // 4)
    plenty = {name for name, count in counts.items() if count > most}
    return [not found <= plenty for found in held]


def _name(head: str) -> list[str]:
    """The name that a member's head declares, as a list of one or none."""
    before = re.split(r"[(:={;]", head, maxsplit=1)[0]
    return WORD.findall(before)[-1:]


def _wanted(text: str, touched: bool) -> bool:
    if _CONTROL.match(text) or _CLOSERS.match(text):
        return True
    if _COMMENT.match(text):
        return False
    return touched or text.rstrip().endswith("{")


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(first line, end) of each statement: lines joined while a round or square bracket is open. Blank lines
    belong to none."""
    start = depth = 0
    for number, line in enumerate(lines):
        if not depth:
            start = number
            if not line.strip():
                continue
        depth += line.count("(") + line.count("[") - line.count(")") - line.count("]")
        if depth <= 0 or number - start >= _MOST_JOINED:
            depth = 0
            yield start, number + 1
    if depth:
        yield start, len(lines)


def _head(lines: Sequence[str], statements: Sequence[tuple[int, int]]) -> int:
    """Line behind the decorators, the signature and the documentation below it."""
    place = 0
    while place < len(statements) - 1 and re.match(r"\s*(?:@|#\[)", lines[statements[place][0]]):
        place += 1
    end = min(statements[place][1], _MOST_HEAD)
    below = lines[end].strip() if end < len(lines) else ""
    for quote in ('"""', "'''"):
        if below.startswith(quote):
            stop = end + 1
            if below.count(quote) < 2:
                while stop < len(lines) and quote not in lines[stop]:
                    stop += 1
                stop += 1
            return min(stop, end + _MOST_HEAD)
    return end
