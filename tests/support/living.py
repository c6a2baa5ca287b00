"""A daemon with real processes in a home of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

COMMAND = [sys.executable, "-I", "-m", "daemon.cli.main"]


class Home:
    """A FORETYPE_HOME of its own with a short path (a socket's path has a limit)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket, self.lock = folder / "run/daemon.sock", folder / "run/daemon.lock"
        self.environment = {**os.environ, "FORETYPE_HOME": str(folder), "NO_COLOR": "1"}
        self.environment.pop("FORETYPE_MODELS", None)

    def start(self, *arguments: str, command: list[str] = COMMAND, **more: object) -> subprocess.Popen[str]:
        options = {"env": self.environment, "cwd": self.folder, **more}
        return subprocess.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )  # type: ignore[call-overload]

    def run(self, *arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, **more) as process:
            out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def up(self, *arguments: str, **more: object) -> int:
        """Start it; the daemon's process id."""
        done = self.run("up", "--port", "0", *arguments, **more)
        assert done.returncode == 0, done.stderr
        return pid_in(done.stdout)

    def status(self) -> dict:  # type: ignore[type-arg]
        return json.loads(self.run("status", "--json").stdout)


def pid_in(text: str) -> int:
    found = re.search(r"process (\d+)", text)
    assert found, text
    return int(found[1])


def until(probe: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def home() -> Iterator[Home]:
    folder = Path(tempfile.mkdtemp(prefix="ft-"))
    made = Home(folder)
    yield made
    made.run("down", cwd=Path("/"))
    shutil.rmtree(folder, ignore_errors=True)
