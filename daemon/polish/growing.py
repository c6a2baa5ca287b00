"""A model's text as it grows: what no rule can take back any more, and at last what is shown.

Control strings are cut as soon as they are whole; lines are judged as they become complete. What is safe at
a moment is the common beginning of all ends the text may still come to.
"""

from __future__ import annotations

from daemon.nouns import CompletionRequest
from daemon.polish import trim
from daemon.polish.fit import Fit
from daemon.polish.lines import Above, Below

_UNFINISHED = frozenset({"limit", "time", "window", "cancelled", "superseded", "engine"})
_HEAD = 1_000
"""Characters of the cursor's line that are looked at on either side."""


class Growing:
    """The state of a growing text: control strings cut, lines judged as they become complete."""

    def __init__(self, request: CompletionRequest) -> None:
        self._free = request.limits.lines == "free"
        self._documents = (request.prefix, request.suffix)
        self._raw = ""
        self._held = ""
        self._checked = 0
        self._control = False
        self._lines = _Lines(request)
        self._next = 0
        self._fit = Fit(request, self._lines.head, self._lines.rest, self._lines.quote)

    def take(self, text: str) -> None:
        """Add raw text."""
        if self._control:
            return
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        if "\r" in text:
            text = text[: len(text) - len(self._held)].replace("\r\n", "\n").replace("\r", "\n")
        self._raw += text
        at = trim.control_at(self._raw, self._checked, self._documents)
        if at >= 0:
            self._control = True
            self._raw = self._raw[:at]
        self._checked = at if at >= 0 else trim.control_partial(self._raw, self._checked)
        self._advance(self._checked)

    def safe(self, replaces: bool) -> str:
        """What every possible end of the text begins with."""
        if self._free:
            return self._raw[: self._checked]
        known = self._lines.safe(self._raw[self._next : self._checked]).rstrip(trim.BLANKS)
        return self._fit.safe(known, replaces) if known.strip() else ""

    def final(self, stop: str, replaces: bool) -> tuple[str, int, list[str]]:
        """The text to show, how many characters after the cursor it replaces, the rules that changed it."""
        seen = self.safe(replaces)
        if self._held and not self._control:
            self._raw += "\n"
        trims = ["control"] if self._control else []
        if self._free:
            return self._raw, 0, trims
        self._advance(len(self._raw))
        before = text = self._lines.finish(self._raw[self._next :], stop)
        trims += self._lines.trims
        if stop in _UNFINISHED and not self._control and self._lines.cut is None:
            text = trim.boundary(before)
            if text.rstrip(trim.BLANKS) == before.rstrip(trim.BLANKS):
                text = before
            else:
                trims.append("boundary")
        text = self._fit.in_string(text)
        on_line, replaced = text, 0
        if stop != "closed":  # else the engine has ended it there
            on_line, replaced = self._fit.same_line(text, replaces)
        if on_line != text or replaced:
            trims.append("same-line")
        on_line = self._fit.balanced(on_line, replaced, stop, trims, seen)
        shown = self._lines.apart(trim.trailing(on_line, self._lines.rest), seen, trims)
        cut = set(trims) - {"leading", "indentation"}
        if not shown.strip():
            return "", 0, trims if cut or not self._raw else ["blank"]
        if shown != on_line and not cut:
            trims.append("trailing")
        return shown, replaced, trims

    def _advance(self, end: int) -> None:
        """Judge the lines that are complete before `end`."""
        while not self._free and self._lines.cut is None:
            at = self._raw.find("\n", self._next, end)
            if at < 0:
                return
            self._lines.add(self._raw[self._next : at])
            self._next = at + 1


