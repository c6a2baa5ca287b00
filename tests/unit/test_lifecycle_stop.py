"""Ending daemons of another build, polite or not, by the frozen verbs and at last by signal."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import instance, lifecycle, paths
from daemon.errors import LifecycleError, NotRunning

OLDER = Path(__file__).resolve().parent.parent / "e2e" / "older_daemon.py"
Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path))
    monkeypatch.setattr(instance, "GREET_S", 0.5)
    monkeypatch.setattr(lifecycle, "DRAIN_S", 1.5)
    monkeypatch.setattr(lifecycle, "_SIGNAL_S", 1.0)


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[subprocess.Popen[str]] = []

    def one(manner: str) -> subprocess.Popen[str]:
        instance.prepare_runtime()
        command = [sys.executable, "-I", str(OLDER), str(paths.lock_path()), str(paths.socket_path()), manner]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        return process

    yield one
    for process in running:
        with process:
            process.kill()


def test_hello_of_another_build_is_understood(start: Start) -> None:
    process = start("polite")
    hello = instance.greet()
    assert hello is not None
    assert (hello.build, hello.pid, hello.version) == ("older", process.pid, "0.0.9")


def test_another_program_is_not_a_daemon(start: Start) -> None:
    start("foreign")
    assert instance.greet() is None


@pytest.mark.parametrize(("manner", "code"), [("polite", 0), ("deaf", -15), ("stubborn", -9), ("hung", -15)])
def test_down_always_ends_it(start: Start, manner: str, code: int) -> None:
    process = start(manner)
    began = time.monotonic()
    assert lifecycle.down() == process.pid
    assert time.monotonic() - began < 8
    assert process.wait(5) == code
    assert not instance.held(paths.lock_path())


def test_nothing_to_end() -> None:
    with pytest.raises(NotRunning):
        lifecycle.down()


def test_a_hung_daemon_is_named_and_not_doubled(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start("hung")
    monkeypatch.setattr(lifecycle, "START_S", 0.2)
    with pytest.raises(LifecycleError, match=f"does not answer.*process {process.pid}") as caught:
        lifecycle.up()
    assert "down" in caught.value.remedy
    assert process.poll() is None


def test_a_stranger_named_in_the_lock_file_is_never_signalled(start: Start) -> None:
    process = start("hung")
    with subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        paths.lock_path().write_text(f'{{"pid": {stranger.pid}}}')
        with pytest.raises(LifecycleError, match="does not answer"):
            lifecycle.down()
        assert stranger.poll() is None
        stranger.kill()
    assert process.poll() is None
