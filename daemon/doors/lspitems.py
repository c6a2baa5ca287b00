"""A completion as LSP shows it: ghost text, or one item of a completion list."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from lsprotocol import types

from daemon.documents import positions
from daemon.documents.positions import Encoding

ACCEPT = "foretype.didAcceptCompletion"
SHOW = "foretype.didShowCompletion"
PARTIAL = "foretype.didPartiallyAcceptCompletion"
COMMANDS = (SHOW, ACCEPT, PARTIAL)
_WORD = re.compile(r"\w*\Z")
_LABEL = 60
"""Characters of a label."""
FIRST = "!"
"""Sorts before every name: whoever sees this list has no other ghost text."""


class Place(NamedTuple):
    """Where an answer goes. `offset` counts code points of `text`; `at` is the same place as the editor
    counts."""

    text: str
    offset: int
    at: types.Position
    encoding: Encoding

    def span(self, before: int, after: int) -> types.Range:
        """So many code points on each side; both ends lie on the line of the place."""
        left = positions.units(self.text[self.offset - before : self.offset], self.encoding)
        right = positions.units(self.text[self.offset : self.offset + after], self.encoding)
        return types.Range(
            types.Position(self.at.line, self.at.character - left),
            types.Position(self.at.line, self.at.character + right),
        )


class Answer(NamedTuple):
    """What the daemon answered. `replaced` code points after the place give way to `text`."""

    id: str
    text: str
    replaced: int = 0

    @classmethod
    def of(cls, body: dict[str, Any]) -> Answer:
        """From the body of `POST /v1/complete`."""
        replaced = body["replace"]["end"] - body["replace"]["start"]
        return cls(body["id"], body["text"], replaced)


def accepting(answer: Answer) -> types.Command:
    """What the editor runs once the person took it."""
    return types.Command("Accept completion", ACCEPT, arguments=[answer.id])


def inline(
    answer: Answer, place: Place, selected: types.SelectedCompletionInfo | None
) -> types.InlineCompletionItem:
    """As ghost text; where an item of a list is `selected`, it begins with that item's text."""
    span, text = place.span(0, answer.replaced), answer.text
    if selected is not None:
        span = types.Range(selected.range.start, place.span(0, answer.replaced).end)
        text = selected.text + text
    return types.InlineCompletionItem(insert_text=text, range=span, command=accepting(answer))


def listed(answer: Answer, place: Place) -> types.CompletionItem:
    """As one item of a list. The word before the place is part of it, because editors filter by that word."""
    found = _WORD.search(place.text, max(0, place.offset - 200), place.offset)
    word = found[0] if found else ""
    text = word + answer.text
    first = text.splitlines()[0] if text.strip() else text
    more = len(text.splitlines()) > 1
    return types.CompletionItem(
        label=(first.strip()[:_LABEL] or "↵") + (" …" if more or len(first) > _LABEL else ""),
        kind=types.CompletionItemKind.Text,
        detail="foretype",
        documentation=text if more else None,
        filter_text=first,
        sort_text=FIRST,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(place.span(len(word), answer.replaced), text),
        command=accepting(answer),
        data=answer.id,
    )