class _Lines:
    """The lines of a text with their indentation put right, and where the text must end."""

    def __init__(self, request: CompletionRequest) -> None:
        self._request = request
        start = request.prefix.rfind("\n") + 1
        end = request.suffix.find("\n")
        self.head = request.prefix[max(start, len(request.prefix) - _HEAD) :]
        self._whole = len(request.prefix) - start <= _HEAD
        self.rest = request.suffix[: min(end if end >= 0 else len(request.suffix), _HEAD)]
        self.quote = trim.cursor_quote(self.head, self.rest)
        self.trims: list[str] = []
        self.cut: int | None = None
        self._kept: list[str] = []
        self._opened = False
        self._style: tuple[str, int] | None = None
        self._below = Below(self.head, self.rest, request.suffix)
        self._above = Above(request.prefix)

    def add(self, raw: str) -> None:
        """Judge a complete line."""
        index = len(self._kept)
        line = self._shaped(index, raw, note=True)
        if index == 0 and not line.strip():
            line = ""
        self._kept.append(line)
        full = self._full(index, line)
        if self._fenced(index, line):
            self._end(index, "fence")
            return
        if not line.strip() or (index == 0 and not self._whole):
            self._opened = self._opened or bool(line.strip())
            if index == 0 and self.head.strip():
                self._above.push(full)
            return
        opening, self._opened = not self._opened, True
        below = self._below.see(index, full, telling=not opening)
        above = self._above.see(index, full, opening)
        self._end(below, "suffix")
        self._end(above, "repeat")

    def safe(self, raw: str) -> str:
        """What stays whatever follows; `raw` is the unfinished line."""
        if self.cut is not None:
            return self._joined()
        pending = [at for at in (self._below.pending, self._above.pending) if at is not None]
        if pending:
            return "\n".join(self._kept[: min(pending)])
        known = "\n".join(self._kept)
        if self._opened:
            return known
        index = len(self._kept)
        line = self._shaped(index, raw, note=False)
        if self._might_go(index, line):
            return known
        return known + ("\n" if index else "") + trim.boundary(line)

    def finish(self, raw: str, stop: str) -> str:
        """The text with its last line judged; `stop` is why it ended."""
        if self.cut is None:
            index = len(self._kept)
            opening = not self._opened
            line = self._shaped(index, raw, note=True)
            full = self._full(index, line)
            blank = not line.strip() or (index == 0 and not self._whole)
            self._kept.append(line)
            if self._fenced(index, line):
                self._end(index, "fence")
            elif stop != "closed":  # else a closer follows on it: it is another line than it seems
                self._judge_last(index, "" if blank else full, opening, stop)
            self._end(self._above.pending if stop == "repeat" else None, "repeat")
        return self._joined()

    def apart(self, text: str, seen: str, trims: list[str]) -> str:
        """Without a last line that stands below as well: what proved it another one may have been cut.

        What was `seen` already stays; `trims` gets the rule's name.
        """
        kept, _, line = text.rpartition("\n")
        shorter = kept.rstrip(trim.BLANKS)
        full = self._full(text.count("\n"), line)
        if self.rest.strip() or not self._below.repeats(full) or not shorter.startswith(seen):
            return text
        trims.append("suffix")
        return shorter

    def _judge_last(self, index: int, full: str, opening: bool, stop: str) -> None:
        if opening and full:
            above = self._above.directly
            repeats = above in {full.rstrip(), (full + self.rest).rstrip()} and not trim.trivial(above)
            self._end(index if repeats else None, "repeat")
        else:
            self._end(self._above.see(index, full, opening), "repeat")
        self._end(self._below.last(index, full, not opening, stop == "overlap"), "suffix")

    def _might_go(self, index: int, line: str) -> bool:
        """Whether the first line, as far as it is known, may still turn out to be a repetition."""
        bare = line.strip()
        full = self._full(index, line).rstrip()
        if not bare or self._fenced(index, line) or (bare.startswith("`") and len(bare) < 3):
            return True
        if index == 0 and bare == "/" and self.head[-1:] in (" ", "\t"):
            return True  # a comment keeps the blank before it, anything else does not
        if index == 0 and not self._whole:
            return False
        above = (self._above.directly, self._above.top)
        begins = self._below.may_begin(full) if index == 0 else self._below.first().startswith(full)
        return begins or any(other.startswith(full) for other in above if other)

    def _shaped(self, index: int, raw: str, note: bool) -> str:
        """A line with the file's own indentation, without a second blank."""
        if index == 0 and self.head:
            line, rule = raw, "leading"
            if raw[:1] in (" ", "\t"):
                line = trim.leading(self.head, raw, self._indent()[1])
        else:
            line, rule = raw, "indentation"
            if raw[:1] in (" ", "\t"):
                line = trim.reindent(raw, self._indent())
        if note and line.strip() and line != raw and rule not in self.trims:
            self.trims.append(rule)
        return line

    def _indent(self) -> tuple[str, int]:
        if self._style is None:
            self._style = trim.indent_style(self._request.prefix, self._request.suffix)
        return self._style

    def _full(self, index: int, line: str) -> str:
        return line if index else self.head + line

    def _fenced(self, index: int, line: str) -> bool:
        if index == 0 and self.head.strip():
            return False
        return trim.fence(line, self._request.language, (self._request.prefix, self._request.suffix))

    def _end(self, at: int | None, rule: str) -> None:
        if at is None or (self.cut is not None and self.cut <= at):
            return
        if self.cut is not None:
            self.trims.pop()
        self.cut = at
        self.trims.append(rule)

    def _joined(self) -> str:
        if self.cut is None:
            return "\n".join(self._kept)
        kept = self._kept[: self.cut]
        in_front = self._below.inline and self.cut > 0 and self.trims[-1] == "suffix"
        return "\n".join([*kept, self.head]) if in_front else "\n".join(kept)
