"""What lines alone tell of a place: indentation, openers, enclosing definitions, zone.

For texts without a grammar, and where the syntax is broken: half-written code keeps its indentation.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from daemon.context.oneline import TAB, indent_of, without_comment
from daemon.surroundings import Scope, Zone
from indexer.languages.registry import Language


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOST_LINES: Final = 2_000
"""Lines above the cursor that are looked at for what encloses it."""
_END_LINES: Final = 400
_BELOW: Final = 4_000
"""Characters behind the cursor in which lines are looked for."""
_LONG: Final = 2_000
"""Characters of a line beyond which only its ends are looked at: no person wrote it."""
_ENDED: Final = ("ruby", "lua")
"""Languages whose blocks are opened by the first word of a line and closed by `end`."""
_COLON: Final = ("python", "scala", "")
_LAST_WORDS: Final = ("do", "then", "else", "begin", "try", "repeat", "ensure", "finally", "loop")
_LABEL: Final = re.compile(r"\s*(?:case\b.*|default|public|private|protected)\s*:$")
_FIRST: Final = re.compile(
    r"\s*(?:local\s+)?(?:def|class|module|function|begin|unless|until|while|case|if|for)\b"
)
_BLOCK_ARGUMENTS: Final = re.compile(r"(?:\bdo|\{)\s*\|[^|]*\|$|\bfunction\s*[\w.:]*\([^()]*\)$")
_KINDS: Final = {
    "class": "class", "interface": "interface", "struct": "struct", "enum": "enum", "trait": "trait",
    "impl": "class", "module": "module", "namespace": "namespace", "object": "class", "protocol": "interface",
    "extension": "class", "actor": "class", "union": "struct", "record": "class", "mod": "module",
    "type": "type", "macro_rules!": "macro",
}  # fmt: skip
_KEYWORD: Final = re.compile(
    r"^[\w\s@.,()<>\[\]\"*&#']*?(?<![\w.])(class|interface|struct|enum|trait|impl|module|namespace|object|protocol"
    r"|extension|actor|union|record|mod|type|macro_rules!|def|fn|func|fun|function\*?|sub)\s+"
    r"(?:\([^)]*\)\s*)?(?:<[^>]*>\s*)?([^\W\d][\w.:$?!]*)"
)
_RETURNED: Final = ("struct", "enum", "union")
_RETURNS: Final = re.compile(r"\s*[*&]|\s+[\w:]+\s*\(")
"""What follows the name of a type that a C function returns."""
_ASSIGNED: Final = re.compile(
    r"^\s*(?:export\s+)?(?:default\s+)?(?:const|let|var|local|val)?\s*([\w.$:]+)\s*[=:]\s*"
    r"(?:async\s*)?(?:function\b|\([^()]*\)[^=]*=>|\w+\s*=>)"
)
_CALLED: Final = re.compile(r"^\s*(?:[\w:<>,*&~\[\]?@.]+\s+)*([*&]*[\w:~$#]+)\s*\([^;]*$")
_CONTROL: Final = _words(
    "if for while switch catch return else do match when foreach using lock synchronized elif elsif "
    "elseif unless until with except case try guard await throw new print assert del yield echo super "
    "this self require import "
)
_IMPORT: Final = re.compile(
    r"^\s*(?:import\b|from\s+[.\w]*(?:\s+import\b|$|\s)|(?:pub\s+)?use\s|using\s+(?!var\b|\(|\w+\s*=)|#\s*include\b"
    r"|#\s*import\b|require(?:_once|_relative)?\b|include(?:_once)?\b|source\s|@import\b|extern\s+crate\b"
    r"|(?:export|import)\b.*\bfrom\s)"
)
_RETURN_TYPE: Final = re.compile(r"->\s*[\w.\[\]<>:]*$")


class Place(NamedTuple):
    """The cursor among its lines."""

    head: str
    """The cursor's line up to the cursor."""
    rest: str
    """The cursor's line after the cursor."""
    above: Sequence[str]
    """Lines above, the nearest last."""
    first: int
    """Number of the first of them."""
    below: Sequence[str]
    indent: int
    """Columns at which the next statement is expected."""
    deepens: bool
    """The line up to the cursor expects lines indented further below it."""

    @property
    def line(self) -> int:
        """Number of the cursor's line."""
        return self.first + len(self.above)


def place(text: str, offset: int, line: int, language: Language | None, most: int = MOST_LINES) -> Place:
    """The lines around an offset, at most `most` above; `line` is the number of the cursor's line."""
    start = text.rfind("\n", 0, offset) + 1
    head = _ends(text[start:offset])
    above = text[:start].rsplit("\n", most + 1)[:-1][-most:]
    if max(map(len, above), default=0) > _LONG:
        above = [_ends(one) for one in above]
    rest, *below = text[offset : offset + _BELOW].split("\n", 60)[:60]
    deeper = deepens(head, language)
    indent = _expected(head, above, below, deeper, language)
    return Place(head, rest, above, line - len(above), below, indent, deeper)


