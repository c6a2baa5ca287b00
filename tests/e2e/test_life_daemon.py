"""The daemon's life with real processes: one of it, whatever happens, and a clear word when it cannot be."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import daemon
from daemon import resources

ROOT = Path(daemon.__file__).resolve().parent.parent
OLDER = Path(__file__).resolve().parent / "older_daemon.py"
COMMAND = [sys.executable, "-I", "-m", "daemon.cli.main"]
DEAD_PROXY = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"), "http://127.0.0.1:9")


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


def test_nothing_of_the_current_folder_is_executed(home: Home) -> None:
    trap = home.folder / "trap"
    trap.mkdir()
    mark = home.folder / "sprung"
    evil = f"open({str(mark)!r}, 'a').write(__file__)\n"
    for name in (
        "daemon",
        "indexer",
        "llama_cpp",
        "aiohttp",
        "msgspec",
        "json",
        "sitecustomize",
        "usercustomize",
    ):
        (trap / f"{name}.py").write_text(evil)
    for name in ("daemon", "indexer"):
        (trap / name).mkdir()
        (trap / name / "__init__.py").write_text(evil)
    pid = home.up(cwd=trap)
    assert Path(psutil.Process(pid).cwd()) != trap
    home.environment["PYTHONPATH"] = str(trap)
    assert home.run("restart", "--port", "0", cwd=trap).returncode == 0
    del home.environment["PYTHONPATH"]
    script = shutil.which("foretype", path=str(Path(sys.executable).parent))
    assert script, "the console script is not installed beside the interpreter"
    for words in (("status",), ("restart", "--port", "0"), ("doctor",), ("down",)):
        done = home.run(*words, cwd=trap, command=[script])
        assert done.returncode in (0, 1), done.stderr
    assert not mark.exists(), mark.read_text()


def test_proxy_variables_do_not_matter(home: Home) -> None:
    home.environment.update(DEAD_PROXY)
    pid = home.up()
    assert home.status()["pid"] == pid
    (home.folder / "a.py").write_text("x")
    assert home.run("complete", "a.py:1:1").returncode == 3
    assert "not used for the daemon" in home.run("doctor").stdout
    assert home.run("down").returncode == 0


def test_a_taken_port_is_named(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = home.run("up", "--port", str(port))
    assert done.returncode == 6
    assert f"port {port} is taken" in done.stderr
    assert "--port" in done.stderr
    assert not home.socket.exists()


def test_serve_does_not_push_the_running_one_aside(home: Home) -> None:
    pid = home.up()
    done = home.run("serve", "--port", "0")
    assert done.returncode == 6
    assert "another daemon is running" in done.stderr
    assert home.status()["pid"] == pid


def test_everything_is_private_under_umask_0(home: Home) -> None:
    home.up(umask=0)
    modes = {p: stat.S_IMODE(p.stat().st_mode) for p in (home.folder / "run", home.socket, home.lock)}
    assert list(modes.values()) == [0o700, 0o600, 0o600]
    assert stat.S_IMODE((home.folder / "state/logs").stat().st_mode) == 0o700


def test_a_home_that_cannot_be_used_is_told(home: Home) -> None:
    (home.folder / "file").write_text("")
    home.environment["FORETYPE_HOME"] = str(home.folder / "file" / "home")
    for words in (("up",), ("serve",), ("down",)):
        done = home.run(*words)
        assert done.returncode == 6, done.stderr
        assert re.match(r"error: the runtime folder .* cannot be made: .*FORETYPE_HOME", done.stderr)
        assert "Traceback" not in done.stderr


def test_without_a_folder_for_logs_it_runs_and_says_so(home: Home) -> None:
    (home.folder / "state").write_text("a file stands here")
    home.up()
    assert any("no log file" in line for line in home.status()["degradations"])
    assert home.run("logs").returncode == 6


def test_a_broken_settings_file_stops_the_start_with_its_key(home: Home) -> None:
    (home.folder / "config").mkdir()
    (home.folder / "config/config.toml").write_text("[server]\nprot = 1\n")
    done = home.run("up")
    assert done.returncode == 2
    assert "prot" in done.stderr
    checks = {c["name"]: c["level"] for c in json.loads(home.run("doctor", "--json").stdout)}
    assert checks["settings"] == "fail"


def test_doctor_and_logs(home: Home) -> None:
    done = home.run("doctor", "--json")
    checks = {c["name"]: c for c in json.loads(done.stdout)}
    assert done.returncode == 1
    assert checks["model"]["level"] == "fail"
    assert "models pull" in checks["model"]["remedy"]
    assert checks["package"]["level"] == "ok"
    home.up()
    assert "listens on" in home.run("logs", "-n", "5").stdout
    assert home.run("logs", "nothing").returncode == 6
