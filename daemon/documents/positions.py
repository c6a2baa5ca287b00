"""Positions and encodings: the one place where lines, characters, offsets and line ends are counted.

Inside the daemon text is LF only, free of a byte order mark and of lone surrogates; the file's own line
end is remembered and restored on the way out (faults F1-14, F1-16, F2-02, F2-11, F2-12, F2-15).
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from itertools import accumulate
from typing import Literal

import msgspec

Encoding = Literal["utf-8", "utf-16", "utf-32"]
"""The unit in which a client counts characters of a line: bytes, UTF-16 code units, or code points."""

BOM = "\ufeff"
_BLOCK = 256
_EOL = re.compile(r"\r\n|\r|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Split(msgspec.Struct, frozen=True):
    """A document cut at the cursor. `prefix` and `suffix` are LF only, without mark or lone surrogates."""

    prefix: str
    suffix: str
    newline: str
    """The file's dominant line end: `\\n`, `\\r\\n` or `\\r`."""
    clamped: bool
    """The position did not exist; the nearest one before it was taken."""
    bom: bool
    """The text as sent began with a byte order mark."""


def split(text: str, line: int, character: int, encoding: Encoding = "utf-16") -> Split:
    """Cut `text` at a zero-based line and a zero-based character counted in `encoding` units.

    A mark at the start counts as a character of the first line, because the client counted its own text.
    """
    return _cut(text, *locate(text, line, character, encoding))


def locate(text: str, line: int, character: int, encoding: Encoding = "utf-16") -> tuple[int, bool]:
    """The offset of one position, as LineIndex.offset gives it. One position needs one line: no index is
    built, which matters at every keystroke in a large file."""
    if line < 0 or _lone_returns(text):
        return LineIndex(text).offset(line, character, encoding)
    parts = text.split("\n", line)
    if len(parts) <= line:
        return len(text), True
    start = len(text) - len(parts[-1])
    end = parts[-1].find("\n")
    content = parts[-1][: end if end >= 0 else None]
    if end > 0:
        content = content.removesuffix("\r")
    # A character has at least one unit, so the position lies within this many characters.
    offset, clamped = LineIndex(content[: max(character, 0) + 1]).offset(0, character, encoding)
    return start + offset, clamped


def split_at(text: str, offset: int) -> Split:
    """Cut `text` at an offset in code points of the text as sent; outside values are clamped."""
    inside = min(max(offset, 0), len(text))
    return _cut(text, inside, inside != offset)


def pair(prefix: str, suffix: str) -> Split:
    """The same for a client that cut its document itself, perhaps between CR and LF."""
    return _cut(prefix + suffix, len(prefix), False)


def normalise(text: str) -> tuple[str, str]:
    """`text` as the daemon keeps it (LF, no mark, no lone surrogates), and its dominant line end."""
    return _clean(text.removeprefix(BOM)), dominant_newline(text)


def denormalise(text: str, newline: str) -> str:
    """LF text with the file's own line ends."""
    return text if newline == "\n" else text.replace("\n", newline)


def dominant_newline(text: str) -> str:
    """The most frequent line end; LF when there is none or in a tie."""
    returns = text.count("\r")
    if not returns:
        return "\n"
    both = text.count("\r\n")
    counts = {"\n": text.count("\n") - both, "\r\n": both, "\r": returns - both}
    return max(counts, key=lambda end: counts[end])


def decode(raw: bytes) -> str:
    """Bytes of a file as text, never failing: a mark chooses the encoding and is removed, else UTF-8.

    Bytes that are not of the encoding become U+FFFD (F2-08, F2-09).
    """
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(name, errors="replace")
    return raw.decode("utf-8", errors="replace")


