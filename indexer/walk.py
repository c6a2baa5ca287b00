"""What is on disk against what is stored, and one file's bytes read safely.

Events are hints; the truth is a stat, then a content hash. Links are not followed, neither a file's own nor
one above it, so nothing outside the root is read and loops end; a linked package inside the root is found
once, under its real path. Special files are never opened.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from indexer.content import DEFAULTS, Caps, classify
from indexer.deny import denied
from indexer.errors import RootUnavailable
from indexer.ignore import rules_for
from indexer.records import FileChange, FileRow, FileStat, Record, SkipReason
from indexer.specs import Rules, is_folder

RECENT_NS = 2_000_000_000
"""A file changed this recently may have changed again without a new time stamp; its content decides."""

_EARLIEST, _LATEST = -(1 << 63), (1 << 63) - 1
"""What a database holds: the years 1678 to 2262. File systems know more."""

_FLAGS = os.O_RDONLY
for _flag in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
    _FLAGS |= getattr(os, _flag, 0)

_BY_STAT = frozenset(("denied", "link", "special", "depth", "size"))
"""Reasons that a stat shows; the others need the content."""


class Skipped(Record, frozen=True):
    """A path that counts, but is not read."""

    stat: FileStat
    reason: SkipReason


class Listing(Record, frozen=True):
    """Everything that counts below a root at one moment."""

    files: tuple[FileStat, ...]
    skipped: tuple[Skipped, ...] = ()
    truncated: int = 0
    """Paths left out because of Caps.files."""
    unnamable: tuple[str, ...] = ()
    """Names that are no text, shown with escapes; they cannot be stored. At most 20."""


class Loaded(Record, frozen=True):
    """One file as read. `text` is UTF-8 without a byte order mark, None when `reason` says why."""

    stat: FileStat
    digest: bytes
    text: bytes | None
    reason: SkipReason | Literal[""]


def list_files(root: Path | str, caps: Caps = DEFAULTS) -> Iterator[FileStat]:
    """Regular files that count: git's list minus the deny list, links and caps. Raises RootUnavailable."""
    yield from scan(root, caps).files


def identity(root: Path | str) -> tuple[int, int]:
    """(device, inode) of the root. Raises RootUnavailable when it is no folder that can be read."""
    try:
        found = os.stat(root)
        with os.scandir(root) as entries:
            next(entries, None)
    except (OSError, ValueError) as error:
        raise RootUnavailable(f"the root cannot be read: {getattr(error, 'strerror', error)}") from error
    return found.st_dev, found.st_ino


def scan(root: Path | str, caps: Caps = DEFAULTS, rules: Rules | None = None) -> Listing:
    """List and stat everything that counts. 10,000 files take about 0.1 s. Raises RootUnavailable.

    `rules`: those of the root; made anew when not given.
    """
    top = os.fspath(root)
    before = identity(top)
    paths = (rules or rules_for(top, caps.depth, caps.ignore)).listing()
    folders: dict[str, list[str]] = {}
    unnamable: list[str] = []
    for path in paths[: caps.files]:
        folder, _, name = path.rpartition("/")
        if not path.isascii() and not _namable(path):
            unnamable.append(path.encode("utf-8", "backslashreplace").decode())
        else:
            folders.setdefault(folder, []).append(name)
    rows = _stat_all(top, folders, caps)
    if identity(top) != before:
        raise RootUnavailable("the root was replaced while it was read")
    return Listing(
        files=tuple(row for row in rows if isinstance(row, FileStat)),
        skipped=tuple(row for row in rows if isinstance(row, Skipped)),
        truncated=max(0, len(paths) - caps.files),
        unnamable=tuple(unnamable[:20]),
    )


def reconcile(root: Path | str, known: Mapping[str, FileRow], caps: Caps = DEFAULTS) -> list[FileChange]:
    """What may have changed since `known` was stored. Raises RootUnavailable: gone, or unmounted."""
    return compare(root, scan(root, caps), known)


def compare(
    root: Path | str, listing: Listing, known: Mapping[str, FileRow], mounted: bool = True
) -> list[FileChange]:
    """Like reconcile, for a listing that is at hand.

    A touched file is among the changes; its digest tells that nothing has to be parsed. Raises
    RootUnavailable when there is nothing at all below a root that had files, and was `mounted` on when it
    did, but is not now: an empty mount point.
    """
    gone = mounted and not os.path.ismount(root)
    if known and gone and not listing.files and not listing.skipped and not os.listdir(root):
        raise RootUnavailable("the root is empty; its file system may not be mounted")
    now = time.time_ns()
    here: set[str] = set()
    changes: list[FileChange] = []
    for found, reason in _all(listing):
        here.add(found.path)
        row = known.get(found.path)
        if row is None or _differs(root, found, reason, row, now):
            changes.append(FileChange(path=found.path))
    changes += [FileChange(path=path, gone=True) for path in known if path not in here]
    return changes


