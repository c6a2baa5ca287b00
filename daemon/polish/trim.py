"""The rules of polish: small pure functions, each for faults that were seen in the field.

They work on LF text. `head` is the cursor's line up to the cursor, `rest` what follows the cursor on it.
Rows F1-… are those of the project's list of field faults. What a rule may take away, emit.py holds back
until the rule can no longer take it.
"""

from __future__ import annotations

import functools
import re

from daemon.polish.brackets import QUOTES, Scan, open_quote, scan
from daemon.polish.control import CONTROL

_CONTROL = re.compile("|".join(re.escape(mark) for mark in CONTROL))
_LONGEST = max(len(mark) for mark in CONTROL)
_MARKUP = frozenset(
    {"html", "xml", "markdown", "vue", "svelte", "php", "asciidoc", "rst", "restructuredtext"}
)
_WORD_END = re.compile(r"\w+\Z")
TRIPLES = ('"""', "'''")
BLANKS = " \t\n"
_NON_SPACE = 8
_TIGHT = ")];,.:"
_KEYWORD_CLOSERS = frozenset(
    {"end", "end;", "fi", "done", "esac", "endif", "else", "else:", "finally:", "*/"}
)
_CLOSING = frozenset(")]};,")


def control_at(text: str, start: int, documents: tuple[str, str]) -> int:
    """Where the first control string at or after `start` begins, -1 when there is none (F1-01, F1-02, F1-04).

    A string that the document itself contains is the user's own text, as in a tokenizer's tests (F1-08).
    """
    for match in _CONTROL.finditer(text, start):
        if not any(match.group() in document for document in documents):
            return match.start()
    return -1


def control_partial(text: str, start: int) -> int:
    """Where an unfinished control string at the end of `text` begins; its length if there is none (F1-11)."""
    at = text.find("<", max(start, len(text) - _LONGEST))
    while at >= 0:
        tail = text[at:]
        if any(mark.startswith(tail) for mark in CONTROL):
            return at
        at = text.find("<", at + 1)
    return len(text)


def fence(line: str, language: str | None, documents: tuple[str, str]) -> bool:
    """Whether a line is a Markdown fence in a document that has none: the model began to chat (F1-04)."""
    if not line.lstrip().startswith("```") or (language or "").lower() in _MARKUP:
        return False
    return not any("```" in document for document in documents)


def leading(head: str, first: str, unit: int) -> str:
    """The first line without a second blank (F1-23).

    After text that ends with one blank no blank follows, unless it sets off a comment; several blanks are
    an alignment and left alone. At an indentation the model may indent deeper by whole steps of `unit`
    columns, but a stray blank before the first word is dropped.
    """
    bare = first.lstrip(" \t")
    if not head or head[-1] not in " \t" or bare == first:
        return first
    if head.strip():
        return first if head[-2] in " \t" or bare.startswith(("#", "//")) else bare
    if not bare or "\t" in head or first.startswith("\t"):
        return first
    blanks = len(first) - len(bare)
    if len(head) % unit:
        return bare if blanks == 1 else first
    return " " * (blanks - (len(head) + blanks) % unit) + bare if (blanks % unit) else first


def indent_style(prefix: str, suffix: str) -> tuple[str, int]:
    """`("\\t" or " " or "", columns of one step)` of the text around the cursor; `""` when it is mixed.

    Reads 4,000 characters above and below the cursor's line only.
    """
    start, end = prefix.rfind("\n") + 1, suffix.find("\n") + 1
    head = prefix[start : start + 4000]
    own = head[: len(head) - len(head.lstrip())] + "x" * bool(head.strip())
    return _style(prefix[max(0, start - 4000) : start], own, suffix[end : end + 4000] if end else "")


@functools.lru_cache(maxsize=8)  # who types on a line asks the same each time
def _style(above: str, own: str, below: str) -> tuple[str, int]:
    lines = [*above.split("\n")[1 if len(above) == 4000 else 0 : -1], own, *below.split("\n")]
    tabs, steps, last = 0, [], 0
    for line in lines:
        if line.startswith("\t"):
            tabs += 1
        elif line.startswith("  ") and line.strip():
            steps.append(len(line) - len(line.lstrip(" ")))
    if tabs * 10 <= len(steps) and steps:
        deltas = [abs(this - before) for before, this in zip([last, *steps], steps, strict=False)]
        common = [step for step in (2, 4, 8) if deltas.count(step)]
        return " ", max(common, key=deltas.count, default=4)
    return ("\t", 4) if tabs and len(steps) * 10 <= tabs else ("", 4)


