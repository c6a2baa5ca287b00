"""Running counts of a root's files: by language, by skip reason with examples. Kept as rows come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from indexer.frames import Example
from indexer.records import FileRow

_EXAMPLES = 3


class Tally:
    """Counts over the rows that `replace` has told it."""

    def __init__(self, rows: Iterable[FileRow] = ()) -> None:
        self.files = 0
        self.lines = 0
        self.languages: Counter[str] = Counter()
        self._skipped: dict[str, dict[str, None]] = {}
        for row in rows:
            self.replace(None, row)

    def replace(self, old: FileRow | None, new: FileRow | None) -> None:
        """`old` is stored no more, `new` is."""
        if old is not None:
            self._count(old, -1)
        if new is not None:
            self._count(new, 1)

    def skipped(self) -> dict[str, Example]:
        """Reason → how many and the first few."""
        return {
            reason: Example(count=len(paths), paths=tuple(sorted(_first(paths))))
            for reason, paths in sorted(self._skipped.items())
            if paths
        }

    def _count(self, row: FileRow, sign: int) -> None:
        if row.reason:
            paths = self._skipped.setdefault(row.reason, {})
            if sign > 0:
                paths[row.path] = None
            else:
                paths.pop(row.path, None)
            return
        self.files += sign
        self.lines += sign * row.lines
        self.languages[row.language] += sign
        if not self.languages[row.language]:
            del self.languages[row.language]


def _first(paths: dict[str, None]) -> list[str]:
    return [path for path, _ in zip(paths, range(_EXAMPLES), strict=False)]
