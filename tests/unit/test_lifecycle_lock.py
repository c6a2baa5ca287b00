"""The lock and the private folder: only the operating system decides who is the daemon."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import instance, paths
from daemon.errors import LifecycleError
from daemon.instance import Holder, Lock

HOLD = """
import sys
from pathlib import Path
from daemon.instance import Holder, Lock
lock = Lock(Path(sys.argv[1]))
assert lock.acquire(5)
lock.write(Holder(pid=1, build="x"))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def other(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the daemon's lock."""
    instance.prepare_runtime()
    command = [sys.executable, "-I", "-c", HOLD, str(paths.lock_path())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_one_holder_at_a_time(other: subprocess.Popen[str]) -> None:
    assert instance.held(paths.lock_path())
    assert not Lock(paths.lock_path()).acquire()


def test_a_killed_holder_frees_it(other: subprocess.Popen[str]) -> None:
    other.kill()
    other.wait()
    assert not instance.held(paths.lock_path())
    lock = Lock(paths.lock_path())
    assert lock.acquire()
    lock.release()


def test_patience_outlasts_a_glance(other: subprocess.Popen[str]) -> None:
    lock = Lock(paths.lock_path())
    began = time.monotonic()
    assert not lock.acquire(0.2)
    assert 0.2 <= time.monotonic() - began < 2
    assert other.stdin
    other.stdin.close()
    assert lock.acquire(5)
    lock.release()


@pytest.mark.parametrize("content", [b"", b"0", b"garbage\xff", b'{"pid": "x"}', b'{"pid": 1}', b"[]"])
def test_the_content_decides_nothing(content: bytes) -> None:
    instance.prepare_runtime()
    paths.lock_path().write_bytes(content)
    assert isinstance(instance.holder(), Holder)
    assert not instance.held(paths.lock_path())
    lock = Lock(paths.lock_path())
    assert lock.acquire()
    lock.write(Holder(pid=os.getpid(), build="b"))
    assert instance.holder() == Holder(pid=os.getpid(), build="b")
    lock.release()


def test_a_removed_lock_file_is_not_a_second_lock(other: subprocess.Popen[str]) -> None:
    paths.lock_path().unlink()
    lock = Lock(paths.lock_path())
    assert lock.acquire(), "the name is free; what was removed can no longer be honoured"
    assert instance.held(paths.lock_path())
    lock.release()


def test_only_the_process_with_the_open_lock_is_the_daemon(other: subprocess.Popen[str]) -> None:
    assert instance.holds_lock(other.pid)
    with subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        assert not instance.holds_lock(stranger.pid)
        stranger.kill()
    assert not instance.holds_lock(stranger.pid)
    for never in (-1, 0, 1, os.getpid()):
        assert not instance.holds_lock(never)


def test_the_folder_is_private_whatever_the_umask(home: Path) -> None:
    old = os.umask(0)
    try:
        folder = instance.prepare_runtime()
        lock = Lock(paths.lock_path())
        assert lock.acquire()
        lock.release()
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(paths.lock_path().stat().st_mode) == 0o600


def test_an_open_folder_is_closed(home: Path) -> None:
    folder = home / "run"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    instance.prepare_runtime()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_is_refused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    home.mkdir()
    (home / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LifecycleError, match="not a plain folder"):
        instance.prepare_runtime()


def test_a_parent_open_to_all_is_refused(home: Path) -> None:
    home.mkdir()
    home.chmod(0o777)
    with pytest.raises(LifecycleError, match="open to all"):
        instance.prepare_runtime()


def test_without_a_login_session_the_folder_is_private_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.delenv("FORETYPE_HOME")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert paths.runtime_dir().is_absolute()
    assert not list(recwarn), "nothing is said on the terminal"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    if sys.platform.startswith("linux"):
        assert instance.prepare_runtime() == tmp_path / "foretype"


def test_a_home_that_cannot_be_made_is_told(home: Path) -> None:
    home.write_text("a file stands here")
    with pytest.raises(LifecycleError, match="cannot be made") as caught:
        instance.prepare_runtime()
    assert "FORETYPE_HOME" in caught.value.remedy


def test_build_id_is_quick_and_stable() -> None:
    instance.build_id.cache_clear()
    began = time.perf_counter()
    first = instance.build_id()
    assert time.perf_counter() - began < 0.5
    instance.build_id.cache_clear()
    assert instance.build_id() == first
    assert len(first) == 16


def test_nobody_answers(home: Path) -> None:
    instance.prepare_runtime()
    assert instance.greet() is None
    paths.socket_path().write_bytes(b"not a socket")
    assert instance.greet() is None
