"""The web server: sockets, rules, routes, and an end that nobody has to wait for."""

# ruff: noqa: A005 - house.md names this room; it is always imported as daemon.doors.http

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from daemon.documents.held import Held
from daemon.doors import completion, documents, feedback, infill, ledger, llama, native, ollama, openai, tabby
from daemon.doors.documents import HELD
from daemon.doors.guard import PEERS, errors, guard, no_invitation
from daemon.doors.house import HOUSE, TRAFFIC, House, Patience, Pipeline, Traffic
from daemon.doors.peers import Peers
from daemon.doors.steady import Steady
from daemon.errors import LifecycleError

__all__ = ["House", "Patience", "Pipeline", "Served", "build", "serve"]

BACKLOG = 128
_LAST_WORDS_S = 0.3
"""For connections that are still busy after everybody was told."""


class _NoText(logging.Filter):
    """aiohttp reports malformed requests with their content, which may be somebody's source."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep that it happened, and what kind of error it was."""
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "something"
        record.msg, record.args = "a connection ended with %s", (kind,)
        record.exc_info = record.exc_text = None
        return True


_wire_log = logging.getLogger(f"{__name__}.wire")
_wire_log.addFilter(_NoText())


def build(house: House) -> web.Application:
    """The application: rules first, then the dialects. No static files, no CORS, no HEAD."""
    limit = house.settings.server.max_body_mb * 1024 * 1024
    app = web.Application(middlewares=[errors, guard], client_max_size=limit)
    app[HOUSE], app[TRAFFIC], app[PEERS] = house, Traffic.of(house.settings.server), Peers()
    app[tabby.STEADY], app[HELD] = Steady(), Held()
    dialects = (native, documents, infill, completion, openai, tabby, ollama, llama, feedback, ledger)
    for method, path, handler in (route for dialect in dialects for route in dialect.routes()):
        app.router.add_route(method, path, handler, expect_handler=no_invitation)
    app.on_response_prepare.append(_sign)
    return app


async def _sign(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(
        {"Server": "foretype", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    )


@dataclass(slots=True)
class Served:
    """What `serve` opened. `port` is the bound one; 0 without TCP. `refused`: why extra ports are shut."""

    runner: web.AppRunner
    port: int
    socket_path: Path | None
    extra: tuple[int, ...] = ()
    refused: tuple[str, ...] = ()
    _inode: int = 0

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it listens, in words."""
        tcp = tuple(f"http://127.0.0.1:{port}" for port in (self.port, *self.extra) if port)
        return (*tcp, f"unix:{self.socket_path}") if self.socket_path else tcp

    async def close(self, timeout: float = 1.0) -> None:
        """Stop listening, end running answers with stop `cancelled`, wait at most `timeout` s, hang up.

        Takes `timeout` + 0.5 s at most, whatever clients do.
        """
        traffic = self.runner.app[TRAFFIC]
        traffic.draining = True
        for site in list(self.runner.sites):
            await site.stop()
        for work in list(traffic.works):
            work.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await traffic.empty.wait()
        self._unlink()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S + 0.2):
                await self.runner.cleanup()

    def _unlink(self) -> None:
        """Remove our socket, but not one that a successor has put in its place."""
        if self.socket_path is not None:
            with contextlib.suppress(OSError):
                if _inode(self.socket_path) == self._inode:
                    self.socket_path.unlink()


async def serve(app: web.Application, house: House, socket_path: Path | None, port: int | None) -> Served:
    """Listen on the Unix socket and on 127.0.0.1; port 0 lets the system choose.

    TCP is left out when `port` is None or server.tcp is false, unless this system has no Unix sockets.

    An extra port that cannot be had is left out, and `Served.refused` says why.
    Raises LifecycleError when another address cannot be had; then nothing is open.
    """
    local = socket_path if hasattr(socket, "AF_UNIX") else None
    listening: list[socket.socket] = []
    try:
        if local is not None:
            listening.append(_unix(local))
        if port is not None and (house.settings.server.tcp or local is None):
            listening.append(_loopback(port))
        if not listening:
            raise LifecycleError("there is no address to listen on", "Set server.tcp = true")
        listening, refused = _with_extras(listening, house.settings.server.extra_ports)
    except BaseException:
        for sock in listening:
            sock.close()
        raise
    runner = _runner(app, house.patience)
    await runner.setup()
    for sock in listening:
        await web.SockSite(runner, sock, backlog=BACKLOG).start()
    bound = [sock.getsockname()[1] for sock in listening if sock.family == socket.AF_INET] or [0]
    return Served(runner, bound[0], local, tuple(bound[1:]), refused, _inode(local) if local else 0)


def _with_extras(
    listening: list[socket.socket], extra: tuple[int, ...]
) -> tuple[list[socket.socket], tuple[str, ...]]:
    """All sockets, with those extra ports that can be had; and what is wrong with the others."""
    taken = {sock.getsockname()[1] for sock in listening if sock.family == socket.AF_INET}
    opened, refused = list(listening), []
    for port in dict.fromkeys(extra) if taken else ():
        if port in taken:
            continue
        try:
            opened.append(_loopback(port))
        except LifecycleError as error:
            refused.append(f"{error.message}: nothing is answered there")
    return opened, tuple(refused)


def _inode(path: Path) -> int:
    return path.lstat().st_ino


def _runner(app: web.Application, patience: Patience) -> web.AppRunner:
    return web.AppRunner(
        app,
        handler_cancellation=True,  # a dropped connection cancels its work; the default has changed before
        access_log=None,
        logger=_wire_log,
        keepalive_timeout=patience.head,
        lingering_time=patience.linger,
        shutdown_timeout=_LAST_WORDS_S / 2,
    )


def _loopback(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # On Windows REUSEADDR would let two daemons share a port; elsewhere it only skips TIME_WAIT.
        if sys.platform == "win32":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise _no_port(port, error) from error
    return sock


def _no_port(port: int, error: OSError) -> LifecycleError:
    if error.errno == errno.EADDRINUSE:
        return LifecycleError(
            f"port {port} is taken by another program",
            "Give another with --port, or set server.port; llama.vim's own server uses 8012 too",
        )
    reason = os.strerror(error.errno or 0)
    return LifecycleError(f"port {port} cannot be had: {reason}", "Give another with --port")


def _unix(path: Path) -> socket.socket:
    _check_folder(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        sock.bind(str(path))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise LifecycleError(f"the socket {path} cannot be made: {error.strerror}") from error
    finally:
        os.umask(mask)
    return sock


def _check_folder(path: Path) -> None:
    """The folder must be ours alone. A dead daemon's socket is removed: the starter holds the lock."""
    try:
        folder = path.parent.lstat()
    except OSError as error:
        raise LifecycleError(f"{path.parent} cannot be used: {error.strerror}") from error
    if not stat.S_ISDIR(folder.st_mode) or folder.st_mode & 0o077 or folder.st_uid != os.getuid():
        raise LifecycleError(f"{path.parent} is open to other users", f"chmod 700 {path.parent}")
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise LifecycleError(f"{path} is in the way and is no socket", "Remove it")
        path.unlink()
