"""One answer while it is shown: where it stands, and what a later text says of it. No clock, no file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from daemon.documents.document import language_of
from daemon.documents.positions import denormalise, normalise
from daemon.nouns import Completion, CompletionRequest, StopReason
from daemon.observe.fates import OUTCOMES, TAKEN, Fate, Outcome
from daemon.observe.retention import agree
from indexer.content import denied, secret

_AROUND = 400
"""Characters on each side of a place by which it is found again."""
_LATER = 4_000
"""Characters that may have been written behind a place before it is looked for in vain."""
_PASSED = 40
"""A text that goes on with so much of what stood behind the place says that the person moved past it."""
_CLOSERS = ")]}\"'`>"
_HEAD = 4_000
"""Characters of a text's beginning, and on each side of the cursor, that secrets are looked for in."""
_LONGEST_NAME = 40
"""Of a language that only the client knows."""
_OTHERS = 16
"""Further answers to one question that are followed."""
_LEAST = 2
"""Characters of an answer that come at once; one alone was typed."""
_BURST = 4
"""Characters of a part of one: fewer may have been typed between two requests of a client that waits a little
before each."""
_UNSEEN: tuple[StopReason, ...] = ("cancelled", "superseded", "engine", "off")
"""Stops after which a text is not shown."""
_WORD_END = re.compile(r"\s*(?:\w+|[^\w\s]+)")


@dataclass(slots=True, eq=False)
class Offer:
    """An answer that an editor shows, or the part of it that typing has left over.

    `done` characters of `text` stand in the document; `taken` of them came at once.
    """

    fate: Fate
    client: str
    path: str
    before: str
    """Text before the place, and …"""
    after: str
    """… behind it."""
    offset: int
    """Of the place in the text that the request showed."""
    length: int
    """Code points of the whole document then; -1: the request showed a window of it."""
    replaced: int
    """Characters behind the place that the answer replaces."""
    text: str
    born: float
    heard: float
    """When an answer came for it last. Both by the clock of whoever follows it."""
    newline: str = "\n"
    """Line end of the text as the client was sent it."""
    others: dict[str, str] = field(default_factory=dict)
    """Id → text of further answers to the same question."""
    done: int = 0
    taken: int = 0
    outcome: Outcome | None = None
    over: bool = False
    """It is decided."""
    at: str = ""
    """Id of the newest request from behind `done`: its answer may be the rest of this one."""
    ahead: str = ""
    """Id of a request for what would follow, sent before anybody could have taken this one."""
    following: Offer | None = None
    """The answer to that request: shown when this one is taken."""

    def grown(self, prefix: str) -> str | None:
        """What stands between the place and the cursor behind `prefix`; None where the place is not there."""
        at = self.offset
        if len(prefix) >= at and prefix[max(at - len(self.before), 0) : at] == self.before:
            return prefix[at:]
        region = prefix[-(len(self.before) + len(self.text) + _LATER) :]
        found = region.find(self.before) if self.before.strip() else -1
        return None if found < 0 else region[found + len(self.before) :]

    def here(self, request: CompletionRequest) -> bool:
        """Whether a request asks from where the person is, as far as is known."""
        return self.grown(request.prefix) == self.text[: self.done]

    def add(self, answer_id: str, text: str) -> None:
        """A further answer from where the person is; of many the newest stay."""
        self.others[answer_id] = self.text[: self.done] + text
        if len(self.others) > _OTHERS:
            del self.others[next(iter(self.others))]

    def asks_ahead(self, request: CompletionRequest) -> bool:
        """Whether a request asks from where the person would be, had they taken this."""
        return (self.grown(request.prefix) or "").rstrip() == self.text.rstrip()

    def inserted(self, text: str) -> str | None:
        """What stands in the place in a whole document, no cursor known; None when that cannot be told."""
        at = self.offset
        more = len(text) - self.length
        if self.length < 0 or more + self.replaced <= 0:
            return None
        if not text.startswith(self.before, at - len(self.before)):
            return None
        whole = self.text.rstrip()
        if more + self.replaced >= len(whole) and text.startswith(whole, at):
            return self.text[: more + self.replaced]
        if not text.startswith(self.after[:_PASSED], at + more + self.replaced):
            return None  # the change is elsewhere
        new = text[at : at + more]
        while new and new[-1] in _CLOSERS and not self.text.startswith(new):
            new = new[:-1]
        return new

    def stands(self, prefix: str, suffix: str) -> bool:
        """Whether the whole text stands in its place, wherever the cursor is."""
        near = prefix[-_LATER:] + suffix[:_LATER]
        return bool(self.before.strip()) and self.before + self.text.rstrip() in near

    def agreed(self, new: str) -> int:
        """Characters in which the text and `new` agree from the start; another answer to the same question
        takes its place when that agrees better and nothing of this one stands yet."""
        if not self.done:
            self.text = max((self.text, *self.others.values()), key=lambda text: agree(text, new))
        return agree(self.text, new)

    def complete(self, characters: int) -> bool:
        """Whether so many characters are all that counts of the text."""
        return 0 < len(self.text.rstrip()) <= characters

    def step(self, characters: int) -> Outcome | None:
        """What it means that so many characters stand, by where the newest of them end."""
        came, text = characters - self.done, self.text
        if self.complete(characters):
            at_once = came >= (_BURST if self.done else _LEAST)
            return "whole" if at_once or self.taken else "typed"
        if came < _BURST:
            return None
        if text[characters - 1] == "\n" or text[characters] == "\n":
            return "line"
        inside = text[characters - 1].isalnum() and text[characters].isalnum()
        return None if inside else "word"

    def passed(self, new: str) -> bool:
        """Whether the person went past the place without taking anything."""
        return bool(self.after.strip()) and new[:_PASSED] == self.after[:_PASSED][: len(new)]

    def goes_on(self, request_id: str, text: str) -> bool:
        """Whether the answer to a request is what is left of this one, or more of it."""
        rest = self.text[self.done :]
        return self.at == request_id and (rest.startswith(text) or text.startswith(rest))

    def take(self, characters: int, outcome: Outcome) -> None:
        """So many of its characters stand; the better outcome counts."""
        self.done = max(self.done, characters)
        if outcome in TAKEN:
            self.taken = max(self.taken, characters)
        if self.outcome is None or OUTCOMES.index(outcome) < OUTCOMES.index(self.outcome):
            self.outcome = outcome

    def told(self, start: int, characters: int) -> int:
        """The end of what a client took that counts `characters` from `start` on, in its own line ends."""
        sent = denormalise(self.text[start:], self.newline)
        return start + characters - sent.count("\r\n", 0, characters)

    def end_of(self, outcome: Outcome) -> int:
        """Characters that a client took that does not say how many."""
        text, start = self.text, self.taken
        if outcome == "whole":
            return len(text)
        if outcome == "line":
            end = text.find("\n", start)
            return len(text) if end < 0 else end + 1
        found = _WORD_END.match(text, start)
        return found.end() if found else len(text)