def load(root: Path | str, path: str, caps: Caps = DEFAULTS) -> Loaded | None:
    """Read one file for indexing; None when no file has that name any more. Never waits for a FIFO."""
    top = os.fspath(root)
    full = f"{top}/{path}"
    try:
        found = os.lstat(full)
        if stat.S_ISDIR(found.st_mode) or not _reachable(top, path.rpartition("/")[0], {}):
            return None
    except (OSError, ValueError):
        return None
    row = _row(path, found)
    reason = _by_stat(path, found, caps)
    if reason:
        return Loaded(stat=row, digest=b"", text=None, reason=reason)
    try:
        data, found = _read(full, caps.size)
    except OSError as error:
        gone = error.errno in (errno.ENOENT, errno.ENOTDIR)
        return None if gone else Loaded(stat=row, digest=b"", text=None, reason=_refusal(error))
    text, reason = classify(data, path, caps)
    return Loaded(stat=_row(path, found), digest=_digest(data), text=text, reason=reason)


def digest(path: Path | str) -> bytes:
    """BLAKE2b-128 of a regular file's bytes as they are on disk. Raises OSError."""
    data, _ = _read(os.fspath(path), None)
    return _digest(data)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _read(full: str, limit: int | None) -> tuple[bytes, os.stat_result]:
    """Bytes of a regular file and its stat from before reading: a later write shows as a newer stat."""
    handle = os.open(full, _FLAGS)
    with os.fdopen(handle, "rb", buffering=0) as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if limit is None:
            return file.readall(), found
        parts = []
        while limit >= 0 and (part := file.read(limit + 1)):
            parts.append(part)
            limit -= len(part)
        return b"".join(parts), found


def _refusal(error: OSError) -> SkipReason:
    if error.errno == errno.ELOOP:
        return "link"
    return "special" if error.errno in (errno.EINVAL, errno.ENXIO) else "unreadable"


def _by_stat(path: str, found: os.stat_result, caps: Caps) -> SkipReason | Literal[""]:
    if denied(path):
        return "denied"
    if stat.S_ISLNK(found.st_mode):
        return "link"
    if not stat.S_ISREG(found.st_mode):
        return "special"
    if path.count("/") > caps.depth:
        return "depth"
    return "size" if found.st_size > caps.size else ""


def _row(path: str, found: os.stat_result) -> FileStat:
    return FileStat(
        path=path,
        size=found.st_size,
        mtime_ns=max(_EARLIEST, min(_LATEST, found.st_mtime_ns)),
        inode=found.st_ino,
        executable=bool(found.st_mode & 0o111),
    )


def _stat_all(top: str, folders: Mapping[str, Sequence[str]], caps: Caps) -> list[FileStat | Skipped]:
    reachable: dict[str, bool] = {"": True}
    rows: list[FileStat | Skipped] = []
    for folder, names in folders.items():
        if not _reachable(top, folder, reachable):
            continue
        lead = f"{folder}/" if folder else ""
        for name, found in _stats(f"{top}/{folder}" if folder else top, names):
            path = f"{lead}{name}"
            row = _row(path, found)
            reason = _by_stat(path, found, caps)
            rows.append(Skipped(stat=row, reason=reason) if reason else row)
    return rows


def _stats(folder: str, names: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Stats of the named entries that are no folders, and of special files, which git does not list."""
    wanted = set(names)
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                ordinary = entry.is_file(follow_symlinks=False) or entry.is_symlink()
                if entry.name in wanted if ordinary else not entry.is_dir(follow_symlinks=False):
                    try:
                        yield entry.name, entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
    except OSError:
        return


def _reachable(top: str, folder: str, known: dict[str, bool]) -> bool:
    """True when `folder` is below the root without a link on the way. Answers are kept in `known`."""
    answer = known.get(folder)
    if answer is None:
        above = folder.rpartition("/")[0]
        answer = not folder or (_reachable(top, above, known) and is_folder(f"{top}/{folder}"))
        known[folder] = answer
    return answer


def _namable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _all(listing: Listing) -> Iterator[tuple[FileStat, str]]:
    for found in listing.files:
        yield found, ""
    for skip in listing.skipped:
        yield skip.stat, skip.reason


def _differs(root: Path | str, found: FileStat, reason: str, row: FileRow, now: int) -> bool:
    if reason != (row.reason if row.reason in _BY_STAT else ""):
        return True
    if found.size != row.size or found.mtime_ns != row.mtime_ns:
        return True
    if reason:
        return False
    if abs(now - found.mtime_ns) < RECENT_NS:
        return True
    return (row.reason == "unreadable") == os.access(f"{os.fspath(root)}/{found.path}", os.R_OK)
