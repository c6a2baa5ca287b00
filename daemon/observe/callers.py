"""Who asked at which door, and what became of it: what `foretype doctor --editor` looks at."""

from __future__ import annotations

import time
from typing import Any

import msgspec

KEPT = 64
"""Callers kept; those that come later are counted as one, `other`, so that no client can grow this."""
LSP = "lsp"
"""The door, in words, of a request that an editor's language server passes on."""
_LONGEST = 40


class Caller(msgspec.Struct, kw_only=True):
    """One kind of client at one door. Times in seconds since the epoch; 0: never."""

    door: str
    agent: str
    """The product that its User-Agent names first, without a version; of a language server, its editor."""
    requests: int = 0
    answered: int = 0
    """Whole answers, empty ones included."""
    shown: int = 0
    """Answers with text."""
    failed: int = 0
    """Errors and refusals; `last_failure` is the code of the newest."""
    last_request: float = 0.0
    last_answer: float = 0.0
    last_failure: str = ""

    def served(self, *, text: bool) -> None:
        """An answer went out."""
        self.answered += 1
        self.shown += text
        self.last_answer = time.time()

    def lost(self, code: str) -> None:
        """An error went out in its place."""
        self.failed += 1
        self.last_failure = code


class Callers:
    """All of them since start. Used from one thread: the daemon's loop."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Caller] = {}

    def arrived(self, door: str, client: str, user_agent: str) -> Caller:
        """A request came in; what became of it is told to the Caller that it belongs to.

        `foretype lsp` asks at the native door for an editor that it names: as client `lsp:EDITOR:PROCESS`.
        """
        kind, _, editor = client.partition(":")
        key = (door, product(user_agent))
        if kind == LSP:
            key = (LSP, editor.rpartition(":")[0][:_LONGEST])
        if key not in self._known and len(self._known) >= KEPT:
            key = ("other", "")
        caller = self._known.setdefault(key, Caller(door=key[0], agent=key[1]))
        caller.requests += 1
        caller.last_request = time.time()
        return caller

    def facts(self) -> list[dict[str, Any]]:
        """For status: the one that asked last first."""
        newest = sorted(self._known.values(), key=lambda caller: -caller.last_request)
        return [msgspec.to_builtins(caller) for caller in newest]


def product(user_agent: str) -> str:
    """`curl` of `curl/8.5.0`, `Zed` of `Zed/0.9 (linux)`."""
    return user_agent.split("/", 1)[0].split(" ", 1)[0][:_LONGEST]
