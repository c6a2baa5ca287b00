"""Talk to the running daemon from a command: over its Unix socket, or loopback TCP where there is none.

No proxies and no environment ever: a connection is made to our own address and to nothing else.
"""

from __future__ import annotations

import http.client
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from daemon import errors, instance, loading, paths
from daemon.errors import ForetypeError, NotRunning, SettingsError

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where the daemon listens: `socket_path` if given, else 127.0.0.1:`port`."""

    socket_path: Path | None
    port: int = 0
    token: str = ""


def address() -> Address:
    """Of this user's daemon, from its lock file and the user's settings."""
    try:
        token = loading.load().server.token
    except SettingsError:
        token = ""  # `status` and `down` must work with a broken settings file; without a token they may
    if sys.platform == "win32":
        return Address(None, instance.holder().port, token)
    return Address(paths.socket_path(), 0, token)


def request(
    method: str, path: str, body: Any = None, timeout: float = TIMEOUT_S, at: Address | None = None
) -> dict[str, Any]:
    """The JSON object that `path` answers. `timeout` in seconds, per read.

    Raises NotRunning when nobody answers, and the error that the daemon reports.
    """
    connection, response = _ask(method, path, body, timeout, at or address())
    try:
        raw = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise gone(error) from error
    finally:
        connection.close()
    found = decoded(raw)
    if response.status != http.client.OK:
        raise failure(found, response.status)
    return found


def stream(
    path: str, body: Any, timeout: float = TIMEOUT_S, at: Address | None = None
) -> Iterator[dict[str, Any]]:
    """POST `body` with `"stream": true` and yield each event. Closing the iterator cancels the work."""
    connection, response = _ask("POST", path, {**body, "stream": True}, timeout, at or address())
    try:
        if response.status != http.client.OK:
            raise failure(decoded(response.read()), response.status)
        while line := response.readline():
            if line.startswith(b"data: "):
                event = decoded(line.removeprefix(b"data: "))
                if "error" in event:
                    raise failure(event, response.status)
                yield event
    except (OSError, http.client.HTTPException) as error:
        raise gone(error) from error
    finally:
        connection.close()


class _Local(http.client.HTTPConnection):
    def __init__(self, at: Address, timeout: float) -> None:
        super().__init__("127.0.0.1", at.port or None, timeout=timeout)
        self._at = at

    def connect(self) -> None:
        if self._at.socket_path is None:
            super().connect()
            return
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(str(self._at.socket_path))
        except OSError:
            self.sock.close()
            raise


def _ask(
    method: str, path: str, body: Any, timeout: float, at: Address
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    if at.socket_path is None and not at.port:
        raise gone(None)
    headers = {"User-Agent": "foretype"}
    if at.token:
        headers["Authorization"] = f"Bearer {at.token}"
    content = None
    if method == "POST":
        content = msgspec.json.encode({} if body is None else body)
        headers["Content-Type"] = "application/json"
    connection = _Local(at, timeout)
    try:
        connection.request(method, path, body=content, headers=headers)
        return connection, connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise gone(error) from error


def gone(error: Exception | None) -> NotRunning:
    """What a connection that could not be had, or broke, means to a person."""
    if isinstance(error, TimeoutError):
        return NotRunning("the daemon does not answer in time", "`foretype restart` starts a fresh one")
    if isinstance(error, FileNotFoundError | ConnectionRefusedError) or error is None:
        return NotRunning("no daemon is running", "`foretype up` starts one")
    return NotRunning(f"the daemon hung up ({type(error).__name__})", "`foretype logs` may say why")


def decoded(raw: bytes) -> dict[str, Any]:
    """The JSON object that was answered. Raises NotRunning when it is none."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise NotRunning("whoever answered is no Foretype daemon") from error


def failure(body: dict[str, Any], status: int) -> ForetypeError:
    """The error that `body` reports, as the class that it left the daemon as."""
    told = body.get("error")
    told = told if isinstance(told, dict) else {}
    kind = _kinds(ForetypeError).get(str(told.get("type")), ForetypeError)
    error = kind(str(told.get("message") or f"the daemon answered {status}"))
    error.status = status
    return error


def _kinds(kind: type[ForetypeError]) -> dict[str, type[ForetypeError]]:
    found = {kind.code: kind}
    for other in kind.__subclasses__():
        if other.__module__ == errors.__name__:
            found |= _kinds(other)
    return found
