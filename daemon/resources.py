"""Files of config/: packaged inside the wheel, or beside the packages in a checkout."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def folder() -> Path:
    """The config folder: `daemon/_config` in a wheel, `config` in a checkout (measured: force-include
    does not exist in an editable install)."""
    packaged = _HERE / "_config"
    return packaged if packaged.is_dir() else _HERE.parent / "config"


def read_text(name: str) -> str:
    """The text of one file of config/, by its path relative to that folder."""
    return (folder() / name).read_text(encoding="utf-8")
