"""One project's `.foretype.toml`: read as a stranger's file, understood only where it narrows.

It counts as absent, with a reason, unless it is a small regular file of our own user that says nothing but
what narrowing.narrowed allows. The reason is safe to print: a project chooses what stands in it.
"""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from daemon import narrowing
from daemon.errors import SettingsError
from daemon.settings import Settings
from daemon.switches import Switches, globs, switches
from indexer.globs import Globs

NAME = ".foretype.toml"
MOST_BYTES = 8192
MOST_LINE = 1000
"""Bytes of one line: tomllib takes quadratic time for a key of many parts, a second for 16 kB of `a.a.a`."""
_SHOWN = 400


class Project(msgspec.Struct, frozen=True):
    """One file as read. `values`: key → value, all of them narrower than the user's."""

    values: dict[str, Any] = {}
    left_out: Globs = Globs(())
    switches: Switches = Switches()
    refused: str = ""
    """Why it counts as absent; empty when it does not."""


def load(file: Path, chosen: Settings) -> Project:
    """What `file` narrows of the `chosen` settings."""
    try:
        tree = tomllib.loads(read(file).decode("utf-8-sig"))
        values = narrowing.narrowed(chosen, tree, NAME)
        left_out = globs("complete.ignore", values.get("complete.ignore", ()), NAME)
        globs("index.ignore", values.get("index.ignore", ()), NAME)
        complete = {key.removeprefix("complete."): value for key, value in values.items()}
        switched = switches(complete, NAME)
    except SettingsError as error:
        return Project(refused=clean(str(error)))
    except OSError as error:
        return Project(refused=f"it cannot be read: {error.strerror}")
    except RecursionError:
        return Project(refused="it is nested too deeply")
    except ValueError as error:
        return Project(refused=clean(f"it is no TOML: {error}"))
    return Project(values=values, left_out=left_out, switches=switched)


def read(file: Path, owner: int | None = None) -> bytes:
    """A project file's bytes; never waits, follows no link. `owner`: user id, ours unless given.

    Raises OSError, whose `strerror` says why not.
    """
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)
    if not stat.S_ISREG(file.lstat().st_mode):
        raise OSError(0, "it is not a regular file")
    with os.fdopen(os.open(file, flags), "rb", buffering=0) as handle:
        found = os.fstat(handle.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a regular file")
        if hasattr(os, "geteuid") and found.st_uid != (os.geteuid() if owner is None else owner):
            raise OSError(0, "it belongs to another user")
        data = handle.read(MOST_BYTES + 1) or b""
    if len(data) > MOST_BYTES:
        raise OSError(0, f"it is larger than {MOST_BYTES} bytes")
    if any(len(line) > MOST_LINE for line in data.split(b"\n")):
        raise OSError(0, f"it has a line longer than {MOST_LINE} bytes")
    return data


def clean(text: str) -> str:
    """`text` for a terminal: a project chooses its names, and so what is in them."""
    return "".join(c if c.isprintable() else "�" for c in text)[:_SHOWN]
