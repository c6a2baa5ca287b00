"""A person with an editor that shows answers, a clock that stands still, and the rows that come of it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from daemon.nouns import Completion, CompletionRequest, Range, Segment
from daemon.observe.acceptance import Acceptance
from daemon.observe.fates import Fate

ABOVE = "import csv\n\n\ndef total(rows):\n    total = 0\n"
BELOW = "\n\nif __name__ == '__main__':\n    print(total([]))\n"


@dataclass
class Person:
    """`client` may be silent, or tell by `telling` methods of `acceptance`."""

    client: str = "vim"
    path: str = ""
    whole: bool = False
    now: float = 1_000_000.0
    rows: dict[str, Fate] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.acceptance = Acceptance(self, self.documents.get, clock=lambda: self.now)

    def add(self, entry: Fate) -> None:
        self.rows[entry.id] = entry

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def request(self, typed: str, **more: Any) -> CompletionRequest:
        """With the cursor behind ABOVE and what is `typed`."""
        values = {
            "id": f"cmpl-{next(self._numbers)}", "client": self.client, "door": "infill",
            "prefix": ABOVE + typed, "suffix": BELOW, "path": self.path or None, "whole": self.whole,
        }  # fmt: skip
        return CompletionRequest(**{**values, **more})

    def ask(self, typed: str, **more: Any) -> CompletionRequest:
        """The request, of which no answer comes (yet)."""
        asked = self.request(typed, **more)
        self.acceptance.asked(asked)
        return asked

    def shown(self, typed: str, text: str, **more: Any) -> str:
        """The person has typed so far, and is shown `text`; its id."""
        asked = self.ask(typed, **more)
        self.answer(asked, text)
        return asked.id

    def answer(self, asked: CompletionRequest, text: str, replaced: int = 0, **more: Any) -> None:
        at = len(asked.prefix)
        segments = tuple(
            Segment(kind="context", source="x", tokens=3, tier=tier) for tier in ("P3", "P0", "P3", "")
        )
        values = {
            "id": asked.id, "text": text, "replace": Range(start=at, end=at + replaced), "stop": "line",
            "language": "python", "window": "simple: an argument", "segments": segments,
        }  # fmt: skip
        self.acceptance.answered(asked, Completion(**{**values, **more}))

    @property
    def outcomes(self) -> list[tuple[str, int]]:
        """(outcome, characters taken) of each decided answer, in the order of their ids."""
        return [(one.outcome, one.taken) for one in self.rows.values()]
