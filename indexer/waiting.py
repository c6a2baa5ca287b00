"""Rows that wait to be written: the newest of each path, and how long the first has waited."""

from __future__ import annotations

import time
from collections.abc import Mapping

from indexer.frames import Made
from indexer.records import FileRow

FILES, BYTES, AGE_S = 96, 4 << 20, 0.4
"""A transaction holds up to this, and no row waits longer."""


class Waiting:
    """By path; None stands for a path that is to be forgotten."""

    def __init__(self) -> None:
        self.rows: dict[str, Made | None] = {}
        self.urgent = False
        """Whether a person just changed something of it."""
        self._bytes = 0
        self._oldest = 0.0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def full(self) -> bool:
        """Whether this is enough for a transaction."""
        return len(self.rows) >= FILES or self._bytes >= BYTES

    def add(self, path: str, made: Made | None) -> None:
        """Put in the newest of a path."""
        if not self.rows:
            self._oldest = time.monotonic()
        self.rows[path] = made
        if made is not None and made.row is not None:
            self._bytes += made.row.size

    def due(self, now: float, idle: bool) -> bool:
        """Whether it is time to write: nothing more is coming, or enough waits."""
        return bool(self.rows) and (idle or self.full or now - self._oldest >= AGE_S)

    def over(self, known: Mapping[str, FileRow]) -> dict[str, FileRow]:
        """`known` as it will be."""
        rows = dict(known)
        for path, made in self.rows.items():
            if made is not None and made.row is not None:
                rows[path] = made.row
            else:
                rows.pop(path, None)
        return rows

    def forget_unchanged(self) -> None:
        """The rows that these say to be as stored are stored no more."""
        self.rows = {p: made for p, made in self.rows.items() if made is None or made.file is not None}

    def clear(self) -> None:
        """All is written."""
        self.rows.clear()
        self._bytes, self.urgent = 0, False
