"""The command's frame: every command registered, errors told with a remedy, quick where it must be."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.cli import common, main
from daemon.settings import Settings

COMMAND = [sys.executable, "-I", "-m", "daemon.cli.main"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path))
    return tmp_path


def test_the_table_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    said = capsys.readouterr().out
    listed = re.findall(r"^    (\w+) ", said, re.MULTILINE)
    assert listed == list(dict.fromkeys(listed))
    assert set(listed) == set(main.COMMANDS)
    assert "/v1/complete" in said
    assert "curl" in said


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: foretype {name}" in capsys.readouterr().out


def test_version_and_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--version"])
    assert capsys.readouterr().out.startswith("foretype ")
    with pytest.raises(SystemExit) as ended:
        main.main([])
    assert ended.value.code == 2
    assert "foretype up" in capsys.readouterr().err


def test_an_error_says_what_and_what_to_do(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["status"]) == 7
    assert capsys.readouterr().err == "error: no daemon runs. Start one with `foretype up`\n"
    assert main.main(["status", "--config", str(home / "none.toml")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_status_does_not_wait_for_libraries_it_does_not_need() -> None:
    code = (
        "import sys\nfrom daemon.cli.main import main\nassert main(['status']) == 7\n"
        "heavy = {'aiohttp', 'rich', 'numpy', 'psutil', 'asyncio', 'tiktoken'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_is_no_error(home: Path) -> None:
    logs = home / "state/logs"
    logs.mkdir(parents=True)
    (logs / "daemon.log").write_text("a line\n" * 100_000)
    with subprocess.Popen(
        [*COMMAND, "logs", "-n", "100000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(10) == 141


def test_what_serve_is_told_is_what_up_was_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    (home / "m.gguf").write_bytes(b"")
    (home / "c.toml").write_text("[engine]\ncontext = 1024\n")
    words = ["up", "--config", "c.toml", "--port", "0", "--also", "1", "--also", "2", "--model", "m.gguf"]
    first = main.parser("up").parse_args(words)
    passed = common.serve_arguments(first)
    ports = ("--port", "0", "--also", "1", "--also", "2")
    assert passed == ("--config", str(home / "c.toml"), *ports, "--model", str(home / "m.gguf"))
    second = main.parser("serve").parse_args(["serve", *passed])
    expected = common.load(first)
    assert common.load(second) == expected
    assert (expected.engine.context, expected.server.port) == (1024, 0)
    assert expected.server.extra_ports == (1, 2)
    assert common.load(main.parser("up").parse_args(["up"])) == Settings()


@pytest.mark.parametrize("name", ["qwen2.5-coder-0.5b-q4_k_m", "anything"])
def test_a_model_name_stays_a_name(name: str) -> None:
    assert common.absolute(name) == name
