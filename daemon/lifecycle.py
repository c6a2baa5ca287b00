"""Start, stop and replace the daemon from outside, through its two frozen verbs: hello and stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import msgspec

from daemon import instance, paths
from daemon.errors import LifecycleError, NotRunning
from daemon.instance import Hello, Lock

START_S = 20.0
"""How long a started daemon may take until it answers hello (the model loads after that)."""
DRAIN_S = 4.0
"""How long a daemon may take to end after it was asked, before it is told by signal."""
_SIGNAL_S = 3.0
_POLL_S = 0.03


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What `up` found or did."""

    hello: Hello
    fresh: bool
    """Whether this call started it."""
    replaced: str = ""
    """Build of the daemon that had to go."""


def up(arguments: tuple[str, ...] = (), token: str = "") -> Started:
    """Exactly one daemon of this build runs when this returns, however many call it at once.

    `arguments` are passed to `serve`. Raises LifecycleError that says what is in the way.
    """
    lock = Lock(instance.prepare_runtime() / "start.lock")
    deadline = time.monotonic() + 2 * START_S
    while not lock.acquire():
        if (hello := _ours(token)) is not None:
            return Started(hello=hello, fresh=False)
        if time.monotonic() > deadline:
            raise LifecycleError("another `foretype up` does not get ready", f"Look into {start_log()}")
        time.sleep(_POLL_S)
    try:
        return _up_alone(arguments, token)
    finally:
        lock.release()


def _ours(token: str) -> Hello | None:
    hello = instance.greet(token)
    return hello if hello is not None and hello.build == instance.build_id() else None


def _held() -> bool:
    return instance.held(paths.lock_path())


def _up_alone(arguments: tuple[str, ...], token: str) -> Started:
    hello = instance.greet(token)
    if hello is None and _held():
        # It was started by hand and is not ready yet, or it is just ending, or it hangs.
        _wait(lambda: not _held() or instance.greet(token) is not None, START_S / 2)
        hello = instance.greet(token)
        if hello is None and _held():
            raise LifecycleError(_silent_holder(), "`foretype down` ends it")
    replaced = ""
    if hello is not None:
        if hello.build == instance.build_id():
            return Started(hello=hello, fresh=False)
        replaced = hello.build
        _end(hello.pid, token)
    return Started(hello=_start(arguments, token), fresh=True, replaced=replaced)


def _silent_holder() -> str:
    named = instance.holder().pid
    told = f" (its lock file names process {named})" if named > 1 else ""
    return f"a daemon holds {paths.lock_path()} but does not answer{told}"


def down(token: str = "") -> int:
    """End the running daemon; its process id. Raises NotRunning, or LifecycleError when it stays."""
    instance.prepare_runtime()
    hello = instance.greet(token)
    if hello is None and not _held():
        raise NotRunning("no daemon runs", "Start one with `foretype up`")
    pid = hello.pid if hello else instance.holder().pid
    _end(pid, token)
    return pid


def _end(pid: int, token: str) -> None:
    """Ask, then signal, then kill; each step bounded. Signals go only to the process that has our lock."""
    asked = instance.call("POST", instance.STOP, token=token) is not None
    if asked and _wait_free(DRAIN_S):
        return
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if not instance.holds_lock(pid):
            break
        with contextlib.suppress(OSError):
            os.kill(pid, number)
        if _wait_free(_SIGNAL_S):
            return
    if not _wait_free(_POLL_S):
        raise LifecycleError(_silent_holder(), "End that process by hand, then try again")


def _wait_free(seconds: float) -> bool:
    return _wait(lambda: not _held(), seconds)


def _wait(probe: Callable[[], bool], seconds: float) -> bool:
    """Ask until the answer is true or the time is over."""
    deadline = time.monotonic() + seconds
    while not (answer := probe()) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return answer


def start_log() -> Path:
    """What a daemon said before its own log was open; begun anew at each start."""
    return paths.logs_dir() / "start.log"


def _start(arguments: tuple[str, ...], token: str) -> Hello:
    with _said() as output:
        child = _spawn(arguments, output)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            code, hello = child.poll(), instance.greet(token)
            # Its own build is right even if the files changed while it started.
            if hello is not None and (hello.pid == child.pid or hello.build == instance.build_id()):
                return hello
            # A `serve` started by hand may have won: then ours has ended and the other one answers soon.
            if code is not None and not _held():
                raise LifecycleError(f"the daemon ended at once: {_last_words(output, code)}", _whole_story())
            time.sleep(_POLL_S)
        child.terminate()
        raise LifecycleError(f"the daemon did not answer within {START_S:.0f} s", _whole_story())


def _whole_story() -> str:
    return f"{start_log()} has all it said" if start_log().exists() else "`foretype serve` shows all it says"


def _last_words(output: IO[bytes], code: int) -> str:
    output.seek(0)
    lines = [line for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ").rstrip(".") if lines else f"exit code {code}"


@contextlib.contextmanager
def _said() -> Iterator[IO[bytes]]:
    """The file for the first words of a daemon; a nameless one where its folder cannot be written."""
    try:
        start_log().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        start_log().write_bytes(b"")
        stream: IO[bytes] = start_log().open("a+b")
    except OSError:
        stream = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the next statement, like the other
    with stream:
        yield stream


def _spawn(arguments: tuple[str, ...], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start `serve` apart from this terminal. -I: no folder and no variable can replace its modules."""
    command = [sys.executable, "-I", "-m", "daemon.cli.main", "serve", *arguments]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=Path.home() if Path.home().is_dir() else Path(Path.home().anchor or "/"),
            env=environment,
            start_new_session=sys.platform != "win32",
            creationflags=flags,
        )
    except OSError as error:
        raise LifecycleError(
            f"the daemon cannot be started: {error}", "`foretype doctor` checks why"
        ) from error
