"""The command `foretype`: finds the one module that a command needs and runs it."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

import daemon
from daemon.errors import ForetypeError

COMMANDS = {
    "up": "daemon.cli.life",
    "down": "daemon.cli.life",
    "restart": "daemon.cli.life",
    "status": "daemon.cli.life",
    "serve": "daemon.cli.life",
    "logs": "daemon.cli.life",
    "complete": "daemon.cli.complete",
    "models": "daemon.cli.models",
    "index": "daemon.cli.index",
    "audit": "daemon.cli.audit",
    "explain": "daemon.cli.explain",
    "replay": "daemon.cli.replay",
    "stats": "daemon.cli.stats",
    "lsp": "daemon.cli.lsp",
    "doctor": "daemon.cli.doctor",
    "bench": "daemon.cli.bench",
}
"""Which module registers which command. Only the one that is asked for is imported: `status` stays quick."""

_EXAMPLES = """\
examples:
  foretype up                                start the daemon (or find the running one)
  foretype complete src/orders.py:10:5       ghost text at line 10, column 5
  foretype status                            model, device and why, cache reuse, refusals
  foretype audit                             what the last prompts were made of; also: explain ID, replay ID
  foretype stats                             what became of the answers: shown, taken, typed over
  foretype index add ~/src/project           index a repository; `index status` shows what is in it
  foretype models pull qwen2.5-coder-1.5b-q4_k_m
  foretype up --model ~/models/mine.gguf --port 8013
  foretype up --also 11434                   answer at the port of Ollama as well
  foretype down

from any program, while the daemon runs:
  curl -s http://127.0.0.1:8012/v1/complete -H 'Content-Type: application/json' \\
    -d '{"prefix": "def add(a, b):\\n    return ", "suffix": "\\n", "language": "python"}'

Editors that speak llama-server's /infill (llama.vim, llama.vscode) need only the address
http://127.0.0.1:8012 . Settings: `foretype doctor` prints where the file lives.
"""


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser with the command `only`, or with all commands. Imports what it registers."""
    top = argparse.ArgumentParser(
        prog="foretype",
        description="Code completion from a local GGUF model: offline, private, quick while you type.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"foretype {daemon.__version__}")
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    modules = [COMMANDS[only]] if only else dict.fromkeys(COMMANDS.values())
    for module in modules:
        importlib.import_module(module).register(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. Errors are told on stderr with what to do about them."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        parser().print_help(sys.stderr)
        sys.exit(2)
    named = words[0] if words and words[0] in COMMANDS else None
    try:
        arguments = parser(named).parse_args(words)
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except ForetypeError as error:
        print(f"error: {_sentence(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has gone (`foretype logs | head`); nothing more may be written when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "`")) else f"{text}."


if __name__ == "__main__":
    sys.exit(main())
