"""How much a cursor deserves: simple, medium or complex; one line or more; by rules on syntax and text.

    simple   what the line and its surroundings say is enough: comments, strings, imports, arguments
    medium   a statement that may need names of other files
    complex  more than one line is expected: an empty body, an opened block, a new definition

Rules look at the cursor's line, the nearest lines with text above and below, and at Surroundings; they cost
some microseconds.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from daemon.context.nearby import FEW
from daemon.context.oneline import WORD, closes, finished, indent_of, is_comment, literal, opens
from daemon.nouns import Lines
from daemon.settings import Context
from daemon.surroundings import Surroundings, WindowClass

_LOOK = 4000
"""Characters before and after the cursor that rules may look at."""
_LEAST = 256
_CLOSING = re.compile(r"[\s)\]}>\"'`;,:]*\Z").match
_DEFINING = re.compile(
    r"\s*(?:(?:export|default|pub(?:\([\w:]+\))?|public|private|protected|internal|static|async|abstract|final"
    r"|open|override|sealed|data|case|unsafe|virtual|inline|constexpr|local|suspend|partial|mutating)\s+)*"
    r"(def|class|fn|func|fun|function|interface|struct|enum|trait|impl|object|module|namespace|protocol|extension"
    r"|record)\b"
).match
_TYPE_HEADER = re.compile(
    r"\s*(?:[a-z]+\s+)*(?:class|interface|struct|enum|trait|impl|module|namespace|object)\b"
).match
_ANNOTATION = re.compile(r"\s*(?:@\w|#\[|\[\w+[\](])").match
_DOCUMENTATION = re.compile(r"\s*(?:///|//!|\*/|/\*\*.*\*/)").match
_BRANCHES = frozenset((
    "if", "elif", "else", "elsif", "elseif", "unless", "except", "catch", "finally", "rescue", "ensure",
    "case", "when",
))  # fmt: skip
"""Their blocks are short: in Python code 7 of 10 hold one statement."""
_TYPES = frozenset(("class", "interface", "struct", "enum", "trait", "impl", "module", "namespace", "object"))
_TRIPLE = ('"""', "'''")
_DOC_LINES = 80

Name = Literal["simple", "medium", "complex"]


class Judged(NamedTuple):
    """What the rules say, before the client and the machine are asked."""

    name: Name
    several: bool
    """More than one line is expected."""
    reason: str


class _Place(NamedTuple):
    """The cursor's line and what is next to it."""

    line: str
    rest: str
    above: str
    """The nearest line above that holds text."""
    below: str
    gap: bool
    """A blank line, or nothing at all, stands directly above."""
    over: tuple[str, ...]
    """Lines above the cursor's, the nearest last."""


def classify(
    around: Surroundings, before: str, after: str, asked: Lines, *, rate: float, settings: Context
) -> WindowClass:
    """The class of the cursor between `before` and `after`, and what it may take.

    `rate`: prompt tokens that this machine evaluates per millisecond; 0: not known. `asked`: what the client
    said about lines; everything but `auto` wins over the rules. p99 is about 0.2 ms.
    """
    judged = judge(around, before, after)
    lines: Lines = "block" if judged.several else "line"
    if asked != "auto":
        judged, lines = _as_asked(judged, asked), asked
    return sized(judged.name, lines, judged.reason, rate=rate, settings=settings)


def sized(name: Name, lines: Lines, reason: str, *, rate: float, settings: Context) -> WindowClass:
    """A class with what it may take on this machine."""
    context, bought = _context(name, rate, settings)
    output: int = getattr(settings, f"output_{name}")
    return WindowClass(name=name, lines=lines, context=context, output=output, reason=f"{reason}{bought}")


def _as_asked(judged: Judged, asked: Lines) -> Judged:
    if asked == "line":
        name = "medium" if judged.name == "complex" else judged.name
        return Judged(name, False, f"{judged.reason}; the client asks for one line")
    return Judged("complex", True, f"{judged.reason}; the client asks for {asked}")


def _context(name: str, rate: float, settings: Context) -> tuple[int, str]:
    """Prompt tokens, and why not all that the class has.

    A simple window must fit one jump (`jump_ms`); the others hold the same share of their size, because most
    of them is evaluated ahead. The complex window is whole on a machine twice as fast as that.
    """
    most: int = getattr(settings, f"window_{name}")
    fast = settings.window_simple * (2 if name == "complex" else 1)
    share = min(1.0, rate * settings.jump_ms / fast) if rate > 0 else settings.window_simple / fast
    tokens = min(most, max(_LEAST, int(most * share)))
    return tokens, "" if tokens == most else f"; {tokens} of {most} tokens, as this machine evaluates"


def judge(around: Surroundings, before: str, after: str) -> Judged:
    """The rules, in order; the first that applies decides."""
    place = _place(before, after)
    if around.zone in ("comment", "string", "import"):
        return Judged("simple", False, f"in {'an' if around.zone == 'import' else 'a'} {around.zone}")
    if place.rest.strip():
        return _before_text(place)
    if not place.line.strip():
        return _fresh_line(place, around)
    return _end_of_line(place, around)


