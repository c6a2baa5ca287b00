"""Settings from files: defaults → the user's config.toml → command-line flags. An unknown key is an error."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from daemon import paths, resources
from daemon.errors import SettingsError
from daemon.ranges import RANGES
from daemon.settings import Section, Settings

T = TypeVar("T", bound=Section)


def user_file() -> Path:
    """The user's settings file."""
    return paths.config_dir() / "config.toml"


def load(file: Path | None = None, overrides: dict[str, dict[str, Any]] | None = None) -> Settings:
    """Defaults, then `file` (the user's by default; absent is fine), then `overrides` by section.

    Raises SettingsError naming the file and the key.
    """
    where = file or user_file()
    tree: dict[str, Any] = _read(where) if where.exists() else {}
    if file is not None and not file.exists():
        raise SettingsError(f"settings file {file} does not exist", "Check the path given with --config")
    for section, values in (overrides or {}).items():
        tree[section] = {**tree.get(section, {}), **values}
    return convert(tree, Settings, str(where))


def value_of(settings: Settings, key: str) -> Any:
    """The value of `section.name`."""
    section, _, name = key.partition(".")
    return getattr(getattr(settings, section), name)


def _read(where: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(where.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{where} cannot be read: {error}", "Mend the file or move it away") from error


def convert(tree: dict[str, Any], kind: type[T], where: str) -> T:
    """Checked values of a tree. Raises SettingsError naming `where` and the key."""
    try:
        value = msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        keys = resources.folder() / "default.toml"
        raise SettingsError(f"{where}: {error}", f"{keys} lists every key") from error
    if isinstance(value, Settings):
        _check(value, where)
    return value


def _check(settings: Settings, where: str) -> None:
    for key, (low, high) in RANGES.items():
        value = value_of(settings, key)
        if not low <= value <= high:
            raise SettingsError(f"{where}: {key} is {value}", f"Give a value from {low} to {high}")
    if wrong := [port for port in settings.server.extra_ports if not 1 <= port <= 65535]:
        raise SettingsError(f"{where}: server.extra_ports holds {wrong[0]}", "Give ports from 1 to 65535")
    shares = settings.engine.tensor_split
    if shares and not (min(shares) >= 0 and 0 < sum(shares) < math.inf):
        raise SettingsError(f"{where}: engine.tensor_split is {shares}", "Give one positive share per GPU")
    if settings.server.low_mark >= settings.server.high_mark:
        raise SettingsError(f"{where}: server.low_mark is not below server.high_mark", "Give a lower one")
    if not 1 <= sum(settings.context.shares) <= 100:
        raise SettingsError(
            f"{where}: context.shares are {settings.context.shares}", "Give 100 percent at most"
        )
