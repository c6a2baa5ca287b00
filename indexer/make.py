"""One path → everything that is stored of it: read, classify, digest, parse, summarise, chunk, count.

Runs in the parsing children. Nothing here raises because of what a file holds: it becomes a skip reason.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import msgspec

from indexer import chunks, content, outline, parse, similarity, tokens, walk
from indexer.errors import NestingTooDeep, ParseBudgetExceeded
from indexer.frames import Made, Setup, Task
from indexer.languages import registry
from indexer.records import FileRow, IndexedFile, Outline, ParsedFile

_MOST = 16
"""Times the budget that a parse may take on a machine that is busy with something else."""


class Maker:
    """Makes rows with one vocabulary and one set of limits."""

    def __init__(self, setup: Setup, tokenizer: tokens.Tokenizer | None) -> None:
        self._setup = setup
        self._caps = caps(setup)
        self._tokenizer = tokenizer
        self._encoder = ThreadPoolExecutor(1, "tokens")
        """Encoding runs without the interpreter's lock: a second core does it while this one parses."""

    def make(self, task: Task) -> Made:
        """Rows of one file; of a file whose content is as known only its row."""
        began = time.process_time()
        found = walk.load(task.root, task.path, self._caps)
        if found is None:
            return Made(root=task.root, path=task.path)
        row, file, ids = _row(found, found.reason), None, b""
        if not task.digest or row.digest != task.digest:
            file, ids = self._rows(row, found.text)
            row = file.row
        return Made(
            root=task.root, path=task.path, row=row, file=file, ids=ids, cpu_s=time.process_time() - began
        )

    def _rows(self, row: FileRow, source: bytes | None) -> tuple[IndexedFile, bytes]:
        if source is None or row.reason:
            return IndexedFile(row=row), b""
        text, budget_s = source.decode("utf-8"), self._setup.budget_s
        encoded = self._encoder.submit(self._tokenizer.encode, text) if self._tokenizer else None
        while True:
            began = time.thread_time()
            try:
                file = self._parsed(row, source, text, budget_s)
            except NestingTooDeep:
                return IndexedFile(row=_with(row, reason="depth")), b""
            except ParseBudgetExceeded:
                # On a busy machine the clock ran while others did: the file is not to blame.
                if time.thread_time() - began > 0.5 * budget_s or budget_s > _MOST * self._setup.budget_s:
                    return IndexedFile(row=_with(row, reason="budget")), b""
                budget_s *= 4
                continue
            ids = encoded.result() if encoded else b""
            return msgspec.structs.replace(file, row=_with(file.row, tokens=tokens.count(ids))), ids

    def _parsed(self, row: FileRow, source: bytes, text: str, budget_s: float) -> IndexedFile:
        language = registry.language_for(row.path, source[:1024])
        parsed: ParsedFile | None = None
        outlines: tuple[Outline, ...] = ()
        bands: tuple[tuple[int, bytes], ...] = ()
        if language is not None:
            parsed, _ = parse.parse_file(source, language, budget_s)
            outlines = outline.outline(source, parsed, language)
            bands = similarity.bands(parsed, source)
        row = _with(
            row,
            language=language.name if language else "",
            lines=source.count(b"\n") + (not source.endswith(b"\n") and bool(source)),
        )
        made = chunks.chunks(text, parsed)
        return IndexedFile(row=row, parsed=parsed, outlines=outlines, chunks=made, bands=bands)


def skipped(task: Task, setup: Setup) -> Made:
    """What is stored of a file that no child survives: its row with the reason `budget`."""
    found = walk.load(task.root, task.path, caps(setup))
    if found is None:
        return Made(root=task.root, path=task.path)
    row = _row(found, found.reason or "budget")
    return Made(root=task.root, path=task.path, row=row, file=IndexedFile(row=row))


def caps(setup: Setup) -> content.Caps:
    """The limits of one file."""
    return content.Caps(size=setup.max_file_bytes, line=setup.max_line)


def _row(found: walk.Loaded, reason: str) -> FileRow:
    stat = found.stat
    return FileRow(path=stat.path, size=stat.size, mtime_ns=stat.mtime_ns, digest=found.digest, reason=reason)


def _with(row: FileRow, **changes: object) -> FileRow:
    fields = {name: getattr(row, name) for name in FileRow.__struct_fields__}
    return FileRow(**{**fields, **changes})
