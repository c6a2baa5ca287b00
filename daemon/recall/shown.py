"""What was answered, document by document, found again by the text around the cursor.

    document + kind of question + text before and after the cursor → answers that say what was typed since

No position is kept: an edit elsewhere, before the place or after it, moves an answer along with its text. An
edit among the BEFORE characters before the place or the AFTER behind it hides the answer until it is undone:
that is as much as the model usually sees around the middle, and farther edits change few answers. Who types
along an answer, and who deletes it again, stands at its remainder each time.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from daemon.context.anchor import follows
from daemon.nouns import CompletionRequest, Lines, StopReason

BEFORE, AFTER = 1536, 410
"""Characters: the middle and some lines above it; the suffix of a prompt, which `suffix_tokens` hold."""
_TAIL = 48
"""Characters by which the place of an answer is looked for; the rest is compared in whole."""
_NEWEST = 128
"""Answers of one document that are kept: looking at all of them takes 0.1 ms."""
_OVERHEAD = 500
"""Bytes of an answer beside its texts."""


@dataclass(eq=False, slots=True)
class Answer:
    """One generation, as the engine gave it, and what it answered."""

    id: str
    """Of its request."""
    kind: int
    before: str
    after: str
    text: str
    """LF only, before polish, as are `before` and `after`."""
    stop: StopReason
    stop_word: str
    context: tuple[int, int]
    """Of the stable context that it was generated with: while another has come, only who types along is still
    answered so."""
    lines: Lines
    tokens: int
    """`lines` and `tokens`: the limits it was generated with."""
    middle: int
    """Characters of `before` that the prompt held as its middle."""
    written: bytes
    """Ids of that middle and of the text behind it; empty where they are not known."""
    ms: float
    """What the engine took for it."""
    ahead: int = 0
    """Tokens generated before anybody asked; 0 where somebody did."""
    used: bool = False

    @property
    def size(self) -> int:
        """Bytes, about."""
        texts = (self.before, self.after, self.text)
        return sum(map(sys.getsizeof, texts)) + len(self.written) + _OVERHEAD

    def typed(self, prefix: str, suffix: str) -> str | None:
        """What was typed since: the beginning of the text. None where more is different."""
        tail = self.before[-_TAIL:]
        start, end = max(0, len(prefix) - len(self.text) - len(tail)), len(prefix)
        while (at := prefix.rfind(tail, start, end)) >= 0:
            place = at + len(tail)
            if self._at(prefix, place) and self.text.startswith(typed := prefix[place:]):
                return typed if self._before(suffix, bool(typed)) else None
            end = place - 1
        return None

    def _at(self, prefix: str, place: int) -> bool:
        if len(self.before) < BEFORE:  # the text began there
            return place == len(self.before) and prefix.startswith(self.before)
        return prefix.endswith(self.before, 0, place)

    def _before(self, suffix: str, typed: bool) -> bool:
        """Whether the suffix is the same, up to closers that an editor put behind what was typed."""
        if len(self.after) < AFTER and len(suffix) - len(self.after) not in range(3):
            return False
        return follows(self.after, suffix) if typed else suffix.startswith(self.after)


def kind(request: CompletionRequest) -> int:
    """Equal for questions that differ in nothing but text, place, who asks, and how long they may take."""
    limits = msgspec.structs.replace(
        request.limits, milliseconds=None, milliseconds_after_line=None, deadline=None
    )
    shown = (request.language, request.extras, request.allowance, request.heal, request.context)
    return hash((limits, request.sampling, *shown))


def key(request: CompletionRequest) -> str:
    """Of the document: its path, or whose it is where it has none."""
    return f"path {request.path}" if request.path else f"client {request.client}"


class Shown:
    """All answers that are kept, in at most `most` bytes. Used by one event loop."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0
        self._documents: dict[str, deque[Answer]] = {}
        self._oldest: OrderedDict[Answer, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._oldest)

    def find(self, request: CompletionRequest) -> Iterator[tuple[Answer, str]]:
        """Answers to this question, each with what was typed since; the newest first."""
        wanted: int | None = None
        for answer in reversed(self._documents.get(key(request), ())):
            typed = answer.typed(request.prefix, request.suffix)
            if typed is not None:
                wanted = kind(request) if wanted is None else wanted
                if answer.kind == wanted:
                    yield answer, typed

    def keep(self, document: str, answer: Answer) -> None:
        """Remember an answer; one to the same question is forgotten."""
        answers = self._documents.setdefault(document, deque())
        same = (answer.kind, answer.before, answer.after)
        for other in [one for one in answers if (one.kind, one.before, one.after) == same]:
            self._drop(other)
        answers = self._documents.setdefault(document, answers)
        answers.append(answer)
        self._oldest[answer] = document
        self.bytes += answer.size
        if len(answers) > _NEWEST:
            self._drop(answers[0])
        while self.bytes > self.most and self._oldest:
            self._drop(next(iter(self._oldest)))

    def use(self, answer: Answer) -> None:
        """It was given: others go first."""
        answer.used = True
        self._oldest.move_to_end(answer)

    def forget(self, document: str) -> None:
        """Nothing of a document is kept."""
        for answer in list(self._documents.get(document, ())):
            self._drop(answer)

    def _drop(self, answer: Answer) -> None:
        document = self._oldest.pop(answer)
        self.bytes -= answer.size
        answers = self._documents[document]
        answers.remove(answer)
        if not answers:
            del self._documents[document]
