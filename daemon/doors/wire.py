"""JSON in, JSON and event streams out. Nothing that leaves here names a path or repeats source text."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import traceback
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from aiohttp import web

from daemon.doors.house import HOUSE
from daemon.errors import BadRequest, ForetypeError, Overloaded, Refused, TooLarge, Vanished

log = logging.getLogger(__name__)
T = TypeVar("T")

OLLAMA = ("/api/",)
OPENAI = ("/v1/completions", "/v1/chat/", "/v1/fim/", "/fim/")
"""How the addresses of these dialects begin. Strict clients of OpenAI take no number for a code."""
_PATH = re.compile(
    r"(?<![\w.:/])/(?:[^\s/'\":,;]+/)+([^\s/'\":,;]*)|\b[A-Za-z]:\\(?:[^\s\\'\":,;]+\\)*([^\s\\'\":,;]*)"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotFound(BadRequest):
    """No such door."""

    code = "not_found"
    status = 404


class WrongMethod(Refused):
    """Only GET and POST exist here."""

    code = "method_not_allowed"
    status = 405


class SlowClient(BadRequest):
    """The body did not come in time."""

    code = "timeout"
    status = 408


def scrub(message: str) -> str:
    """`message` with every absolute path cut down to its last part."""
    return _PATH.sub(lambda found: found[1] or found[2] or "…", message.replace(str(Path.home()), "~"))


def error_body(error: ForetypeError, path: str = "") -> dict[str, Any]:
    """What went wrong, in the shape of the dialect spoken at `path`: llama-server's, where it is no other."""
    message = scrub(str(error))
    if path.startswith(OLLAMA):
        return {"error": message}
    if path.startswith(OPENAI):
        return {"error": {"message": message, "type": error.code, "param": None, "code": error.code}}
    return {"error": {"code": error.status, "message": message, "type": error.code}}


def error_reply(error: ForetypeError, path: str = "") -> web.Response:
    """The whole answer to a request that failed."""
    response = reply(error_body(error, path), status=error.status)
    if isinstance(error, Overloaded):
        response.headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, Refused | TooLarge | SlowClient):
        response.force_close()
    return response


def known(error: Exception) -> ForetypeError:
    """Foreign errors become one of ours here; what they say stays inside, for it may quote source text."""
    if isinstance(error, ForetypeError):
        return error
    if isinstance(error, web.HTTPNotFound):
        return NotFound("There is nothing at this address")
    if isinstance(error, web.HTTPMethodNotAllowed):
        return WrongMethod("This address does not take that method")
    if isinstance(error, ConnectionError):
        return Vanished("The client is gone")
    where = " < ".join(
        f"{f.name}:{f.lineno}" for f in reversed(traceback.extract_tb(error.__traceback__)[-4:])
    )
    log.error("%s in a door: %s", type(error).__name__, where)
    return ForetypeError("Internal error", "The log of the daemon says where")


def reply(body: Any, status: int = 200) -> web.Response:
    """Compact JSON on one line: llama.vim looks for `"content":"` without a space."""
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json")


async def read_json(request: web.Request, kind: type[T]) -> T:
    """The body as `kind`; unknown fields are ignored. BadRequest names the field or the position."""
    return parse(await read_body(request), kind)


def parse(body: bytes, kind: type[T]) -> T:
    """A body that was read already, as read_json gives it."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _wrong_field(error) from error
    except msgspec.DecodeError:
        return _second_look(body, kind)
    except RecursionError as error:
        raise BadRequest("The JSON is nested too deeply") from error


async def read_body(request: web.Request) -> bytes:
    """The body, once or again; BadRequest, TooLarge or SlowClient when it does not come whole."""
    try:
        async with asyncio.timeout(request.app[HOUSE].patience.body):
            return await request.read()
    except TimeoutError as error:
        raise SlowClient("The body did not come in time") from error
    except web.HTTPRequestEntityTooLarge as error:
        raise too_large(request) from error
    except web.RequestPayloadError as error:
        raise BadRequest("The body ended early or is not encoded as its headers say") from error


def too_large(request: web.Request) -> TooLarge:
    """The limit, and the key that sets it."""
    limit = request.app[HOUSE].settings.server.max_body_mb
    return TooLarge(f"The body is larger than {limit} MB", "server.max_body_mb sets the limit")


def _second_look(body: bytes, kind: type[T]) -> T:
    """Say where a body is malformed, or accept what the strict decoder does not: lone surrogates in strings.

    JavaScript sends those when a cursor or a cut stands inside a surrogate pair; they become U+FFFD.
    """
    try:
        tree = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadRequest(f"The body is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise BadRequest(f"Malformed JSON at character {error.pos}: {error.msg}") from error
    except RecursionError as error:
        raise BadRequest("The JSON is nested too deeply") from error
    except ValueError as error:
        raise BadRequest("Malformed JSON: a number is out of range") from error
    try:
        return msgspec.convert(_without_surrogates(tree), kind)
    except msgspec.ValidationError as error:
        raise _wrong_field(error) from error


def _without_surrogates(tree: Any) -> Any:
    if isinstance(tree, str):
        return _SURROGATE.sub("\ufffd", tree)
    if isinstance(tree, list):
        return [_without_surrogates(item) for item in tree]
    if isinstance(tree, dict):
        return {_SURROGATE.sub("\ufffd", key): _without_surrogates(value) for key, value in tree.items()}
    return tree


def _wrong_field(error: msgspec.ValidationError) -> BadRequest:
    return BadRequest(f"The request is not valid: {error}")


def within(field: str, value: float, low: float, high: float) -> None:
    """BadRequest naming `field` unless `low` ≤ `value` ≤ `high`."""
    if not (math.isfinite(value) and low <= value <= high):
        raise BadRequest(f"`{field}` must be a number from {low:g} to {high:g}")


class Form(NamedTuple):
    """How the events of a stream stand on the wire."""

    kind: str
    before: bytes
    after: bytes
    closing: bytes = b""
    """The last words, after an error as well."""


EVENTS = Form("text/event-stream", b"data: ", b"\n\n")
DONE = EVENTS._replace(closing=b"data: [DONE]\n\n")
LINES = Form("application/x-ndjson", b"", b"\n")


class Events:
    """A stream that begins with its first event."""

    def __init__(self, request: web.Request, form: Form = EVENTS) -> None:
        self._request = request
        self._form = form
        self._response: web.StreamResponse | None = None
        self._patience = request.app[HOUSE].patience.read

    @property
    def started(self) -> bool:
        """Whether the status line is out, so that errors must travel as events."""
        return self._response is not None

    async def send(self, event: Any) -> None:
        """One event; Vanished when the reader is gone or does not read in time."""
        await self._write(self._form.before + msgspec.json.encode(event) + self._form.after)

    async def end(self) -> web.StreamResponse:
        """Close the stream in order."""
        if self._form.closing:
            await self._write(self._form.closing)
        if self._response is None:
            raise RuntimeError("a stream ended before its first event")
        await self._response.write_eof()
        return self._response

    async def _write(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._patience):
                if self._response is None:
                    self._response = web.StreamResponse(headers={"Content-Type": self._form.kind})
                    await self._response.prepare(self._request)
                await self._response.write(data)
        except TimeoutError as error:
            self._cut()
            self._request.app[HOUSE].metrics.count("dropped", "slow reader")
            raise Vanished(f"The client did not read for {self._patience:g} s") from error
        except ConnectionError as error:
            raise Vanished("The client is gone") from error

    def _cut(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()
