"""Synthetic IndexedFile records, and the whole content of a database independent of ids and order."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from indexer.packing import PLACE_BITS, PLACES
from indexer.read import Reader
from indexer.records import (
    Chunk,
    FileRow,
    Import,
    IndexedFile,
    Outline,
    ParsedFile,
    Reference,
    Span,
    Symbol,
)


def symbol(name: str, at: int = 0, parent: int = -1, qualified: str = "") -> Symbol:
    return Symbol(
        kind="function",
        name=name,
        qualified=qualified or name,
        span=Span(start_byte=at, end_byte=at + 40, start_line=at // 10, end_line=at // 10 + 4),
        name_start=at + 4,
        name_end=at + 4 + len(name.encode()),
        parent=parent,
        signature=f"def {name}(value: int) -> str",
        doc=f"What {name} does.",
        exported=not name.startswith("_"),
    )


def reference(name: str, at: int, inside: int = -1, role: Any = "call") -> Reference:
    size = len(name.encode())
    return Reference(name=name, role=role, start_byte=at, end_byte=at + size, line=at // 10, symbol=inside)


def made(
    path: str,
    defines: Sequence[str] = (),
    uses: Sequence[str] = (),
    imports: Sequence[Import] = (),
    text: str = "",
    bands: bool = True,
) -> IndexedFile:
    """A file that defines, uses and imports these names."""
    content = text or "\n".join([f"def {n}(): ..." for n in defines] + [f"{n}()" for n in uses]) + "\n"
    symbols = tuple(symbol(name, 50 * i) for i, name in enumerate(defines))
    references = tuple(reference(name, 50 * i + 7, min(i, len(symbols) - 1)) for i, name in enumerate(uses))
    data = content.encode()
    keys = [hashlib.blake2b(name.encode(), digest_size=16).digest() for name in defines]
    row = FileRow(
        path=path,
        size=len(data),
        mtime_ns=1_000_000_007,
        digest=hashlib.blake2b(data, digest_size=16).digest(),
        language="python",
        lines=content.count("\n"),
        tokens=len(data) // 4,
    )
    return IndexedFile(
        row=row,
        parsed=ParsedFile(language="python", symbols=symbols, references=references, imports=tuple(imports)),
        outlines=(Outline(text="\n".join(s.signature for s in symbols) or "..."),),
        chunks=(Chunk(start_line=0, end_line=row.lines, text=content),),
        bands=tuple(enumerate(keys)) if bands else (),
    )


def noise_text(seed: int, size: int) -> str:
    """About `size` bytes of words that do not compress, 200 a line."""
    source = random.Random(seed)
    words = [f"w{source.getrandbits(48):x}" for _ in range(size // 14)]
    return "\n".join(" ".join(words[i : i + 200]) for i in range(0, len(words), 200))


def noise(path: str, seed: int, size: int) -> IndexedFile:
    """A file of words that do not compress."""
    texts = noise_text(seed, size).splitlines()
    chunks = tuple(Chunk(start_line=i, end_line=i + 1, text=text) for i, text in enumerate(texts))
    row = FileRow(path=path, size=size, mtime_ns=seed, digest=bytes(16), language="text", lines=len(texts))
    return IndexedFile(row=row, chunks=chunks)


def everything(path: Path) -> dict[str, Any]:
    """All that a database says, by paths instead of ids."""
    found: dict[str, Any] = {}
    with Reader(path) as reader:
        for row in reader.files(limit=100_000):
            p = row.path
            found[p] = (
                row,
                reader.symbols(p),
                reader.references(p),
                reader.imports(p),
                reader.outlines(p),
                reader.chunks(p),
                reader.edges(p, 200),
                reader.edges_to(p, 200),
            )
    found["words"] = _words(path)
    return found


def _words(path: Path) -> list[tuple[str, str, str, int]]:
    db = sqlite3.connect(path)
    paths: dict[int, str] = dict(db.execute("select id, path from file"))
    rows = []
    for table, bits in (("chunk_text", PLACE_BITS), ("used", 0), ("band", PLACE_BITS)):
        db.execute(f"create virtual table temp.v_{table} using fts5vocab(main, {table}, instance)")
        for term, doc in db.execute(f"select term, doc from temp.v_{table}"):
            rows.append((table, term, paths[doc >> bits], doc & (PLACES - 1) if bits else 0))
    db.close()
    return sorted(rows)
