"""The daemon's life with real processes: one of it, whatever happens, and a clear word when it cannot be."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.living import COMMAND, Home, alive, home, pid_in, until

import daemon
from daemon import resources

__all__ = ["home"]

ROOT = Path(daemon.__file__).resolve().parent.parent
OLDER = Path(__file__).resolve().parent / "older_daemon.py"


@pytest.fixture
def older(home: Home) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    running: list[subprocess.Popen[str]] = []

    def one(manner: str) -> subprocess.Popen[str]:
        home.socket.parent.mkdir(mode=0o700)
        process = home.start(
            str(home.lock), str(home.socket), manner, command=[sys.executable, "-I", str(OLDER)]
        )
        running.append(process)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        return process

    yield one
    for process in running:
        process.kill()
        process.communicate()


def test_up_status_complete_down_without_a_model(home: Home) -> None:
    assert home.run("status").returncode == 7
    pid = home.up()
    assert home.up() == pid
    told = home.run("status")
    assert told.returncode == 0
    assert "foretype models pull qwen2.5-coder-0.5b-q4_k_m" in told.stdout
    body = home.status()
    assert body["pid"] == pid
    assert body["model"]["phase"] == "failed"
    assert {a.partition(":")[0] for a in body["addresses"]} == {"unix", "http"}
    (home.folder / "a.py").write_text("x = 1\n")
    done = home.run("complete", "a.py:1:3")
    assert done.returncode == 3
    assert "models pull" in done.stderr
    ended = home.run("down")
    assert ended.returncode == 0
    assert pid_in(ended.stdout) == pid
    assert not home.socket.exists()
    assert home.run("down").returncode == 7


def test_twenty_at_once_are_one(home: Home) -> None:
    running = [home.start("up", "--port", "0") for _ in range(20)]
    outcomes = [(process.communicate(timeout=90), process.returncode) for process in running]
    assert [code for _, code in outcomes] == [0] * 20, [said for said, code in outcomes if code]
    assert len({pid_in(out) for (out, _), _ in outcomes}) == 1
    assert sum(" started " in out for (out, _), _ in outcomes) == 1


def test_a_crash_never_blocks_the_next_start(home: Home) -> None:
    pid = home.up()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid))
    assert home.socket.exists(), "a crash leaves the socket"
    with subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        for content in (f'{{"pid": {stranger.pid}}}', "0", "", "garbage \x00", f'{{"pid": {os.getpid()}}}'):
            home.lock.write_text(content)
            pid = home.up()
            assert home.lock.read_text().startswith('{"pid":' + str(pid))
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: not alive(pid))
        assert stranger.poll() is None
        stranger.kill()
    assert home.run("status").returncode == 7


def test_a_signal_ends_it_in_two_seconds_whatever_clients_do(home: Home) -> None:
    pid = home.up()
    (address,) = (a for a in home.status()["addresses"] if a.startswith("http"))
    port = int(address.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        for said in (
            b"",
            b"POST /v1/complete HTTP/1.1\r\nHost: 127.0.0.1\r\n",
            b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        ):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(said)
        began = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        until(lambda: not alive(pid), 5)
        assert time.monotonic() - began < 2
    assert not home.socket.exists()
    assert "ending" in home.run("logs", "-n", "1").stdout


@pytest.mark.parametrize("manner", ["polite", "deaf"])
def test_an_older_build_is_replaced(
    home: Home, older: Callable[[str], subprocess.Popen[str]], manner: str
) -> None:
    old = older(manner)
    began = time.monotonic()
    done = home.run("up", "--port", "0")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 8
    assert "in place of build older" in done.stdout
    assert old.wait(5) == (0 if manner == "polite" else -signal.SIGTERM)


def test_builds_replace_each_other_both_ways(home: Home) -> None:
    """A second build is a copy with one changed file in a bare environment of its own."""
    copy, bare = home.folder / "copy", home.folder / "bare"
    for name in ("daemon", "indexer"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(resources.folder(), copy / "config", dirs_exist_ok=True)
    with (copy / "indexer/__init__.py").open("a") as file:
        file.write("# changed\n")
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(bare)], check=True)
    (packages,) = bare.glob("lib/python*/site-packages")
    (packages / "all.pth").write_text(
        f"{copy}\n" + "".join(f"{p}\n" for p in sys.path if p.endswith("-packages"))
    )
    other = [str(bare / "bin/python"), *COMMAND[1:]]
    first = home.up()
    second = home.up(command=other)
    assert second != first
    assert not alive(first)
    assert home.up(command=other) == second
    assert home.up() not in (first, second)
    assert not alive(second)
