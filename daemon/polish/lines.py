"""Whole-line rules over a growing text: overlap with the lines below, repetition of the lines above.

Each judge sees one complete line after the other and answers with the index of the line where the text must
end, or None; `pending` is the first line that a later one may still take away. Lines are compared without
trailing blanks (F1-19), blank lines are passed over, and nothing but whole lines is ever cut (F1-25).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from daemon.polish.brackets import scan
from daemon.polish.trim import TRIPLES, closer, trivial

_WINDOW = 32_768
"""Characters above the cursor searched for repetition: more than a model sees of a file at once."""
_BELOW = 8_192


class Below:
    """Overlap with what follows the cursor: the text must not repeat the lines below (F1-17, F1-19).

    A telling line equal to the first line below ends the text. A closing line (`}`, `end`, `else:`) does so
    only when the text did not open what it closes, or when the next line agrees as well. In doubtful cases
    (the very first line, an open bracket, a short line) the next line must agree, or the text must end there.
    The very first line stands at the cursor's indentation, which need not be that of the line it repeats.
    """

    def __init__(self, head: str, rest: str, suffix: str) -> None:
        self.inline = bool(rest.strip()) and not head.strip()
        """The first line below is the cursor's own: the text is written in front of it."""
        self.lines = _first_lines(suffix)
        if self.inline:
            self.lines.insert(0, (head + rest).rstrip())
        self.pending: int | None = None
        self._starts = not head.strip()
        self._skip_first = bool(rest.strip())
        self._shifted = self._weak = False
        self._place = 0
        self._depth = 0
        self._quotes = 0
        self._before = ""
        self._indents: set[int] = set()

    def first(self) -> str:
        """The line the text may run into, `""` when nothing follows."""
        return self.lines[0] if self.lines else ""

    def see(self, index: int, line: str, telling: bool) -> int | None:
        """Judge a line; `telling` says that something but blanks was written before it."""
        bare = line.rstrip()
        if not bare or not self.lines or (index == 0 and self._skip_first and not self.inline):
            self._note(index, bare)
            return None
        if self.pending is not None and self._is(bare, self._place + 1):
            return self.pending
        self.pending, self._weak = None, False
        self._shifted = index == 0 and self._starts and not closer(bare) and not trivial(bare)
        for place in range(min(len(self.lines), 1 + self.inline)):
            if not self._is(bare, place):
                continue
            last = len(self.lines) == place + 1
            if self._belongs(bare):
                self._weak = not last and not trivial(self.lines[place + 1])
                self.pending, self._place = index if self._weak else None, place
            elif last or closer(bare) or (telling and not trivial(bare) and self._depth == 0):
                return index
            else:
                self.pending, self._place = index, place
            break
        self._note(index, bare)
        return None

    def last(self, index: int, line: str, telling: bool, ran_into: bool) -> int | None:
        """Judge the text's last, perhaps unfinished line; `ran_into`: the engine saw the overlap."""
        bare = line.rstrip()
        if self.pending is not None and self._is(bare, self._place + 1, part=True):
            return self.pending
        if index == 0 and self._skip_first:
            return None
        at = self.see(index, line, telling)
        if at is None and bare and self.pending == index and not self._weak:
            return index
        if at is None and ran_into and index and bare and self.first().startswith(bare):
            return index
        return at

    def repeats(self, line: str) -> bool:
        """Whether a line in the text's last place is one that follows, and not one that closes a block."""
        return not trivial(line) and not closer(line) and line.rstrip() == self.first()

    def may_begin(self, line: str) -> bool:
        """Whether the very first line, as far as it is known, may turn out to be one of those below."""
        for other in self.lines[: 1 + self.inline]:
            if other.startswith(line) or (self._starts and other.lstrip().startswith(line.lstrip())):
                return True
        return False

    def _is(self, line: str, place: int, part: bool = False) -> bool:
        """Whether a line is, or with `part` begins, the one at `place` below."""
        other = self.lines[place]
        if self._shifted:
            line, other = line.lstrip(), other.lstrip()
        return other.startswith(line) if part else other == line

    def _belongs(self, line: str) -> bool:
        """Whether a closing line closes what the text itself opened."""
        if not closer(line):
            return False
        bare = line.strip()
        if bare in TRIPLES:
            return self._before.endswith(":") or self._quotes % 2 == 1
        if bare[0] in ")]}":
            return self._depth > 0
        return len(line) - len(line.lstrip()) in self._indents

    def _note(self, index: int, line: str) -> None:
        found = scan(line)
        self._before = line or self._before
        self._quotes += line.count(TRIPLES[0]) + line.count(TRIPLES[1])
        self._depth = max(0, self._depth - len(found.closers)) + found.unclosed
        if line and (index or self._starts) and not closer(line):
            self._indents.add(len(line) - len(line.lstrip()))