def _ends(line: str) -> str:
    return line if len(line) <= _LONG else line[: _LONG // 2] + line[-_LONG // 2 :]


def deepens(line: str, language: Language | None) -> bool:
    """Whether lines indented further are expected below a line: those of a block, or of a literal."""
    name = language.name if language is not None else ""
    text = without_comment(line, name).rstrip()
    if not text:
        return False
    if text.endswith(("{", "=>")) or _LABEL.match(text) or _BLOCK_ARGUMENTS.search(text):
        return True
    if text.endswith(":") and name in _COLON:
        return True
    if name in _ENDED and _FIRST.match(text):
        return not re.search(r"\bend$", text)
    return text.endswith("->") or text.split()[-1] in _LAST_WORDS


def _expected(
    head: str, above: Sequence[str], below: Sequence[str], deeper: bool, language: Language | None
) -> int:
    own = indent_of(head + ".")
    if head.strip():
        return own + _unit(above, below) if deeper else own
    if own:
        return own
    last = next((line for line in reversed(above[-200:]) if line.strip()), "")
    if deepens(last, language) or last.rstrip().endswith(("(", "[")):
        return indent_of(last) + _unit(above, below)
    after = next((line for line in below if line.strip()), "")
    return min(indent_of(last), indent_of(after))


def _unit(above: Sequence[str], below: Sequence[str]) -> int:
    """Columns of one step: the smallest that is found near by."""
    widths = [indent_of(line) for line in (*above[-60:], *below[:30]) if line.strip()]
    steps = [b - a for a, b in itertools.pairwise(widths) if b > a]
    common = [step for step in (4, 2, 8, 3) if step in steps]
    return max(common, key=steps.count, default=TAB)


def chain(where: Place) -> tuple[Scope, ...]:
    """Enclosing definitions by indentation, the outermost first. Bytes are 0: only lines are known."""
    floor = where.indent + where.deepens
    if where.head.strip():
        floor = indent_of(where.head + ".")
    found: list[Scope] = []
    deep = _deep(floor)
    if where.deepens and (own := _definition(where.head)):
        found.append(_scope(own, where.head, where.line, _end(where.below, floor, where.line + 1)))
    for back in range(len(where.above) - 1, -1, -1):
        if floor <= 0:
            break
        text = where.above[back]
        if text.startswith(deep) or not text or text.isspace() or (width := indent_of(text)) >= floor:
            continue
        if text.lstrip()[0] not in "#{})]/*-" or text.lstrip().startswith("} "):
            floor, deep = width, _deep(width)
            if (own := _definition(_joined(where.above, back))) is not None:
                found.append(_scope(own, text, where.first + back, _end(where.below, width, where.line + 1)))
    return tuple(reversed(found))


def _deep(width: int) -> tuple[str, str]:
    """Beginnings of most lines that are indented that much: looking at these first is ten times faster."""
    return " " * max(width, 1), "\t" * max(-(-width // TAB), 1)


def _joined(lines: Sequence[str], at: int) -> str:
    """A header whose parentheses go on over the next lines."""
    text = lines[at]
    return (
        text + " " + lines[at + 1].strip()
        if text.count("(") > text.count(")") and at + 1 < len(lines)
        else text
    )


def _definition(text: str) -> tuple[str, str] | None:
    """Kind and name of what a line defines."""
    text = text[:400]
    match = _KEYWORD.match(text)
    if match is not None and not (match[1] in _RETURNED and _RETURNS.match(text, match.end())):
        word, name = match[1], match[2]
        if word == "impl" and (target := re.search(r"\bfor\s+([\w:]+)", text)):
            name = target[1]
        return _KINDS.get(word, "function"), name.rstrip(":.")
    if (match := _ASSIGNED.match(text)) is not None:
        return "function", match[1]
    if (match := _CALLED.match(text)) is not None or (
        match := _CALLED.match(text.rstrip().rstrip("{;").rstrip())
    ):
        name = match[1].lstrip("*&")
        first = text.split(maxsplit=1)[0].rstrip("(")
        if name not in _CONTROL and first not in _CONTROL and text.rstrip().endswith(("{", ")", ",", "(")):
            return "function", name
    return None


def _scope(own: tuple[str, str], header: str, start: int, end: int) -> Scope:
    signature = " ".join(header.split()).rstrip(" :={;,")[:400]
    return Scope(
        kind=own[0],
        name=own[1],
        signature=signature,
        start_line=start,
        end_line=end,
        start_byte=0,
        end_byte=0,
    )


def _end(below: Sequence[str], width: int, line: int) -> int:
    """The first line below that is indented no more than `width`, its closer included."""
    for step, text in enumerate(below[:_END_LINES]):
        if text.strip() and indent_of(text) <= width:
            return line + step + (text.lstrip()[0] in "})]" or text.strip() == "end")
    return line + len(below)


def zone(where: Place, language: Language | None) -> Zone:
    """Judged by the cursor's line alone."""
    marker = language.line_comment if language is not None else ""
    head = where.head
    if marker and head.lstrip().startswith(marker):
        return "comment"
    if _IMPORT.match(head):
        return "import"
    if _in_quotes(head, marker):
        return "string"
    if marker and f" {marker}" in head:
        return "comment"
    return "type" if _RETURN_TYPE.search(head) and not head.rstrip().endswith("{") else "code"


def _in_quotes(head: str, marker: str) -> bool:
    """Quotes are open at the end. A lone `'` after a letter is an apostrophe or a lifetime."""
    quote, escaped, last = "", False, ""
    for letter in head[-1000:]:
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter == '"' or (letter == "'" and not last.isalnum() and last not in "&<"):
            quote = letter
        last = letter
    return bool(quote) and not (marker and f" {marker}" in head)
