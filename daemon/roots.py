"""Which folders are indexed: those of the settings and those registered in `roots.toml`.

The file is small and written atomically; the running daemon sees it change, so registering needs no door.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from daemon import paths
from daemon.errors import SettingsError
from daemon.instance import Lock
from daemon.settings import Index
from indexer.frames import RootSpec

_PATIENCE_S = 5.0
"""Several windows of an editor may register their folders at once."""


def file() -> Path:
    """The list of registered roots."""
    return paths.config_dir() / "roots.toml"


def stamp() -> tuple[int, int] | None:
    """What tells one state of the list from another; None when there is no list."""
    try:
        found = file().stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def folder(root: Path) -> Path:
    """Where the index of `root` lives."""
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return paths.cache_dir() / "index" / digest


def registered() -> dict[Path, int]:
    """Registered folder → how often its index was asked to be rebuilt. Raises SettingsError."""
    try:
        tree = tomllib.loads(file().read_text(encoding="utf-8"))
        rows: list[dict[str, Any]] = tree.get("root", [])
        return {Path(row["path"]): int(row.get("generation", 0)) for row in rows}
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise SettingsError(f"{file()} cannot be read: {error}", "Mend the file or remove it") from error


def specs(settings: Index) -> tuple[RootSpec, ...]:
    """All roots, the registered ones first. Raises SettingsError."""
    found = registered()
    for extra in settings.roots:
        found.setdefault(normal(Path(extra)), 0)
    return tuple(
        RootSpec(path=str(root), folder=str(folder(root)), generation=generation)
        for root, generation in found.items()
    )


def normal(path: Path) -> Path:
    """The one spelling under which a root is known: absolute, links resolved."""
    return Path(os.path.realpath(path.expanduser()))


def add(root: Path) -> bool:
    """Register; False when it was already. Raises SettingsError when it is no folder that can be read."""
    if not root.is_dir() or not os.access(root, os.R_OK | os.X_OK):
        raise SettingsError(f"{root} is no folder that can be read", "Give the folder of a repository")
    known = registered()
    if root in known:
        return False
    _write([*known.items(), (root, 0)])
    return True


def adopt(folder: Path, settings: Index) -> bool:
    """Register a folder that an editor has open, unless a root holds it already. Never the home folder or one
    above it: those hold much more than anybody works on. Raises SettingsError as `add` does."""
    root, home = normal(folder), normal(Path.home())
    where = file().with_suffix(".lock")
    with contextlib.suppress(OSError):  # the lock says what is wrong
        where.parent.mkdir(parents=True, exist_ok=True)
    lock = Lock(where)
    if home.is_relative_to(root) or not lock.acquire(_PATIENCE_S):
        return False
    try:
        return not any(root.is_relative_to(spec.path) for spec in specs(settings)) and add(root)
    finally:
        lock.release()


def remove(root: Path) -> None:
    """Forget `root`. Raises SettingsError when it is not registered."""
    known = registered()
    if root not in known:
        raise SettingsError(f"{root} is not registered", "`foretype index list` shows the roots")
    del known[root]
    _write(known.items())


def rebuild(root: Path) -> None:
    """Ask for a fresh index of `root`. Raises SettingsError when it is not registered."""
    known = registered()
    if root not in known:
        raise SettingsError(f"{root} is not registered", f"`foretype index add {root}` does that")
    known[root] += 1
    _write(known.items())


def _write(rows: Iterable[tuple[Path, int]]) -> None:
    text = "# Written by `foretype index add | rm | rebuild`.\n"
    for root, generation in rows:
        text += f"\n[[root]]\npath = {json.dumps(str(root), ensure_ascii=False)}\ngeneration = {generation}\n"
    where = file()
    part = where.with_name(f"{where.name}.{os.getpid()}.part")
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(where)
    except (OSError, UnicodeEncodeError) as error:
        raise SettingsError(f"{where} cannot be written: {error}", "Make its folder writable") from error
