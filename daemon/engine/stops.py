"""Where a generation ends: stop strings at their earliest place, lines, dedent, brackets, overlap, repeats.

Bytes come in token by token; whole characters go out. What a stop could still take back is held: at most a
partial stop string and the beginning of a line whose indentation is not known yet. Overlap and repetition end
the generation; what of it is shown is polish's decision.
"""

from __future__ import annotations

import codecs
from copy import copy

from daemon.engine.closing import closed_at
from daemon.nouns import Limits, StopReason

_OPENERS = ("{", ":", "(", "[", "=>", "->", "do", "then")
_CLOSERS = ("}", ")", "]", "end")
_REPEATS = 3


def indent_of(line: str) -> int:
    """Columns of leading white space; a tab counts 4."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def opens_block(line: str) -> bool:
    """Whether a complete line asks for an indented block below it."""
    text = line.rstrip()
    return text.endswith(_OPENERS[:4]) or text.split(" ")[-1] in _OPENERS[4:]


class Stops:
    """Watches one generation. `line` is the cursor's line before the cursor, `suffix` the text after it,
    `above` the last lines over the cursor's, `closes` as in Submit."""

    def __init__(
        self, limits: Limits, line: str, suffix: str, above: tuple[str, ...], closes: str = ""
    ) -> None:
        self._limits = limits
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = line
        self._closer = closes
        self._suffix = next((s.rstrip() for s in suffix.split("\n")[1:] if s.strip()), "")
        self._above = tuple(a.rstrip() for a in above)
        self._longest = max((len(s) for s in limits.stop), default=0)
        self._text = ""
        self._out = 0
        self._line_start = 0
        self._floor: int | None = limits.indent
        self._block = limits.lines == "free"
        if limits.lines == "block":
            self._block = True
            self._floor = max(limits.indent or 0, indent_of(line) + opens_block(line))
        self.reason: StopReason | None = None
        self.stop_word = ""
        self.line_complete = False

    def copy(self) -> Stops:
        """To look at what may follow."""
        made = copy(self)
        made._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        made._decoder.setstate(self._decoder.getstate())
        return made

    @property
    def text(self) -> str:
        """Everything that belongs to the answer so far, held text included."""
        return self._text

    def feed(self, data: bytes) -> str:
        """Add bytes; returns the text that no stop can take back. Sets `reason` when the generation ends.

        Works character by character, so that the portions in which a model speaks change nothing.
        """
        fresh = self._decoder.decode(data)
        if self._harmless(fresh):
            self._text += fresh
            return self._release()
        for character in fresh:
            self._text += character
            if self._stop_string() or (character == "\n" and self._line_ended(len(self._text) - 1)):
                break
            if character == self._closer and closed_at(self._text, character) == len(self._text) - 1:
                self._end("closed", len(self._text) - 1)
                break
            if not character.isspace() and self._dedented(self._text[self._line_start :]):
                self._end("dedent", self._line_start - 1)
                break
        return self._release()

    def _harmless(self, fresh: str) -> bool:
        """Whether nothing in it can end the text: most tokens are part of a first line."""
        lines = "\n" in fresh or (self._line_start and self._floor is not None)
        return not (lines or self._limits.stop or (self._closer and self._closer in fresh))

    def finish(self) -> str:
        """No more bytes come: returns what was still held."""
        if self.reason is None:
            self._text += self._decoder.decode(b"", True)
        released, self._out = self._text[self._out :], len(self._text)
        return released

    def _release(self) -> str:
        safe = len(self._text) if self.reason else len(self._text) - self._held()
        released = self._text[self._out : safe]
        self._out = max(self._out, safe)
        return released

    def _held(self) -> int:
        """Characters at the end that a stop may still remove."""
        held = 0
        for n in range(min(self._longest - 1, len(self._text)), 0, -1):
            if any(s.startswith(self._text[-n:]) for s in self._limits.stop):
                held = n
                break
        fresh = self._text[self._line_start :]
        if not fresh.strip() and self._line_start:
            blank = len(self._text) - len(self._text.rstrip(" \t\n"))
            held = max(held, blank)
        return held

    def _stop_string(self) -> bool:
        ended = [s for s in self._limits.stop if s and self._text.endswith(s)]
        if not ended:
            return False
        self.stop_word = max(ended, key=len)
        return self._end("word", len(self._text) - len(self.stop_word))

    def _line_ended(self, end: int) -> bool:
        """A line of the answer is complete; decide whether another may follow."""
        body = self._text[self._line_start : end]
        first = self._line_start == 0
        whole = self._line + body if first else body
        start, self._line_start = self._line_start, end + 1
        if not first and self._dedented(body):
            return self._end("dedent", start - 1)
        if not body.strip():
            empty = not self._text[:end].strip() and self._text.count("\n", 0, end + 1) > _REPEATS
            return empty and self._end("repeat", 0)
        self.line_complete = True
        if self._limits.lines == "free":
            return False
        if not first and self._suffix and body.rstrip() == self._suffix:
            return self._end("overlap", end)
        if self._repeats(end):
            return self._end("repeat", end)
        if self._floor is not None and not first and self._closes(body):
            return self._end("dedent", end)
        if not self._block:
            if self._limits.lines == "line" or not opens_block(whole):
                return self._end("line", end)
            self._block, self._floor = True, max(indent_of(whole) + 1, self._limits.indent or 0)
        return False

    def _dedented(self, line: str) -> bool:
        """Whether a line that has shown its first character lies outside the block."""
        if self._floor is None or self._line_start == 0 or not line.strip():
            return False
        return indent_of(line) < self._floor and not self._closes(line)

    def _closes(self, line: str) -> bool:
        """A closing bracket one step out belongs to the block it closes."""
        free = self._limits.lines == "free"
        text = line.strip()
        return not free and text.startswith(_CLOSERS) and indent_of(line) < (self._floor or 0)

    def _repeats(self, end: int) -> bool:
        lines = self._text[:end].split("\n")[-_REPEATS:]
        same = len(lines) == _REPEATS and len(set(lines)) == 1 and bool(lines[0].strip())
        rows = tuple(x.rstrip() for x in lines)
        copied = len(rows) == _REPEATS and any(
            self._above[i : i + _REPEATS] == rows for i in range(len(self._above) - _REPEATS + 1)
        )
        return same or copied

    def _end(self, reason: StopReason, at: int) -> bool:
        self.reason = reason
        self._text = self._text[: max(at, 0)]
        self._out = min(self._out, len(self._text))
        return True
