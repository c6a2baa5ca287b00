"""What several commands share: settings from the command line, and the wait for a daemon and its model."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from daemon import loading
from daemon.settings import Settings


def add_config(parser: argparse.ArgumentParser) -> None:
    """`--config FILE`."""
    parser.add_argument("--config", metavar="FILE", help="settings file to use instead of your own")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """`--config`, `--port`, `--also`, `--model`: what a daemon is started with."""
    add_config(parser)
    parser.add_argument("--port", type=int, metavar="N", help="loopback port (0: any free one)")
    parser.add_argument(
        "--also",
        type=int,
        action="append",
        metavar="N",
        help="a further port, in place of server.extra_ports",
    )
    parser.add_argument("--model", metavar="NAME|PATH", help="a catalogue name or a GGUF file")


def load(arguments: argparse.Namespace) -> Settings:
    """Settings with what the command line says on top. Raises SettingsError."""
    overrides: dict[str, dict[str, Any]] = {}
    if (port := getattr(arguments, "port", None)) is not None:
        overrides.setdefault("server", {})["port"] = port
    if also := getattr(arguments, "also", None):
        overrides.setdefault("server", {})["extra_ports"] = also
    if (model := getattr(arguments, "model", None)) is not None:
        overrides["engine"] = {"model": absolute(model)}
    config = getattr(arguments, "config", None)
    return loading.load(Path(config) if config else None, overrides)


def absolute(model: str) -> str:
    """A path is made absolute, because the daemon works in another folder; a name stays a name."""
    path = Path(model).expanduser()
    is_path = path.is_file() or path.suffix == ".gguf" or len(path.parts) > 1
    return str(path.absolute()) if is_path else model


def serve_arguments(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The flags that `serve` needs to read the same settings."""
    found: list[str] = []
    if config := getattr(arguments, "config", None):
        found += ["--config", str(Path(config).expanduser().absolute())]
    if (port := getattr(arguments, "port", None)) is not None:
        found += ["--port", str(port)]
    for also in getattr(arguments, "also", None) or ():
        found += ["--also", str(also)]
    if model := getattr(arguments, "model", None):
        found += ["--model", absolute(model)]
    return tuple(found)


def note(text: str) -> None:
    """A line for the person, apart from the output."""
    print(text, file=sys.stderr)