def secretive(request: CompletionRequest) -> bool:
    """Whether nothing of a text may be kept: its name is on the deny list, or what is near is a secret."""
    path, text = request.path or "", request.prefix[:_HEAD] + request.prefix[-_HEAD:] + request.suffix[:_HEAD]
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    return denied(path) or secret(text.encode("utf-8", "replace"), name)


def offered(request: CompletionRequest, completion: Completion) -> str:
    """The text (LF only) that an editor will show; empty when there is none, or nobody looks at it."""
    measures = request.margins or request.anchor_lines is not None
    if request.warm or measures or completion.stop in _UNSEEN:
        return ""
    text, _ = normalise(completion.text)
    return text if text.strip() else ""


def offer(request: CompletionRequest, completion: Completion, text: str, now: float) -> Offer:
    """The answer `text` to a request. `now`: seconds since the epoch."""
    replaced = completion.replace.end - completion.replace.start
    return Offer(
        fate=_fate(request, completion, now),
        client=request.client,
        path=request.path or "",
        before=request.prefix[-_AROUND:],
        after=request.suffix[replaced : replaced + _AROUND],
        offset=len(request.prefix),
        length=len(request.prefix) + len(request.suffix) if request.whole else -1,
        replaced=replaced,
        text=text,
        born=now,
        heard=now,
        newline=request.newline,
    )


def _language(request: CompletionRequest, completion: Completion) -> str:
    found = None if completion.language else language_of(request.path or "", b"", request.language)
    return completion.language or (found.name if found else request.language or "")


def _fate(request: CompletionRequest, completion: Completion, now: float) -> Fate:
    return Fate(
        id=completion.id,
        at=now,
        door=request.door,
        language=_language(request, completion)[:_LONGEST_NAME],
        window=completion.window.partition(":")[0],
        tiers=" ".join(sorted({segment.tier for segment in completion.segments if segment.tier})),
    )
