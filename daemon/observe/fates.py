"""What became of answers that editors showed: rows of counts, times and names, and the figures over them.

Nothing here quotes a text or names a file. The rows lie in the ledger's file; its thread writes and reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from daemon.nouns import Noun

Outcome = Literal[
    "whole",  # taken to its end
    "line",  # taken to the end of a line
    "word",  # taken to the end of a word
    "typed",  # typed out by hand, all of it
    "over",  # something else was typed in its place
    "dismissed",  # the client says that the person sent it away
    "left",  # the person went elsewhere, or another answer took its place
]
TAKEN: tuple[Outcome, ...] = ("whole", "line", "word")
OUTCOMES: tuple[Outcome, ...] = (*TAKEN, "typed", "over", "dismissed", "left")
MARKS: tuple[tuple[int, str], ...] = ((30, "kept_30"), (120, "kept_120"), (300, "kept_300"))
"""Seconds after a text was taken → the field that says how much of it still stands."""


class Fate(Noun, frozen=True):
    """One answer. Made by observe/acceptance.py; written when it is decided, again when more is known."""

    id: str
    at: float
    """Seconds since the epoch, when it was answered."""
    door: str
    language: str = ""
    window: str = ""
    """Class of the window: simple, medium, complex; empty when unknown."""
    tiers: str = ""
    """What its prompt was made of: names of tiers, ascending."""
    characters: int = 0
    lines: int = 0
    told: bool = False
    """The client said that it was shown."""
    outcome: Outcome = "left"
    taken: int = 0
    """Code points of it that were taken at once; what was typed by hand is not counted."""
    after_ms: float = 0.0
    """How long it stood."""
    kept_30: float | None = None
    kept_120: float | None = None
    kept_300: float | None = None
    """Share of the taken tokens that stood so many seconds later; None: not measured."""


_NAMES = Fate.__struct_fields__
_COLUMNS = tuple(f'"{name}"' for name in _NAMES)  # some are words of SQL
TABLE = f"""create table fate(
    seq integer primary key autoincrement, {", ".join(_COLUMNS)}, unique(id));
create index fate_at on fate(at);
"""
_WRITE = (
    f"insert into fate({', '.join(_COLUMNS)}) values ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
    f" on conflict(id) do update set {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS)}"
)
_TAKEN = "outcome in ('whole', 'line', 'word')"
_SHOWN = f"(told or {_TAKEN} or after_ms >= ?)"
_FIGURES = ", ".join(
    (
        "count(*) answers",
        f"sum({_SHOWN}) shown",
        f"sum({_TAKEN}) accepted",
        *(f"sum(outcome = '{name}' and {_SHOWN}) as \"{name}\"" for name in OUTCOMES),
        "sum(taken) characters",
        *(f"avg({name}) {name}, count({name}) {name}_of" for _, name in MARKS),
    )
)
_GROUPS = ("language", "window", "tiers", "door")


def write(db: sqlite3.Connection, fates: Sequence[Fate], most: int) -> None:
    """Write rows, in place of older ones of the same answers; of all rows the newest `most` stay."""
    db.executemany(_WRITE, (msgspec.structs.astuple(fate) for fate in fates))
    if fates:
        db.execute("delete from fate where seq <= (select max(seq) from fate) - ?", (most,))


def figures(db: sqlite3.Connection, since: float, shown_ms: float) -> dict[str, Any]:
    """Counts and shares over the rows from `since` (seconds since the epoch) on: `total`, and `by` each of
    language, window, tiers and door, the most frequent first.

    An answer that stood less than `shown_ms` counts as shown only where the client says so or it was taken.
    """
    return {
        "total": _sums(db, "'all'", since, shown_ms)[0],
        "by": {name: _sums(db, f'"{name}"', since, shown_ms, "group by 1") for name in _GROUPS},
    }


def _sums(
    db: sqlite3.Connection, group: str, since: float, shown_ms: float, tail: str = ""
) -> list[dict[str, Any]]:
    marks = (shown_ms,) * _FIGURES.count("?")
    cursor = db.execute(
        f"select {group} as name, {_FIGURES} from fate where at >= ? {tail} order by answers desc",  # noqa: S608
        (*marks, since),
    )
    names = [column[0] for column in cursor.description]
    return [_with_share(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def _with_share(sums: dict[str, Any]) -> dict[str, Any]:
    found = {
        key: value if key == "name" or key.startswith("kept") else value or 0 for key, value in sums.items()
    }
    return {**found, "share": found["accepted"] / found["shown"] if found["shown"] else 0.0}
