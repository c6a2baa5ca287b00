"""One path → everything that is stored of it: read, classify, digest, parse, summarise, chunk, count.

Runs in the parsing children. Nothing here raises because of what a file holds: it becomes a skip reason.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

from indexer import chunks, content, outline, parse, similarity, tokens
from indexer.errors import ParseBudgetExceeded
from indexer.frames import Made, Setup, Task
from indexer.languages import registry
from indexer.records import FileRow, IndexedFile, ParsedFile

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


class Read(NamedTuple):
    """A file's stat and bytes, or why there are none. `row` is None when there is no such file."""

    row: FileRow | None
    data: bytes = b""


class Maker:
    """Makes rows with one vocabulary and one set of limits."""

    def __init__(self, setup: Setup, tokenizer: tokens.Tokenizer | None) -> None:
        self._setup = setup
        self._tokenizer = tokenizer

    def make(self, task: Task) -> Made:
        """Rows of one file; of a file whose content is as known only its row."""
        began = time.thread_time()
        found = read(Path(task.root), task.path, self._setup.max_file_bytes)
        row, file, ids = found.row, None, b""
        if row is not None and (not task.digest or row.digest != task.digest):
            file, ids = self._rows(row, found.data)
            row = file.row
        return Made(
            root=task.root, path=task.path, row=row, file=file, ids=ids, cpu_s=time.thread_time() - began
        )

    def _rows(self, row: FileRow, data: bytes) -> tuple[IndexedFile, bytes]:
        if row.reason:
            return IndexedFile(row=row), b""
        source, reason = content.classify(data, row.path)
        if source is None or reason:
            return IndexedFile(row=_with(row, reason=reason)), b""
        try:
            return self._parsed(row, source)
        except ParseBudgetExceeded:
            return IndexedFile(row=_with(row, reason="budget")), b""
        except RecursionError:
            return IndexedFile(row=_with(row, reason="depth")), b""

    def _parsed(self, row: FileRow, source: bytes) -> tuple[IndexedFile, bytes]:
        text = source.decode("utf-8")
        ids = self._tokenizer.encode(text) if self._tokenizer else b""
        language = registry.language_for(row.path, source[:1024])
        parsed: ParsedFile | None = None
        outlines, bands = (), ()
        if language is not None:
            parsed, tree = parse.parse_file(source, language, self._setup.budget_s)
            outlines = outline.outline(source, parsed, language, tree)
            bands = similarity.bands(parsed, source)
        row = _with(
            row,
            language=language.name if language else "",
            lines=source.count(b"\n") + (not source.endswith(b"\n") and bool(source)),
            tokens=tokens.count(ids),
        )
        made = chunks.chunks(text, parsed)
        return IndexedFile(row=row, parsed=parsed, outlines=outlines, chunks=made, bands=bands), ids


def _with(row: FileRow, **changes: object) -> FileRow:
    fields = {name: getattr(row, name) for name in FileRow.__struct_fields__}
    return FileRow(**{**fields, **changes})  # type: ignore[arg-type]


def read(root: Path, path: str, most: int) -> Read:
    """Stat and content of a plain file; never waits on a FIFO, never follows a link."""
    where = root / path
    try:
        found = where.lstat()
    except OSError as error:
        return Read(None) if error.errno in _GONE else Read(_row(path, None, "unreadable"))
    if stat.S_ISDIR(found.st_mode):
        return Read(None)
    if stat.S_ISLNK(found.st_mode):
        return Read(_row(path, found, "link"))
    if not stat.S_ISREG(found.st_mode):
        return Read(_row(path, found, "special"))
    if found.st_size > most:
        return Read(_row(path, found, "size"))
    try:
        return _read_plain(where, path, most)
    except OSError as error:
        return Read(None) if error.errno in _GONE else Read(_row(path, found, "unreadable"))


def _read_plain(where: Path, path: str, most: int) -> Read:
    with os.fdopen(os.open(where, _FLAGS), "rb", buffering=0) as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            return Read(_row(path, found, "special"))
        parts, size = [], 0
        while size <= most and (part := stream.read(most + 1 - size)):
            parts.append(part)
            size += len(part)
    if size > most:
        return Read(_row(path, found, "size"))
    data = b"".join(parts)
    return Read(_row(path, found, "", hashlib.blake2b(data, digest_size=16).digest()), data)


def _row(path: str, found: os.stat_result | None, reason: str, digest: bytes = b"") -> FileRow:
    size, when = (found.st_size, found.st_mtime_ns) if found else (0, 0)
    return FileRow(path=path, size=size, mtime_ns=when, digest=digest, reason=reason)


def skipped(task: Task, most: int) -> Made:
    """What is stored of a file that no child survives: its row with the reason `budget`."""
    row = read(Path(task.root), task.path, most).row
    if row is not None and not row.reason:
        row = _with(row, reason="budget")
    return Made(root=task.root, path=task.path, row=row, file=IndexedFile(row=row) if row else None)
