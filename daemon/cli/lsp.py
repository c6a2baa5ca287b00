"""`foretype lsp`: the language server that an editor starts."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from daemon.cli import common


def register(subparsers: Any) -> None:
    """Add the command."""
    words = "be a language server on stdin and stdout (for editors; starts the daemon if none runs)"
    parser = subparsers.add_parser("lsp", help=words, description=words)
    parser.add_argument("--stdio", action="store_true", help="what many editors add; there is no other way")
    common.add_settings(parser)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from daemon.doors import client, lspio  # noqa: PLC0415 - pygls is slow to import; `--help` need not wait
    from daemon.doors.lsplink import Link  # noqa: PLC0415

    settings = common.load(arguments)
    token, flags = settings.server.token, common.serve_arguments(arguments)

    def address() -> client.Address:
        return dataclasses.replace(client.address(), token=token)

    return lspio.run(lambda: Link(address, flags, token), settings.index)