class LineIndex:
    """Converts between code-point offsets and (line, character) of one text as sent, in O(log n).

    Lines end with LF, CRLF or CR, as in LSP. Lone surrogates count as the client's own string counts them:
    one UTF-16 unit, three bytes. Building is linear and happens once.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = _line_starts(text)
        """Offset of the first character of each line; the first is 0."""
        self._ascii = text.isascii()
        self._units: dict[str, list[int]] = {}

    def line_end(self, line: int) -> int:
        """Offset just before the line end of an existing line."""
        if line + 1 >= len(self.starts):
            return len(self.text)
        end = self.starts[line + 1] - 1
        return (
            end - 1
            if self.text[end] == "\n" and end > self.starts[line] and self.text[end - 1] == "\r"
            else end
        )

    def offset(self, line: int, character: int, encoding: Encoding = "utf-16") -> tuple[int, bool]:
        """The offset of a position, and whether it had to be clamped.

        Beyond the last line means the end of the text, beyond a line means its end, inside a character
        means its start.
        """
        if line < 0:
            return 0, True
        if line >= len(self.starts):
            return len(self.text), True
        start, end = self.starts[line], self.line_end(line)
        if character < 0:
            return start, True
        if self._ascii or encoding == "utf-32":
            return min(start + character, end), start + character > end
        target = self._before(start, encoding) + character
        found = self._at(target, encoding)
        if found >= end:
            return end, self._before(end, encoding) != target
        return found, self._before(found, encoding) != target

    def position(self, offset: int, encoding: Encoding = "utf-16") -> tuple[int, int]:
        """The (line, character) of an offset, clamped to the text; between CR and LF is before the CR."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self.starts, offset) - 1
        offset = min(offset, self.line_end(line))
        if self._ascii or encoding == "utf-32":
            return line, offset - self.starts[line]
        return line, self._before(offset, encoding) - self._before(self.starts[line], encoding)

    def _sums(self, encoding: Encoding) -> list[int]:
        """Units before each block of `_BLOCK` characters, counted once per encoding."""
        if encoding not in self._units:
            blocks = range(0, len(self.text), _BLOCK)
            sizes = (units(self.text[at : at + _BLOCK], encoding) for at in blocks)
            self._units[encoding] = list(accumulate(sizes, initial=0))
        return self._units[encoding]

    def _before(self, offset: int, encoding: Encoding) -> int:
        """Units before an offset."""
        block = offset // _BLOCK
        return self._sums(encoding)[block] + units(self.text[block * _BLOCK : offset], encoding)

    def _at(self, target: int, encoding: Encoding) -> int:
        """The offset of the character that holds unit `target`; the length of the text when beyond."""
        sums = self._sums(encoding)
        if target >= sums[-1]:
            return len(self.text)
        block = bisect_right(sums, target) - 1
        offset, passed = block * _BLOCK, sums[block]
        for char in self.text[offset : offset + _BLOCK]:
            passed += units(char, encoding)
            if passed > target:
                break
            offset += 1
        return offset


def units(text: str, encoding: Encoding) -> int:
    """How many units of `encoding` a text has. Lone surrogates count as in LineIndex."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-16":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))


def _lone_returns(text: str) -> bool:
    """Whether a CR without LF ends a line."""
    return "\r" in text and text.count("\r") != text.count("\r\n")


def _line_starts(text: str) -> list[int]:
    if _lone_returns(text):
        return [0, *(match.end() for match in _EOL.finditer(text))]
    # Every CR belongs to a CRLF: splitting at LF finds the same lines four times faster.
    lengths = (len(line) + 1 for line in text.split("\n"))
    starts = list(accumulate(lengths, initial=0))
    starts.pop()
    return starts


def _cut(text: str, offset: int, clamped: bool) -> Split:
    bom = text.startswith(BOM)
    newline = dominant_newline(text)
    if 0 < offset < len(text) and text[offset - 1] == "\r" and text[offset] == "\n":
        offset -= 1
    start = 1 if bom else 0
    prefix, suffix = text[start : max(offset, start)], text[max(offset, start) :]
    return Split(_clean(prefix), _clean(suffix), newline, clamped, bom)


def _clean(text: str) -> str:
    """LF line ends and no lone surrogates."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return sound(text)


def sound(text: str) -> str:
    """`text` with U+FFFD in place of each lone surrogate; the same object when it has none."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def joined(text: str) -> str:
    """`text` as UTF-16 has it: two halves of a character that came one after the other are one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def points(text: str, count: int, encoding: Encoding = "utf-16") -> int:
    """How many code points of `text` lie whole within its first `count` units."""
    return bisect_right(list(accumulate(units(char, encoding) for char in text)), count)
