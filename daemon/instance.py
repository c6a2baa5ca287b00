"""One daemon per user: a private runtime folder, a lock held open, and the identity handshake.

The lock is the operating system's, held by an open file, so a crash or a reboot always frees it. What the
lock file says is information for people; nothing is decided by it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.client
import os
import socket
import stat
import sys
import time
from pathlib import Path

import msgspec

import daemon
from daemon import paths, resources
from daemon.errors import LifecycleError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NAME = "foretype"
HELLO = "/v1/hello"
STOP = "/v1/stop"
_LOCK_BYTE = 0x7FFF0000
"""Windows locks byte ranges and keeps others from reading them; this one lies beyond the text."""
GREET_S = 2.0
"""How long a daemon may take to answer one of the frozen verbs."""
_UNREADABLE = (OSError, http.client.HTTPException, msgspec.MsgspecError, ValueError)


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `GET /v1/hello`. These names are frozen: every build can read every other build's."""

    name: str
    version: str
    build: str
    pid: int
    started: float
    """Seconds since the epoch."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """What the lock file says about who holds it. Information only."""

    pid: int = 0
    build: str = ""
    started: float = 0.0
    port: int = 0
    """Loopback TCP port; 0 when there is none."""


@functools.cache
def build_id() -> str:
    """Identity of this build: the version and the content of every source and configuration file."""
    digest = hashlib.sha256(daemon.__version__.encode())
    root = Path(daemon.__file__).resolve().parent.parent
    files = [file for top in ("daemon", "indexer") for file in (root / top).rglob("*.py")]
    files += [file for file in resources.folder().rglob("*") if file.is_file()]
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def prepare_runtime() -> Path:
    """Make the runtime folder, or prove that the one there is ours alone. Raises LifecycleError."""
    folder = paths.runtime_dir()
    try:
        for missing in reversed([p for p in (folder, *folder.parents) if not p.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not hasattr(os, "getuid"):
            return folder
        _refuse_foreign(folder, found)
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError as error:
        raise LifecycleError(
            f"the runtime folder {folder} cannot be made: {error.strerror or error}",
            "Make its parent writable, or set FORETYPE_HOME to a folder that is",
        ) from error
    return folder


def _refuse_foreign(folder: Path, found: os.stat_result) -> None:
    remedy = "Remove it, or set FORETYPE_HOME to a folder of your own"
    if stat.S_ISLNK(found.st_mode) or not stat.S_ISDIR(found.st_mode):
        raise LifecycleError(f"the runtime folder {folder} is not a plain folder", remedy)
    if found.st_uid != os.getuid():
        raise LifecycleError(f"the runtime folder {folder} belongs to user {found.st_uid}", remedy)
    parent = folder.parent.stat()
    # Root may have another id in a container; the owner of / tells it.
    if parent.st_uid not in (
        os.getuid(),
        0,
        Path("/").stat().st_uid,
    ):
        raise LifecycleError(f"{folder.parent} belongs to user {parent.st_uid}", remedy)
    if parent.st_mode & stat.S_IWOTH and not parent.st_mode & stat.S_ISVTX:
        raise LifecycleError(f"anybody can replace {folder}, because {folder.parent} is open to all", remedy)


class Lock:
    """An exclusive lock on a file, freed by the system when its holder ends. The file is never removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, patience_s: float = 0.0) -> bool:
        """Try for `patience_s`; True when it is ours. Somebody's glance (`held`) never lasts that long."""
        deadline = time.monotonic() + patience_s
        while not self._attempt():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        return True

    def write(self, holder: Holder) -> None:
        """Say who we are, for people who look."""
        assert self._descriptor is not None
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, msgspec.json.encode(holder) + b"\n")

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _attempt(self) -> bool:
        try:
            descriptor = _open(self.path, create=True)
        except OSError as error:
            raise LifecycleError(
                f"the lock file {self.path} cannot be opened: {error.strerror or error}", "Remove it"
            ) from error
        with contextlib.suppress(OSError):
            if _lock(descriptor) and os.path.samestat(os.fstat(descriptor), self.path.stat()):
                self._descriptor = descriptor
                return True
        os.close(descriptor)
        return False


def _open(path: Path, *, create: bool) -> int:
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | (os.O_CREAT if create else 0)
    return os.open(path, flags, 0o600)


def _lock(descriptor: int, *, shared: bool = False) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _LOCK_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def held(path: Path) -> bool:
    """Whether some process holds the lock on `path` now."""
    try:
        descriptor = _open(path, create=False)
    except OSError:
        return False
    try:
        return not _lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


def holder() -> Holder:
    """What the lock file says; all defaults where it says nothing readable."""
    try:
        return msgspec.json.decode(paths.lock_path().read_bytes()[:4096], type=Holder)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return Holder()


def holds_lock(pid: int) -> bool:
    """Whether process `pid`, ours, really has the daemon's lock file open: asked of the system, so that a
    recycled pid or a pid of another container is never taken for the daemon."""
    import psutil  # noqa: PLC0415 - only stopping needs it

    if pid <= 1 or pid == os.getpid():
        return False
    try:
        target = paths.lock_path().resolve()
        return any(Path(entry.path).resolve() == target for entry in psutil.Process(pid).open_files())
    except (psutil.Error, OSError):
        return False


class _Local(http.client.HTTPConnection):
    """HTTP over the daemon's Unix socket, or over loopback where the system has none. No proxy ever."""

    def __init__(self, timeout: float) -> None:
        super().__init__("127.0.0.1", holder().port or None, timeout=timeout)

    def connect(self) -> None:
        if sys.platform == "win32":
            super().connect()
            return
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(paths.socket_path()))


def call(method: str, path: str, *, token: str = "", timeout: float | None = None) -> bytes | None:
    """One exchange with whoever listens; its body when the status is 200, else None. Never raises."""
    connection = _Local(timeout or GREET_S)
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, body=b"{}" if method == "POST" else None, headers=headers)
        answer = connection.getresponse()
        body = answer.read(65536)
        return body if answer.status == http.client.OK else None
    except _UNREADABLE:
        return None
    finally:
        connection.close()


def greet(token: str = "", timeout: float | None = None) -> Hello | None:
    """Who answers at the daemon's address; None when nobody does, or somebody else."""
    try:
        hello = msgspec.json.decode(call("GET", HELLO, token=token, timeout=timeout) or b"", type=Hello)
    except _UNREADABLE:
        return None
    return hello if hello.name == NAME else None
