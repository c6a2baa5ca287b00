"""What a measurement hands back: a flat map of figures for machines, tables and notes for people."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from rich.table import Table

Figures = dict[str, float]
Progress = Callable[[int, int], None]
"""Told how much is done, and of how much."""


@dataclass(slots=True)
class Outcome:
    """One benchmark's result. `figures` holds every figure, the losing ones too; times in ms."""

    name: str
    seed: int
    figures: Figures = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    model: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)

    def json(self) -> str:
        """One JSON object. A figure that could not be measured (NaN) is left out and named in the notes."""
        figures = {name: value for name, value in self.figures.items() if math.isfinite(value)}
        missing = [name for name in self.figures if name not in figures]
        notes = [*self.notes, f"not measured: {', '.join(missing)}"] if missing else self.notes
        whole = {
            "name": self.name,
            "model": self.model,
            "machine": machine(),
            "profile": self.profile,
            "seed": self.seed,
            "figures": figures,
            "notes": notes,
        }
        return json.dumps(whole, ensure_ascii=False)


def machine() -> dict[str, Any]:
    """What the figures depend on besides the model; nothing that names the user."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": psutil.cpu_count(logical=False) or 0,
        "threads": psutil.cpu_count() or 0,
        "memory_mb": psutil.virtual_memory().total // 2**20,
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            found = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
            return next(found, platform.processor())
    except OSError:
        return platform.processor()


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """A table whose first column is text and whose others are figures."""
    made = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        made.add_column(column, justify="right" if place else "left", overflow="fold")
    for row in rows:
        made.add_row(*(show(cell) for cell in row))
    return made


def show(cell: object) -> str:
    """A figure in as many digits as a person reads."""
    if not isinstance(cell, float):
        return str(cell)
    if math.isnan(cell):
        return "–"
    return f"{cell:.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
