"""A real editor: Neovim's own client edits over LSP, shows a completion and takes it."""

import json
import subprocess
from pathlib import Path

from support.living import COMMAND, Home, home
from support.nvim import NVIM

from daemon.doors import client

__all__ = ["home"]
SCRIPT = Path(__file__).resolve().parent.parent / "support/neovim.lua"
EDITS = 300


def test_neovim_takes_what_the_daemon_logged(home: Home, tiny_model: Path) -> None:
    config = home.folder / "config/config.toml"  # nobody types 300 edits in a second
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[server]\nclient_per_s = 0\n")
    server = [*COMMAND, "lsp", "--port", "0", "--model", str(tiny_model)]
    environment = {
        **home.environment,
        "SERVER": json.dumps(server),
        "FILE": str(home.folder / "a.py"),
        "EDITS": str(EDITS),
        "XDG_STATE_HOME": str(home.folder / "nvim"),
    }
    command = [str(NVIM), "--headless", "--clean", "-n", "-S", str(SCRIPT)]
    done = subprocess.run(
        command,
        env=environment,
        cwd=home.folder,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.stdout.endswith("}\n"), done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["told"] == []
    assert found["encoding"] == "utf-8"
    assert found["stopped"] is True
    at = client.Address(home.socket)
    logged = client.request("GET", f"/v1/ledger/{found['id']}", at=at)
    taken = "\n".join(found["lines"]).removeprefix("\n".join(found["before"]))
    assert taken == logged["answer"]["text"] != ""
    errors = home.status()["errors"]
    assert "resync" not in errors, "no edit of a real editor was taken for another"