def reindent(line: str, style: tuple[str, int]) -> str:
    """The line's indentation in the file's own kind, tabs or spaces; the rest stays."""
    kind, unit = style
    bare = line.lstrip(" \t")
    blanks = line[: len(line) - len(bare)]
    if kind == "\t" and "  " in blanks:
        columns = len(blanks.replace("\t", " " * unit))
        return "\t" * max(1, columns // unit) + " " * (columns % unit if columns > unit else 0) + bare
    if kind == " " and "\t" in blanks:
        return blanks.replace("\t", " " * unit) + bare
    return line


def trivial(line: str) -> bool:
    """Whether a line says too little to count as repeated: under eight characters, or no letters."""
    dense = "".join(line.split())
    return len(dense) < _NON_SPACE or not any(map(str.isalpha, dense))


def closer(line: str) -> bool:
    """Whether a line only closes or continues a block: `});`, `end`, `else:`, `</div>`, three quotes."""
    bare = line.strip()
    if bare in _KEYWORD_CLOSERS or bare.startswith("</") or bare in TRIPLES:
        return True
    return bare[:1] in (")", "]", "}") and _CLOSING.issuperset(bare)


def boundary(text: str) -> str:
    """What remains when a limit ended the text: whole lines, or whole words of a single line (F1-26).

    Text whose last line is complete (it ends with LF) stays.
    """
    kept, end, _ = text.rpartition("\n")
    return kept if end and kept.strip() else _WORD_END.sub("", text)


def trailing(text: str, rest: str) -> str:
    """The text without blanks at its end, except where they part it from what follows the cursor.

    Line ends before text that follows stay: there the model wrote whole lines in front of it (F2-18).
    """
    bare = text.rstrip(BLANKS)
    blanks = text[len(bare) :]
    if not bare or not rest.strip():
        return bare
    if "\n" in blanks:
        return text
    return bare if rest[0].isspace() or rest[0] in _TIGHT else text


def overlap_start(text: str, rest: str) -> int:
    """The first offset from which `text` runs to its end along `rest`; its length when there is none."""
    follows = rest.strip()
    if not follows:
        return len(text)
    at = text.find(follows[0], max(0, len(text) - len(follows)))
    while at >= 0:
        if follows.startswith(text[at:]):
            return at
        at = text.find(follows[0], at + 1)
    return len(text)


def cursor_quote(head: str, rest: str) -> str:
    """The quote that the cursor stands in, if what follows the cursor has its partner."""
    if not QUOTES.intersection(rest):
        return ""
    quote = open_quote(head)
    return quote if quote and quote in rest else ""


def same_line(
    text: str, rest: str, quote: str = "", replaces: bool = True, comment: str = "", *, wanted: int = 0
) -> tuple[str, int]:
    """Text without what already follows the cursor, and how many characters of `rest` it replaces.

    An editor's auto-closed bracket or quote must not stand there twice (F1-20). A closer that the text
    itself opened stays: `foo(a)` before `)`. Where the text goes on beyond the duplicate, it replaces it;
    with `replaces` off it is cut before it instead. `quote` is the string the cursor stands in, `comment`
    begins comments, and `wanted` is how many brackets the text should leave open.
    """
    follows = rest.strip()
    if not follows or not text.strip():
        return text, 0
    whole = _without_overlap(text, follows, quote, comment, least=len(follows), wanted=wanted)
    if whole != text:
        return whole, 0
    outcome = _beyond(text, follows, scan(text, quote, comment), replaces)
    if outcome is None:
        return _without_overlap(text, follows, quote, comment, least=1, wanted=wanted), 0
    kept, replaced = outcome
    return kept, replaced + rest.index(follows) if replaced else 0


def same_line_safe(text: str, rest: str, quote: str = "", replaces: bool = True, comment: str = "") -> int:
    """How much of `text` same_line leaves in place, however the text goes on."""
    follows = rest.strip()
    if not follows:
        return len(text)
    if not replaces and _repeats_whole(text, follows):
        return 0
    closers = scan(text, quote, comment).closers
    safe = closers[0][0] if closers and closers[0][1] == follows[0] else len(text)
    return min(safe, overlap_start(text, rest))


def _without_overlap(text: str, follows: str, quote: str, comment: str, *, least: int, wanted: int) -> str:
    """Cut the longest end of `text` that begins `follows`, on word borders and with brackets in balance.

    Ends shorter than `least` characters stay.
    """
    bare = text.rstrip(BLANKS)
    bare = text if "\n" in text[len(bare) :] else bare
    for size in range(min(len(follows), len(bare)), least - 1, -1):
        start = len(bare) - size
        if not bare.endswith(follows[:size]) or _inside_word(follows, size) or _inside_word(bare, start):
            continue
        before = scan(bare[:start], quote, comment)
        if before.unclosed in (0, wanted) and before.quote == quote:
            return bare[:start]
    return text


def _repeats_whole(text: str, follows: str) -> bool:
    """Whether the text begins with all that follows the cursor and goes on."""
    return len(text) > len(follows) and text.startswith(follows) and not _inside_word(text, len(follows))


def _beyond(text: str, follows: str, found: Scan, replaces: bool) -> tuple[str, int] | None:
    """The case of a text that repeats `follows`' first characters and goes on; None when it does not."""
    if _repeats_whole(text, follows):
        return (text, len(follows)) if replaces else ("", 0)
    if not found.closers or follows[0] != found.closers[0][1]:
        return None
    first = found.closers[0][0]
    tail = text[first:]
    if follows.startswith(tail.rstrip()) or not replaces:
        return text[:first], 0
    if tail.startswith(follows):
        return text, len(follows)
    count = 0
    for (_, char), there in zip(found.closers, follows, strict=False):
        if char != there:
            break
        count += 1
    remaining = follows[count:].strip()
    if count == len(found.closers):
        if remaining and text.rstrip().endswith(remaining):
            return text, len(follows)
        if not any(map(str.isalnum, remaining)) and ("\n" not in text or not remaining):
            return text, count
    return text[:first], 0


def _inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and _word(text[at - 1]) and _word(text[at])


def _word(char: str) -> bool:
    return char.isalnum() or char == "_"
