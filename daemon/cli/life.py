"""`foretype up | down | restart | status | serve | logs`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

from daemon import instance, lifecycle, paths
from daemon.cli import common, report
from daemon.errors import LifecycleError, NotRunning
from daemon.settings import Settings

_Subparsers = Any  # argparse keeps the type of add_subparsers() private


def register(subparsers: _Subparsers) -> None:
    """Add the commands of this file."""
    add = subparsers.add_parser
    started: tuple[tuple[str, Callable[[argparse.Namespace], int], str], ...] = (
        ("up", _up, "start the daemon, or find the running one"),
        ("restart", _restart, "end the daemon and start it again"),
        ("serve", _serve, "be the daemon in this terminal (for service managers)"),
    )
    for name, function, words in started:
        parser = add(name, help=words, description=words)
        common.add_settings(parser)
        parser.set_defaults(run=function)
    parser = add("down", help="end the daemon", description="end the daemon and its children")
    common.add_config(parser)
    parser.set_defaults(run=_down)
    parser = add("status", help="model, device and why, memory, reuse, refusals")
    common.add_config(parser)
    parser.add_argument("--json", action="store_true", help="everything, for machines")
    parser.set_defaults(run=_status)
    parser = add("logs", help="what the daemon and its children wrote (never source text)")
    parser.add_argument("name", nargs="?", default="daemon", help="which log (default: daemon)")
    parser.add_argument("-n", type=int, default=50, metavar="N", help="how many lines (default: 50)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as lines are written")
    parser.set_defaults(run=_logs)


def _up(arguments: argparse.Namespace) -> int:
    settings = common.load(arguments)
    started = lifecycle.up(common.serve_arguments(arguments), settings.server.token)
    body = _body(settings)
    for line in report.arrival(started, body):
        print(line)
    if not started.fresh:
        for line in (*report.differences(settings, arguments, body), *report.stale(arguments, body)):
            common.note(line)
    return 0


def _restart(arguments: argparse.Namespace) -> int:
    settings = common.load(arguments)
    try:
        lifecycle.down(settings.server.token)
    except NotRunning:
        common.note("no daemon was running")
    return _up(arguments)


def _down(arguments: argparse.Namespace) -> int:
    pid = lifecycle.down(common.load(arguments).server.token)
    print(f"the daemon (process {pid}) has ended")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    settings = common.load(arguments)
    if instance.greet(settings.server.token) is None:
        raise NotRunning("no daemon runs", "Start one with `foretype up`")
    body = _body(settings)
    if arguments.json:
        print(json.dumps(body, indent=2, ensure_ascii=False))
        return 0
    for line in report.status(body):
        print(line)
    for line in report.stale(arguments, body):
        common.note(line)
    return 0


def _body(settings: Settings) -> dict[str, Any]:
    data = instance.call("GET", "/v1/status", token=settings.server.token, timeout=5.0)
    if data is None:
        raise LifecycleError("the daemon answers hello but not its status", "See `foretype logs`")
    body: dict[str, Any] = json.loads(data)
    return body


def _serve(arguments: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415 - `status` must not wait for the daemon's imports

    from daemon.app import run  # noqa: PLC0415
    from daemon.observe import logs  # noqa: PLC0415
    from daemon.redaction import redact  # noqa: PLC0415

    settings = common.load(arguments)
    os.umask(0o077)
    trouble = logs.setup(settings.logs, clean=lambda entry: redact(entry).text)
    notes = (trouble,) if trouble else ()
    return asyncio.run(run(settings, paths.socket_path(), settings.server.port, notes))


def _logs(arguments: argparse.Namespace) -> int:
    from daemon.observe import logs  # noqa: PLC0415

    file = logs.log_file(arguments.name)
    if arguments.name not in logs.names():
        known = ", ".join(logs.names()) or "none yet"
        raise LifecycleError(
            f"there is no log called {arguments.name} in {file.parent}", f"There is: {known}"
        )
    for line in logs.tail(file, arguments.n):
        print(line)
    for text in logs.follow(file) if arguments.follow else ():
        print(text, end="", flush=True)
    return 0
