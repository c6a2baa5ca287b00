"""What a known answer says behind what was typed of it, where a run of the engine would say the same.

The engine's own stops judge the remainder with the limits that the question has by now. It is an answer only
where they end it, or the model ended it itself: text that a limit cut, or that ends where the new limits ask
for more, is none. An empty remainder is one where the model had nothing more to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from daemon.engine.frames import Submit
from daemon.engine.stops import Stops, indent_of, opens_block
from daemon.nouns import StopReason
from daemon.recall.shown import Answer

CUT: tuple[StopReason, ...] = ("time", "window", "warm", "off", "cancelled", "superseded", "engine")
"""Ends from outside: the same question may be answered otherwise the next time."""


class Remainder(NamedTuple):
    """Text before polish, and its end."""

    text: str
    stop: StopReason
    stop_word: str = ""


def remainder(answer: Answer, typed: str, job: Submit, count: Callable[[str], int]) -> Remainder | None:
    """Of a known answer at the question of `job`, whose tokens are not looked at; None where there is none.
    `count` tells how many tokens a text has."""
    limits, rest = job.limits, answer.text[len(typed) :]
    closed = answer.stop == "closed" and not job.closes  # this client may want more
    if not typed and not closed and (answer.lines, answer.tokens) == (limits.lines, limits.tokens):
        return Remainder(rest, answer.stop, answer.stop_word)
    stops = Stops(limits, job.line, job.suffix, job.above, job.closes)
    behind = {"line": "\n", "word": answer.stop_word, "closed": job.closes}
    stops.feed((rest + behind.get(answer.stop, "")).encode())
    if stops.reason is not None:
        found = Remainder(stops.text, stops.reason, stops.stop_word)
    elif answer.stop == "eos" or (answer.stop == "dedent" and rest and _same_block(answer, typed, job)):
        found = Remainder(rest, answer.stop)
    else:
        return None
    empty = not found.text and found.stop not in ("eos", "word")
    return None if empty or count(found.text) >= limits.tokens else found


def _same_block(answer: Answer, typed: str, job: Submit) -> bool:
    """Whether the line that dedented lies outside the block of the new question, too."""
    before = answer.before[answer.before.rfind("\n") + 1 :]
    same = indent_of(before) + opens_block(before) == indent_of(job.line) + opens_block(job.line)
    return "\n" not in typed and answer.lines == job.limits.lines and (same or answer.lines != "block")