class _Run(msgspec.Struct):
    """Lines of the text that follow one another as earlier lines did."""

    start: int
    """Index of the run's first line in the text."""
    at: int
    """Where the run's first line stands in the list of all lines."""
    source: int
    """Where the same line stood before."""
    length: int
    telling: int
    """Lines of the run that are not trivial."""


class Above:
    """Repetition: the line directly above, three telling lines of the file, a block of the text (F1-22)."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._end = prefix.rfind("\n") + 1
        self._lines: list[str] | None = None
        self._own = 0
        self._runs: list[_Run] = []
        self.directly = _last_line(prefix, self._end)
        self.top = _first_line(prefix, self._end) if self._end <= _WINDOW else ""
        """The document's first line, where a model that starts over begins."""

    @property
    def pending(self) -> int | None:
        """The first line of a repetition that is not proved yet."""
        return min((run.start for run in self._runs), default=None)

    def push(self, line: str) -> None:
        """Add the cursor's line when the text begins below it."""
        self.directly = line.rstrip()
        self._all().append(self.directly)

    def see(self, index: int, line: str, opening: bool) -> int | None:
        """Judge a line. `opening` marks the first one with text: it is shown early, and only checked
        against the line directly above and the document's first line."""
        bare = line.rstrip()
        if not bare:
            return None
        lines = self._all()
        if lines and bare == lines[-1] and not trivial(bare):
            return index
        cut = self._extend(bare, lines)
        if cut is None and not trivial(bare):
            if not opening:
                self._runs += [_Run(index, len(lines), place, 1, 1) for place in _places(lines, bare)]
            elif bare == self.top and lines:
                self._runs.append(_Run(index, len(lines), 0, 1, 1))
        lines.append(bare)
        return cut

    def _extend(self, line: str, lines: list[str]) -> int | None:
        """Lengthen the runs that go on with `line`, drop the others; the start of one that is proved."""
        telling = 0 if trivial(line) else 1
        self._runs = [run for run in self._runs if lines[run.source + run.length] == line]
        for run in self._runs:
            run.length += 1
            run.telling += telling
            again = run.source >= self._own and run.length >= run.at - run.source
            if run.telling >= 3 or (again and run.telling >= 2):
                return run.start
        return None

    def _all(self) -> list[str]:
        """All lines with text above the cursor's, then those of the text; split only when needed."""
        if self._lines is None:
            start = max(0, self._end - _WINDOW)
            window = self._prefix[start : self._end].split("\n")[1 if start else 0 :]
            self._lines = [bare for line in window if (bare := line.rstrip())]
            self._own = len(self._lines)
        return self._lines


def _places(lines: list[str], line: str) -> Iterator[int]:
    """Where `line` stands among `lines`."""
    place = -1
    for _ in range(lines.count(line)):
        place = lines.index(line, place + 1)
        yield place


def _first_lines(suffix: str) -> list[str]:
    """The first lines with text after the cursor's line, at most three."""
    start = suffix.find("\n") + 1
    end = start + _BELOW
    found: list[str] = []
    while start and len(found) < 3:
        stop = suffix.find("\n", start, end)
        if stop < 0 and len(suffix) > end:
            break  # a line that is not looked at to its end
        if bare := suffix[start : stop if stop >= 0 else end].rstrip():
            found.append(bare)
        start = stop + 1
    return found


def _last_line(prefix: str, end: int) -> str:
    """The last line with text before the cursor's line."""
    window = prefix[max(0, end - 4096) : end].rstrip()
    return window[window.rfind("\n") + 1 :]


def _first_line(prefix: str, end: int) -> str:
    """The first line with text, `""` when there is none."""
    for line in prefix[: min(end, 4096)].split("\n"):
        if line.strip():
            return line.rstrip()
    return ""
