"""`foretype doctor --editor`: what it says of an editor before and after its requests came in."""

import http.client
import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.living import COMMAND
from support.lsp import started

from daemon import resources
from daemon.bench import rig
from daemon.cli import editors, main
from daemon.observe.callers import Caller

SESSION = Path(__file__).resolve().parents[1] / "data/wire/llama_vim_session.jsonl"


@pytest.fixture
async def here(tiny_model: Path) -> AsyncIterator[rig.Rig]:
    async with rig.running(str(tiny_model)) as running:
        yield running


def doctor(here: rig.Rig, name: str) -> tuple[int, dict[str, dict[str, str]]]:
    """(exit status, checks by name)."""
    command = [*COMMAND, "doctor", "--editor", name, "--json"]
    environment = {**os.environ, "FORETYPE_HOME": str(here.home)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert not done.stderr
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)}


def say(here: rig.Rig, entry: dict[str, Any]) -> dict[str, Any]:
    """What the recorded client sent, over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", here.endpoint.port, timeout=60)
    left_out = ("Host", "Content-Length")
    headers = {name: value for name, value in entry["headers"].items() if name not in left_out}
    connection.request(entry["method"], entry["path"], json.dumps(entry["body"]), headers)
    answer = connection.getresponse()
    found: dict[str, Any] = json.loads(answer.read())
    assert answer.status == 200, found
    connection.close()
    return found


async def test_llama_vim(here: rig.Rig) -> None:
    status, checks = doctor(here, "llama.vim")
    assert (status, checks["llama.vim"]["level"]) == (1, "fail")
    assert "no request has come in" in checks["llama.vim"]["text"]
    assert str(resources.folder() / "editors/llama.vim") in checks["llama.vim"]["remedy"]
    assert checks["model"]["level"] == "ok"
    recorded = [json.loads(line) for line in SESSION.read_text("utf-8").splitlines()]
    asked = [entry for entry in recorded if entry["path"] == "/infill"][:4]
    texts = [say(here, entry).get("content", "") for entry in asked]
    status, checks = doctor(here, "llama.vim")
    shown = sum(bool(text) for text in texts)
    found = checks["llama.vim"]
    assert f"4 requests, 4 answered, {shown} with text" in found["text"]
    assert (status, found["level"]) == (0, "ok" if shown else "warn")
    status, checks = doctor(here, "llama.vscode")
    assert (status, checks["llama.vscode"]["level"]) == (1, "fail")
    assert "at the same door asked curl (4)" in checks["llama.vscode"]["text"]


async def test_what_a_language_server_passes_on_is_its_editors(here: rig.Rig) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": "foretype"}
    question = {"prefix": "x = ", "client": "lsp:Neovim:77", "max_tokens": 4}
    say(here, {"method": "POST", "path": "/v1/complete", "headers": headers, "body": question})
    _, checks = doctor(here, "neovim")
    assert "1 requests, 1 answered" in checks["neovim"]["text"]
    status, checks = doctor(here, "helix")
    assert (status, checks["helix"]["level"]) == (1, "fail")
    assert "at the same door asked Neovim (1)" in checks["helix"]["text"]


async def test_a_language_server(here: rig.Rig, tmp_path: Path) -> None:
    file, environment = (tmp_path / "a.py").as_uri(), {**os.environ, "FORETYPE_HOME": str(here.home)}
    async with started([*COMMAND, "lsp"], environment) as one:
        await one.initialize(clientInfo={"name": "helix"})
        one.open(file, "def total(items):\n    price = 0\n    ")
        await one.ghost(file, 2, 4, kind=1)
        _, checks = doctor(here, "helix")
        assert "1 requests, 1 answered" in checks["helix"]["text"]
        assert doctor(here, "lsp")[1]["lsp"]["text"].startswith("any editor")


def test_every_editor_has_a_snippet_that_names_the_address_or_the_command() -> None:
    folder = resources.folder() / editors.FOLDER
    known = editors.known()
    assert {"llama.vim", "neovim", "llama.vscode", "continue", "zed", "helix", "emacs", "jetbrains"} <= set(
        known
    )
    for editor in known.values():
        text = (folder / editor.file).read_text("utf-8")
        assert "127.0.0.1:8012" in text or ("foretype" in text and "lsp" in text)
    assert {file.name for file in folder.iterdir()} == {e.file for e in known.values()} | {"editors.toml"}


def body(**caller: Any) -> dict[str, Any]:
    one = Caller(**{"door": "infill", "agent": "curl", **caller})
    return {"uptime_s": 70.0, "addresses": ["x"], "metrics": {"callers": [msgspec.to_builtins(one)]}}


BEFORE = {"last_request": 9.0}


@pytest.mark.parametrize(
    ("caller", "level", "words"),
    [
        ({"answered": 3, "shown": 2, "last_request": 99.0, "last_answer": 99.5}, "ok", "2 with"),
        ({"last_request": 99.0}, "ok", "0 answered"),
        ({**BEFORE}, "fail", "0 answered"),
        ({**BEFORE, "failed": 2, "last_failure": "unavailable"}, "fail", "`unavailable`"),
        ({**BEFORE, "answered": 1, "shown": 1, "failed": 8, "last_answer": 5.0}, "warn", "8 failed"),
        ({**BEFORE, "answered": 3, "last_answer": 9.1}, "warn", "0 with text"),
    ],
)
def test_verdicts(caller: dict[str, Any], level: str, words: str) -> None:
    found = editors.judge(editors.known()["llama.vim"], body(requests=9, **caller), now=100.0)
    assert found[0] == level
    assert words in found[1]
    assert bool(found[2]) == (level != "ok")


def test_without_a_daemon_and_with_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert editors.judge(editors.known()["zed"], {})[0] == "fail"
    with pytest.raises(SystemExit):
        main.main(["doctor", "--editor", "ed"])
    assert "llama.vim" in capsys.readouterr().err
