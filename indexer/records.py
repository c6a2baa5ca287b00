"""Frozen rows that travel between the indexer's rooms, and from the database to the context builder.

    path → FileChange → ParsedFile → rows  ⇢ read-only ⇢ Snippet

Byte ranges are offsets into the file's bytes as stored on disk after decoding to UTF-8 and removal of a byte
order mark; lines count from 0; ends are exclusive. Paths are relative to their root, with `/`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SymbolKind = Literal[
    "module",
    "namespace",
    "class",
    "interface",
    "struct",
    "enum",
    "trait",
    "type",
    "function",
    "method",
    "constructor",
    "property",
    "field",
    "variable",
    "constant",
    "macro",
    "member",
]
"""`member` is a value of an enumeration."""

Role = Literal["call", "type", "base", "decorator", "attribute", "import", "name"]

SkipReason = Literal[
    "denied",
    "ignored",
    "binary",
    "encoding",
    "size",
    "line",
    "depth",
    "generated",
    "minified",
    "special",
    "unreadable",
    "budget",
    "link",
]
"""Why a file is not parsed: `special` is a FIFO, socket or device; `budget` the parse took too long;
`line` a line, `size` a file, `depth` a nesting beyond its cap."""


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all rows."""


class Span(Record, frozen=True):
    """Where something stands: bytes and lines."""

    start_byte: int
    end_byte: int
    start_line: int
    end_line: int


class Symbol(Record, frozen=True):
    """A definition. `parent`: index of the enclosing symbol in the same file's tuple, -1 at top level."""

    kind: SymbolKind
    name: str
    qualified: str
    """Names from the outermost enclosing symbol, joined with a dot."""
    span: Span
    """The whole definition, decorators included."""
    name_start: int
    name_end: int
    """Byte range of the name itself."""
    parent: int = -1
    signature: str = ""
    """One line, without the body: names, parameters, types; at most 400 characters."""
    doc: str = ""
    """First sentence of its documentation, at most 200 characters."""
    exported: bool = True


class Reference(Record, frozen=True):
    """A use of a name."""

    name: str
    role: Role
    start_byte: int
    end_byte: int
    line: int
    symbol: int = -1
    """Index of the enclosing symbol, -1 outside all."""


class Import(Record, frozen=True):
    """What a file takes from elsewhere. `names` are the imported names, empty when the whole module is."""

    module: str
    names: tuple[str, ...] = ()
    line: int = 0
    level: int = 0
    """Leading dots of a relative import where the language counts them (Python)."""


class ParsedFile(Record, frozen=True):
    """What a parse found in one file. Made by indexer/parse.py."""

    language: str
    symbols: tuple[Symbol, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[Import, ...] = ()
    errors: int = 0
    """Error and missing nodes in the tree."""


class Outline(Record, frozen=True):
    """A structured summary in the file's own language. `symbol`: index of its symbol, -1: the file."""

    text: str
    symbol: int = -1


class Chunk(Record, frozen=True):
    """A stretch of a file for full-text search; lines, end exclusive."""

    start_line: int
    end_line: int
    text: str


class FileStat(Record, frozen=True):
    """What the file system says: enough to see that nothing changed."""

    path: str
    size: int
    mtime_ns: int
    inode: int = 0
    executable: bool = False


class FileChange(Record, frozen=True):
    """A path that may have changed; stat and content decide. `gone` when it is known to be absent now."""

    path: str
    gone: bool = False


class FileRow(Record, frozen=True):
    """A file as stored. `reason` is empty for an indexed file; `digest` is blake2b-128 of the content."""

    path: str
    size: int
    mtime_ns: int
    digest: bytes
    language: str = ""
    reason: str = ""
    lines: int = 0
    tokens: int = 0


class IndexedFile(Record, frozen=True):
    """Everything that one transaction writes for one file."""

    row: FileRow
    parsed: ParsedFile | None = None
    outlines: tuple[Outline, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    bands: tuple[tuple[int, bytes], ...] = ()
    """(symbol index, its LSH band keys packed as little-endian uint32) for similarity."""


class Snippet(Record, frozen=True):
    """What the reading side hands to the context builder."""

    path: str
    start_line: int
    end_line: int
    text: str
    kind: Literal["outline", "definition", "caller", "sibling", "similar", "text"]
    name: str = ""
    score: float = 0.0
