"""Where things live on this machine. Every folder can be moved by `FORETYPE_HOME` (tests, portable use)."""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from pathlib import Path

import platformdirs

APP = "foretype"
_UNIX_PATH_LIMIT = 90
"""A Unix socket path must fit in 104 bytes (macOS) or 108 (Linux); some room is left for suffixes."""


def home() -> Path | None:
    """The one folder that replaces all others, when the user set it."""
    value = os.environ.get("FORETYPE_HOME")
    return Path(value).expanduser().absolute() if value else None


def config_dir() -> Path:
    """Holds config.toml and pinned hashes."""
    base = home()
    return base / "config" if base else Path(platformdirs.user_config_dir(APP, appauthor=False))


def cache_dir() -> Path:
    """Holds models and everything that can be made again."""
    base = home()
    return base / "cache" if base else Path(platformdirs.user_cache_dir(APP, appauthor=False))


def models_dir() -> Path:
    """Holds verified GGUF files. `FORETYPE_MODELS` shares one folder among several homes."""
    value = os.environ.get("FORETYPE_MODELS")
    return Path(value).expanduser().absolute() if value else cache_dir() / "models"


def vocabulary_dir() -> Path:
    """Holds exported vocabularies, one file per model hash."""
    return cache_dir() / "vocabulary"


def pages_dir() -> Path:
    """Holds evaluated text of this user's files, private."""
    return cache_dir() / "pages"


def state_dir() -> Path:
    """Holds logs and the ledger."""
    base = home()
    return base / "state" if base else Path(platformdirs.user_state_dir(APP, appauthor=False))


def logs_dir() -> Path:
    """Holds capped log files."""
    return state_dir() / "logs"


def runtime_dir() -> Path:
    """Holds the lock and the socket; made 0700 by whoever uses it (lifecycle)."""
    base = home()
    path = base / "run" if base else _system_runtime_dir()
    if len(str(path)) <= _UNIX_PATH_LIMIT:
        return path
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"{APP}-{os.getuid() if hasattr(os, 'getuid') else 0}-{digest}"


def _system_runtime_dir() -> Path:
    with warnings.catch_warnings():
        # Without a login session the system has no folder; platformdirs warns and takes one in /tmp.
        # That is fine: whoever uses it first proves that it is ours alone.
        warnings.simplefilter("ignore")
        return Path(platformdirs.user_runtime_dir(APP, appauthor=False))


def socket_path() -> Path:
    """The daemon's Unix socket."""
    return runtime_dir() / "daemon.sock"


def lock_path() -> Path:
    """Held open and locked by the running daemon."""
    return runtime_dir() / "daemon.lock"
