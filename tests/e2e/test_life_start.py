"""Whatever the surroundings are: nothing of them is executed, and a start that cannot be says why."""

import json
import re
import shutil
import socket
import stat
import sys
from pathlib import Path

import psutil
from support.living import Home, home

__all__ = ["home"]

DEAD_PROXY = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"), "http://127.0.0.1:9")


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
