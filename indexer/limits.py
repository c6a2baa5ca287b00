"""Why the system will not watch, in words that say what to change."""

from __future__ import annotations

import errno
from pathlib import Path

_LIMITS = Path("/proc/sys/fs/inotify")


def explain(error: OSError, folders: int) -> str:
    """Why there can be no native watching, with the system's limit and what to change."""
    if error.errno == errno.ENOSPC:
        return (
            f"the limit of inotify watches is reached ({_limit('max_user_watches')} for all programs "
            f"of this user, {folders} folders watched here); raise fs.inotify.max_user_watches"
        )
    if error.errno == errno.EMFILE:
        return (
            "the limit of inotify instances or open files is reached "
            f"({_limit('max_user_instances')} for all programs of this user); raise "
            "fs.inotify.max_user_instances"
        )
    return f"the system refuses to watch folders: {error.strerror}"


def _limit(name: str) -> str:
    try:
        return (_LIMITS / name).read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"
