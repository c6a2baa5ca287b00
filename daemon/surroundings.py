"""Nouns of context: what surrounds a cursor, what could be shown beside it, what was chosen and why.

    Document + cursor → Surroundings → WindowClass
    Surroundings + index → Piece … → Stable → prompt

Lines count from 0, ends are exclusive, paths are relative to their root with `/`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from daemon.nouns import Lines, Noun

Zone = Literal["code", "comment", "string", "import", "type"]
Tier = Literal["P0", "P1", "P2", "P3", "P4"]
"""P0 around the cursor, P1 the enclosing definitions, P2 types referenced, P3 other files, P4 history."""

PieceKind = Literal[
    "outline",
    "enclosing",
    "definition",
    "caller",
    "sibling",
    "similar",
    "text",
    "recent",
    "accepted",
    "diagnostic",
    "clipboard",
]
IMPORTANCE_SHARE, RECENCY_SHARE = 0.7, 0.3


class Scope(Noun, frozen=True):
    """A definition around the cursor. `kind` as in indexer/records.py SymbolKind."""

    kind: str
    name: str
    signature: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int


class Surroundings(Noun, frozen=True):
    """What stands around the cursor. Made by context/cursor.py."""

    path: str = ""
    """Relative to `root`; empty when the file is not known."""
    root: str = ""
    """Absolute folder of the index that holds the file; empty when none does."""
    language: str = ""
    zone: Zone = "code"
    node: str = ""
    """tree-sitter kind of the smallest named node around the cursor; empty without a grammar."""
    chain: tuple[Scope, ...] = ()
    """Enclosing definitions, the outermost first."""
    indent: int = 0
    """Columns at which the next statement is expected."""
    names: tuple[str, ...] = ()
    """Identifiers near the cursor, the nearest first, each once."""
    imports: tuple[str, ...] = ()
    """Names that the file imports."""
    broken: bool = False
    """The syntax near the cursor has errors."""
    line: int = 0

    @property
    def scope(self) -> str:
        """Key of an epoch inside a file: the enclosing definitions by name."""
        return ".".join(scope.name for scope in self.chain)


class WindowClass(Noun, frozen=True):
    """How much the cursor deserves. Made by context/window.py."""

    name: Literal["simple", "medium", "complex"]
    lines: Lines
    context: int
    """Prompt tokens that this class may take, as this machine can afford them."""
    output: int
    """Tokens to generate at most."""
    reason: str


class Piece(Noun, frozen=True):
    """Text that may stand in the stable part of a prompt. `importance`, `recency`: 0 to 1."""

    tier: Tier
    kind: PieceKind
    path: str
    text: str
    name: str = ""
    start_line: int = 0
    end_line: int = 0
    importance: float = 0.0
    recency: float = 0.0
    distance: int = 0
    """Steps through references from the cursor's file."""

    @property
    def score(self) -> float:
        """0.7 · AST importance + 0.3 · recency, before distance is taken into account."""
        return IMPORTANCE_SHARE * self.importance + RECENCY_SHARE * self.recency

    @property
    def source(self) -> str:
        """How the piece is named to people: no text of it."""
        where = f"{self.path}:{self.start_line + 1}" if self.path else ""
        return " ".join(part for part in (self.kind, where, self.name) if part)


class Lost(Noun, frozen=True):
    """A piece that was considered and is not shown."""

    tier: Tier
    source: str
    tokens: int
    score: float
    why: str


class Stable(Noun, frozen=True):
    """The stable part of prompts for one place: chosen once, appended to, replaced only in idle time."""

    epoch: int = 0
    path: str = ""
    scope: str = ""
    pieces: tuple[Piece, ...] = ()
    """In the order of the prompt."""
    lost: tuple[Lost, ...] = ()
    reason: str = ""
    states: dict[str, bytes] = msgspec.field(default_factory=dict)
    """Other files that pieces are of → what tells their state when they were chosen from another."""

    @property
    def key(self) -> tuple[int, int]:
        """Equal for equal pieces: inside an epoch they are only appended."""
        return (self.epoch, len(self.pieces)) if self.pieces else (0, 0)
