"""`foretype doctor`: what could be in the way on this machine, and what to do about each."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

import daemon
from daemon import instance, loading, paths, resources, roots, settings
from daemon.cli import common, editors, report
from daemon.errors import ForetypeError
from daemon.instance import Hello
from daemon.models import catalogue
from daemon.observe import logs
from daemon.projectfile import NAME
from daemon.projects import Projects
from daemon.settings import Settings

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LOW_DISK = 2_000_000_000
_TESTED = ((3, 11), (3, 14))


class Check(msgspec.Struct, frozen=True):
    """One finding. `remedy` is empty when all is well."""

    name: str
    level: Literal["ok", "warn", "fail"]
    text: str
    remedy: str = ""


def register(subparsers: Any) -> None:
    """Add the command."""
    words = "check the installation, the settings, the model and the daemon"
    parser = subparsers.add_parser("doctor", help=words, description=words)
    common.add_config(parser)
    words = f"only whether requests of this editor come in and are answered: {', '.join(editors.known())}"
    parser.add_argument("--editor", choices=editors.known(), metavar="NAME", help=words)
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    config = Path(arguments.config) if arguments.config else None
    checks = list(editor(arguments.editor, config) if arguments.editor else examine(config))
    if arguments.json:
        print(json.dumps([msgspec.to_builtins(check) for check in checks], indent=2, ensure_ascii=False))
    for check in () if arguments.json else checks:
        print(f"{check.level:<4} {check.name:<9} {check.text}")
        if check.remedy:
            print(f"{'':<14} → {check.remedy}")
    return 1 if any(check.level == "fail" for check in checks) else 0


def examine(config: Path | None = None) -> Iterator[Check]:
    """All checks, in the order in which things depend on each other."""
    yield package()
    yield python()
    chosen = settings.Settings()
    try:
        chosen = loading.load(config)
        yield Check("settings", "ok", _settings_text(config))
    except ForetypeError as error:
        yield Check("settings", "fail", error.message, error.remedy)
    hello = instance.greet(chosen.server.token)
    body = _status(chosen) if hello else {}
    yield _guarded("runtime", lambda: runtime(hello))
    yield port(chosen, body)
    yield _guarded("model", lambda: model(chosen, body))
    yield engine(body)
    yield _guarded("projects", lambda: project_files(chosen, body))
    yield disk()
    yield log_size(chosen)
    yield proxies()


def editor(name: str, config: Path | None = None) -> Iterator[Check]:
    """Whether requests of the editor called so have come in and were answered, and by what model."""
    chosen = loading.load(config)
    hello = instance.greet(chosen.server.token)
    body = _status(chosen) if hello else {}
    if body:
        yield _guarded("model", lambda: model(chosen, body))
        yield engine(body)
    yield Check(name, *editors.judge(editors.known()[name], body))


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except ForetypeError as error:
        return Check(name, "fail", error.message, error.remedy)


def _settings_text(config: Path | None) -> str:
    file = config or loading.user_file()
    return f"{file}" if file.exists() else f"all defaults; yours would be in {file}"


def _status(chosen: Settings) -> dict[str, Any]:
    data = instance.call("GET", "/v1/status", token=chosen.server.token, timeout=5.0)
    found: dict[str, Any] = json.loads(data) if data else {}
    return found


def package() -> Check:
    """Whether the modules that run are ours: another distribution is also called `daemon`."""
    folder = Path(daemon.__file__).resolve().parent
    owners = sorted(set(importlib.metadata.packages_distributions().get("daemon", [])))
    others = [owner for owner in owners if owner != "foretype"]
    if others:
        return Check(
            "package",
            "fail",
            f"{folder} is shared with {', '.join(others)}",
            f"Uninstall {others[0]} here, or install again with installers/ (a private environment)",
        )
    beside = importlib.util.find_spec("indexer")
    near = (
        beside is not None and beside.origin and Path(beside.origin).resolve().parent.parent == folder.parent
    )
    if not near or not resources.folder().is_dir():
        return Check("package", "fail", f"{folder} is not complete", "Install again with installers/")
    return Check("package", "ok", f"foretype {daemon.__version__}, build {instance.build_id()}, in {folder}")


def python() -> Check:
    """Version, width and environment of the interpreter."""
    text = f"Python {sys.version.split()[0]} at {sys.executable}"
    if sys.maxsize < 2**32:
        return Check("python", "fail", f"{text} is a 32-bit build", "Models need a 64-bit Python")
    if not _TESTED[0] <= sys.version_info[:2] <= _TESTED[1]:
        return Check("python", "warn", f"{text} is outside what is tested", "Use Python 3.11 to 3.14")
    if sys.prefix == sys.base_prefix:
        return Check(
            "python", "warn", f"{text} is the system's own", "installers/ make a private environment"
        )
    return Check("python", "ok", text)


def runtime(hello: Hello | None) -> Check:
    """The private folder, the lock, and who answers."""
    folder = instance.prepare_runtime()
    locked = instance.held(paths.lock_path())
    if hello is None and locked:
        told = instance.holder().pid
        text = f"{paths.lock_path()} is held (it names process {told}) but nobody answers"
        return Check("runtime", "fail", text, "`foretype down` ends it")
    if hello is None:
        return Check("runtime", "ok", f"{folder} is private; no daemon runs")
    if hello.build != instance.build_id():
        text = f"the daemon that runs (process {hello.pid}) is of another build, {hello.build}"
        return Check("runtime", "warn", text, "`foretype up` replaces it")
    return Check("runtime", "ok", f"{folder} is private; the daemon is process {hello.pid}")


def port(chosen: Settings, body: dict[str, Any]) -> Check:
    """Whether editors can reach the loopback port."""
    wanted = chosen.server.port
    if not chosen.server.tcp:
        return Check("port", "ok", "server.tcp is false: only the Unix socket")
    if body:
        return Check("port", "ok", f"the daemon listens on {', '.join(body.get('addresses', []))}")
    with socket.socket() as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            text = f"127.0.0.1:{wanted} cannot be used: {error.strerror or error}"
            return Check("port", "fail", text, "End what uses it, or set server.port or use --port")
    return Check("port", "ok", f"127.0.0.1:{wanted} is free")


def model(chosen: Settings, body: dict[str, Any]) -> Check:
    """Whether the model in use is here and what it should be. May hash it (seconds)."""
    running = body.get("model", {})
    if running.get("phase") == "ready":
        return Check("model", "ok", f"{running.get('name')} is loaded, {running.get('path')}")
    file = catalogue.resolve(chosen.engine.model)
    return Check("model", "ok", f"{file.name}, {report.size(file.size)}, verified, {file.path}")


def engine(body: dict[str, Any]) -> Check:
    """The engine library, and what the running engine says about its device."""
    try:
        library = f"llama-cpp-python {importlib.metadata.version('llama-cpp-python')}"
    except importlib.metadata.PackageNotFoundError:
        return Check("engine", "fail", "llama-cpp-python is not installed", "Install again with installers/")
    state, device = body.get("model", {}), body.get("device") or {}
    if state.get("remedy"):
        return Check("engine", "ok", f"{library}; waits for the model")
    if state.get("phase") == "failed":
        return Check("engine", "fail", f"{library}; {state.get('detail')}", "See `foretype logs engine`")
    degraded = body.get("degradations", [])
    text = f"{library}; " + (f"{device['backend']}: {device['why']}" if device else "not loaded now")
    if degraded:
        return Check("engine", "warn", f"{text}; {'; '.join(degraded)}", "`foretype status` has the details")
    return Check("engine", "ok", text)


def project_files(chosen: Settings, body: dict[str, Any]) -> Check:
    """Whether a project file here, in an indexed folder, or met by the daemon counts as absent."""
    known = Projects(chosen)
    known.of(str(Path.cwd() / "file"))
    for spec in roots.specs(chosen.index):
        known.spec(spec)
    found = {one["file"]: one["reason"] for one in (*body.get("projects", ()), *known.refused())}
    if not found:
        return Check("projects", "ok", f"no {NAME} is refused")
    text = "; ".join(f"{file} is not used: {reason}" for file, reason in found.items())
    marks = f"Mend the file; {resources.folder() / 'default.toml'} marks what it may set"
    return Check("projects", "warn", text, marks)


def disk() -> Check:
    """Room for models."""
    folder = paths.models_dir()
    place = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(place).free
    text = f"{report.size(free)} free for {folder}"
    if free < _LOW_DISK:
        return Check("disk", "warn", text, "Free some, or set FORETYPE_MODELS to a folder on another disk")
    return Check("disk", "ok", text)


def log_size(chosen: Settings) -> Check:
    """Whether logs can be written and stay under their cap."""
    folder = paths.logs_dir()
    place = next(p for p in (folder, *folder.parents) if p.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        return Check("logs", "warn", f"{folder} cannot be written", f"Make {place} writable")
    cap = chosen.logs.max_mb * 1_000_000 * (chosen.logs.keep + 1)
    count = max(1, len(logs.names()))
    return Check(
        "logs", "ok", f"{report.size(logs.total_bytes())} of at most {report.size(cap * count)}, {folder}"
    )


def proxies() -> Check:
    """Proxy variables are for the net; loopback never goes through them."""
    found = [name for name in os.environ if name.lower() in _PROXIES]
    text = f"{', '.join(found)} set; not used for the daemon" if found else "no proxy variables"
    return Check("proxy", "ok", text)