def _place(before: str, after: str) -> _Place:
    start = before.rfind("\n") + 1
    rest, _, following = after[:_LOOK].partition("\n")
    over = tuple(before[max(0, start - _LOOK) : max(0, start - 1)].split("\n")) if start else ()
    return _Place(
        line=before[max(start, len(before) - _LOOK) :],
        rest=rest,
        above=next((text for text in reversed(over) if text.strip()), ""),
        below=next((text for text in following.split("\n") if text.strip()), ""),
        gap=not over or not over[-1].strip(),
        over=over,
    )


def _before_text(place: _Place) -> Judged:
    """Text follows the cursor on its line."""
    opened, rest = place.line.rstrip(), place.rest.strip()
    if opened.endswith("{") and rest.startswith("}") and not literal(opened):
        return Judged("complex", True, "between the braces of an empty block")
    if _CLOSING(rest):
        return Judged("simple", False, "brackets close after the cursor")
    return Judged("simple", False, "text follows on the line")


def _fresh_line(place: _Place, around: Surroundings) -> Judged:
    """Nothing stands on the line yet."""
    header = _header(place, around.language)
    inside = bool(place.below) and indent_of(place.below) > indent_of(header) and not closes(place.below)
    members = bool(_TYPE_HEADER(header)) and place.gap
    if header and not members:
        if not inside:
            return _empty(header, around, "an empty block", fresh=True)
        return _statement(around, "the first statement of a block that has others")
    if _ANNOTATION(place.above) and not place.gap:
        return Judged("complex", True, "a definition under its decorator")
    if _DOCUMENTATION(place.above) and not place.gap:
        return Judged("complex", True, "a definition under its documentation")
    if not around.chain and is_comment(place.above, around.language) and not place.gap:
        return Judged("complex", True, "a definition under its comment")
    if members or (place.gap and (not around.chain or around.chain[-1].kind in _TYPES)):
        at = max(indent_of(place.line), around.indent)
        if not around.chain and at > 0 and not members:
            return _statement(around, "a statement")
        return Judged("complex", True, "a new definition" if place.over else "the beginning of a file")
    where = f"in {around.chain[-1].name}" if around.chain else "outside of functions"
    return _statement(around, f"a statement {where}")


def _statement(around: Surroundings, reason: str) -> Judged:
    """One line; whether it may need other files is told by what is used near it."""
    names = frozenset(around.imports)
    if near := next((name for name in around.names[:FEW] if name in names), ""):
        return Judged("medium", False, f"{reason}; {near} of another file is near")
    return Judged("simple", False, reason)


def _empty(header: str, around: Surroundings, reason: str, fresh: bool = False) -> Judged:
    """Nothing stands below `header` yet; `fresh`: the cursor stands there."""
    words = WORD.findall(header)[:2]
    if branch := next((word for word in words if word in _BRANCHES), ""):
        if fresh:
            return Judged("medium", False, f"the empty branch of {branch}")
        return Judged("complex", True, f"the line opens a branch of {branch}")
    if around.chain and around.chain[-1].name in header:
        return Judged("complex", True, f"the empty body of {around.chain[-1].name}")
    return Judged("complex", True, reason)


def _end_of_line(place: _Place, around: Surroundings) -> Judged:
    """The cursor stands behind what is on its line."""
    line = place.line.rstrip()
    held = bool(place.below) and indent_of(place.below) > indent_of(line)
    if opens(line, around.language):
        if held:
            return Judged("simple", False, "the block that the line opens is there")
        return _empty(line, around, "the line opens a block")
    if defining := _DEFINING(line):
        if held:
            return Judged("simple", False, "the header of a definition that is there")
        return Judged("complex", True, f"a new {defining.group(1)}")
    if _ANNOTATION(line):
        return Judged("simple", False, "a decorator")
    used = WORD.findall(line)
    known = next((name for name in reversed(used) if name in around.imports), "")
    if known:
        return Judged("medium", False, f"the line uses {known} of another file")
    if finished(line):
        return Judged("simple", False, "the line is all but finished")
    return Judged("simple", False, "the rest of a line")


def _header(place: _Place, language: str) -> str:
    """The line whose block would begin here: the one above, or the one above a docstring; else empty."""
    if opens(place.above, language):
        return place.above
    text = place.above.strip()
    if language != "python" or not text.endswith(_TRIPLE):
        return ""
    lines = [row for row in place.over[-_DOC_LINES:] if row.strip()]
    mark = text[-3:]
    single = len(text) >= 6 and text.lstrip("rRbBuUfF").startswith(mark)
    for back in range(len(lines) - (1 if single else 2), -1, -1):
        if lines[back].strip().lstrip("rRbBuUfF").startswith(mark):
            above = lines[back - 1] if back else ""
            return above if opens(above, language) else ""
    return ""
