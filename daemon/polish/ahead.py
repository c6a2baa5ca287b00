"""What the text after the cursor tells the engine: where generating on is wasted, for polish would cut."""

from __future__ import annotations

import re

from daemon.nouns import CompletionRequest
from daemon.polish.brackets import CLOSERS, PAIRS
from daemon.polish.trim import cursor_quote

_LINE = 1000
_AROUND = 2000
"""Characters on each side that are searched for brackets without a partner."""
_KINDS = {closer: re.compile(f"[{re.escape(opener + closer)}]") for closer, opener in PAIRS.items()}


def closer_ahead(request: CompletionRequest) -> str:
    """The bracket right behind the cursor: a text that closes the same ends before its own. Empty: none does.

    Only of a client that cannot replace it: for another one a text may go on beyond its own. One that is
    missing further behind may be what the text is to close. Quotes end nothing: `a", "b` may stand in two.
    """
    if request.replaces or request.limits.lines == "free":
        return ""
    start, end = request.prefix.rfind("\n") + 1, request.suffix.find("\n")
    rest = request.suffix[: min(end if end >= 0 else _LINE, _LINE)]
    first = rest.strip()[:1]
    head = request.prefix[max(start, len(request.prefix) - _LINE) :]
    if first not in CLOSERS or cursor_quote(head, rest):
        return ""
    around = request.prefix[-_AROUND:], request.suffix[:_AROUND]
    return "" if _missing(head, rest, first) or _missing(*around, first) else first


def _missing(before: str, after: str, closer: str) -> bool:
    """Whether more brackets are opened before the cursor than are closed after it."""
    find, opener = _KINDS[closer].findall, PAIRS[closer]
    return _unpaired(find(before), opener) > _unpaired(find(after)[::-1], closer)


def _unpaired(brackets: list[str], kind: str) -> int:
    """How many of `kind` have no partner after them."""
    depth = 0
    for bracket in brackets:
        depth = depth + 1 if bracket == kind else max(0, depth - 1)
    return depth
