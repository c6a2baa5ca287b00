"""What a project may do to the user's settings: narrow them, key by key, and nothing else."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from daemon.errors import SettingsError
from daemon.loading import convert, value_of
from daemon.nouns import Lines
from daemon.settings import PROJECT, Complete, Settings

_LINES: tuple[Lines, ...] = get_args(Lines)
"""The shortest answers first."""


def allowed() -> dict[str, str]:
    """Key → what a project may do to it: `lower`, `only false`, `add`, `shorten` or `shorten each`. Others it
    cannot set."""
    found = {}
    for section in msgspec.structs.fields(Settings):
        for field in msgspec.structs.fields(section.type):
            for meta in getattr(field.type, "__metadata__", ()):
                if meta.extra is not None:
                    found[f"{section.name}.{field.name}"] = str(meta.extra[PROJECT])
    return found


def narrowed(settings: Settings, tree: dict[str, Any], where: str) -> dict[str, Any]:
    """Key → value of a project's `tree`, every one proved to be valid and to narrow `settings`.

    Raises SettingsError naming `where`, the key and what is allowed.
    """
    known, base = allowed(), msgspec.to_builtins(settings)
    for section, values in tree.items():
        table = section in base and isinstance(values, dict)
        for key in [f"{section}.{name}" for name in values] if table else [section]:
            if not table or key not in known:
                raise SettingsError(f"{where}: a project cannot set {key}", f"It may set {', '.join(known)}")
        base[section] = {**base[section], **values}
    chosen, found = convert(base, Settings, where), {}
    for key in (f"{section}.{name}" for section, values in tree.items() for name in values):
        value, users = value_of(chosen, key), value_of(settings, key)
        if known[key] == "shorten each":
            users = _longest(settings.complete)
        if _wider(known[key], value, users):
            remedy = f"{users!r} is set, and a project can only narrow ({known[key]})"
            raise SettingsError(f"{where}: {key} is {value!r}", remedy)
        found[key] = value
    return found


def shorter(one: Lines, other: Lines) -> Lines:
    """The one that lets an answer hold less."""
    return min(one, other, key=_LINES.index)


def _longest(users: Complete) -> Lines:
    """The longest answers that the user wants anywhere."""
    found = (users.lines, *users.languages.values(), *(switch.lines for switch in users.paths))
    return max(found, key=_LINES.index)


def _wider(how: str, value: Any, users: Any) -> bool:
    if how == "add":
        return False
    if how == "shorten each":
        found = value.values() if isinstance(value, dict) else (switch.lines for switch in value)
        return any(_wider("shorten", lines, users) for lines in found)
    if how == "shorten":
        return _LINES.index(value) > _LINES.index(users)
    return bool(value > users)
