"""What the commands about the ledger share: their options, and the question to the daemon."""

from __future__ import annotations

import argparse
import dataclasses
import json
import urllib.parse
from typing import Any

from daemon.cli import common
from daemon.doors import client

LEDGER = "/v1/ledger"


def add_options(parser: argparse.ArgumentParser, *, one: bool) -> None:
    """`--config`, `--json`, and the ID of `one` row."""
    common.add_config(parser)
    parser.add_argument("--json", action="store_true", help="everything, for machines")
    if one:
        words = "of the answer, or its beginning; `foretype audit` lists them"
        parser.add_argument("id", metavar="ID", help=words)


def ask(
    arguments: argparse.Namespace,
    method: str,
    path: str,
    timeout: float = client.TIMEOUT_S,
) -> dict[str, Any]:
    """What the daemon answers at `path`; printed when JSON is asked for."""
    token = common.load(arguments).server.token
    at = dataclasses.replace(client.address(), token=token)
    body = client.request(method, path, None, timeout, at)
    if arguments.json:
        print(json.dumps(body, ensure_ascii=False, indent=2))
    return body


def row(arguments: argparse.Namespace) -> str:
    """The path of the row that is asked for."""
    return f"{LEDGER}/{urllib.parse.quote(arguments.id, safe='')}"
