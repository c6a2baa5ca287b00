"""What may happen to a database file behind everybody's back."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

from indexer import schema


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(random.Random(5).randbytes(4096))


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(6).randbytes(50_000))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    path.unlink()
    db = sqlite3.connect(path)
    db.execute("create table file(id, path)")
    db.commit()
    db.close()


def newer(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute(f"pragma user_version = {schema.VERSION + 1}")
    db.close()
