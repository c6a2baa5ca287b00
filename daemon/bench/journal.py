"""Results that a stopped measurement has already made, so that the next run goes on from there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from daemon import paths
from daemon.errors import ForetypeError

Row = dict[str, Any]


class Journal:
    """One JSON object per line, one file per key. No source text is written.

    `key` names everything that a result depends on: model, tasks, variant, settings, build.
    """

    def __init__(
        self, name: str, key: dict[str, object], fresh: bool = False, folder: Path | None = None
    ) -> None:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
        self.path = (folder or paths.cache_dir() / "bench") / f"{name}-{digest}.jsonl"
        self.rows: dict[str, Row] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if fresh:
                self.path.unlink(missing_ok=True)
            self._read()
        except OSError as error:
            remedy = "Set FORETYPE_HOME to a writable folder"
            raise ForetypeError(
                f"the journal {self.path} cannot be used: {error.strerror}", remedy
            ) from error

    def _read(self) -> None:
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8")
        for line in text.splitlines():
            try:
                row = json.loads(line)
                self.rows[str(row["task"])] = row
            except (ValueError, KeyError, TypeError):
                continue  # the line that was being written when the run was stopped
        if text and not text.endswith("\n"):
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def add(self, task: str, row: Row) -> Row:
        """Keep one result; it is on disk when this returns."""
        entry = {"task": task, **row}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, sort_keys=True) + "\n")
        self.rows[task] = entry
        return entry
