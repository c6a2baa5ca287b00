"""The real tabby-agent against a real daemon: it shows an answer, takes it, and both have the same text.

By hand, because it needs npm and a model that writes code:

    npm install --prefix agent tabby-agent@1.5.0
    python tests/manual/tabby_agent.py agent/node_modules/tabby-agent/dist/cli.js MODEL.gguf

The agent speaks lines of JSON, as Tabby's Vim extension used it: [id, {func, args}] → [id, result].
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXT = (
    'def total_price(rows):\n    """The sum of all prices."""\n    total = 0\n'
    "    for row in rows:\n        \n"
)
CURSOR = len(TEXT) - 1
COMMAND = [sys.executable, "-I", "-m", "daemon.cli.main"]


def foretype(home: Path, *words: str) -> Any:
    done = subprocess.run(
        [*COMMAND, *words], env={**os.environ, "FORETYPE_HOME": str(home)}, capture_output=True, check=True
    )
    return json.loads(done.stdout) if "--json" in words else done.stdout.decode()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def until(probe: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := probe()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)
    return found


class Agent:
    def __init__(self, program: str, home: Path) -> None:
        self._process = subprocess.Popen(
            ["node", program],
            env={**os.environ, "HOME": str(home), "TABBY_DISABLE_USAGE_COLLECTION": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._number = 0

    def call(self, func: str, *args: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._number += 1
        self._process.stdin.write(json.dumps([self._number, {"func": func, "args": args}]) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            number, result = json.loads(line)
            if number == self._number:
                return result
        raise AssertionError("the agent ended")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def run(program: str, model: str, home: Path) -> None:
    foretype(home, "up", "--port", "0", "--model", model)
    status = until(lambda: (s := foretype(home, "status", "--json"))["model"]["phase"] == "ready" and s)
    endpoint = next(one for one in status["addresses"] if one.startswith("http"))
    agent = Agent(program, home)
    try:
        agent.call("initialize", {"config": {"server": {"endpoint": endpoint}}})
        assert until(lambda: agent.call("getStatus") == "ready")
        asked = {"filepath": str(home / "a.py"), "language": "python", "text": TEXT, "position": CURSOR}
        shown = agent.call("provideCompletions", {**asked, "manually": False})
        (choice,) = shown["choices"]
        event = {"completion_id": shown["id"], "choice_index": choice["index"]}
        assert agent.call("postEvent", {**event, "type": "view"})
        assert agent.call("postEvent", {**event, "type": "select", "elapsed": 900})
    finally:
        agent.close()
    row = foretype(home, "explain", "--json", shown["id"])
    total = foretype(home, "stats", "--json")["total"]
    say(f"shown by tabby-agent: {choice['text']!r}\nlogged by the daemon: {row['answer']['text']!r}")
    say(f"door {row['door']}, taken whole {total['whole']} of {total['shown']} shown")
    assert choice["text"] == row["answer"]["text"] != ""
    assert (total["whole"], total["shown"], row["door"]) == (1, 1, "tabby")


def main() -> None:
    program, model = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ft-") as folder:
        try:
            run(program, str(Path(model).absolute()), Path(folder))
        finally:
            foretype(Path(folder), "down")
    say("ok")


if __name__ == "__main__":
    main()
