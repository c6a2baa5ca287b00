"""Who may come in. Every rule looks at the head of a request only: nothing is read or computed before.

The order is by cost; each refusal is counted under its reason, and `status` shows the counts.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable

from aiohttp import web

from daemon.doors.house import HOUSE, TRAFFIC, House
from daemon.doors.peers import Peers, is_unix
from daemon.doors.wire import SlowClient, WrongMethod, error_reply, known, too_large
from daemon.errors import (
    BadRequest,
    ForetypeError,
    Loading,
    Overloaded,
    Refused,
    TooLarge,
    Unauthorized,
    WrongType,
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Refusal = tuple[str, ForetypeError]
"""Reason as counted, and what the client is told."""

PEERS: web.AppKey[Peers] = web.AppKey("peers", Peers)
LIGHT = frozenset({"/v1/hello", "/v1/stop", "/v1/status", "/health", "/v1/health"})
"""Always answered, however full the house is."""

_LOOPBACK = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_SOCKET_HOST = re.compile(r"foretype(?::\d{1,5})?", re.IGNORECASE)
"""A name of our own, for the Unix socket alone: over TCP a page could bind any name to loopback."""


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every failure leaves in one shape, without paths and source text."""
    try:
        return await handler(request)
    except Exception as failure:
        error = known(failure)
    metrics = request.app[HOUSE].metrics
    if isinstance(error, TooLarge | SlowClient):
        metrics.count("refused", "size" if isinstance(error, TooLarge) else "slow")
    elif not isinstance(error, Refused):
        metrics.count("errors", error.code)
    return error_reply(error, request.path)


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Apply the rules, then let the request in."""
    house = request.app[HOUSE]
    refusal = next((found for rule in RULES if (found := rule(request, house))), None) or await foreign(
        request
    )
    if refusal is not None:
        reason, error = refusal
        if not isinstance(error, TooLarge):
            house.metrics.count("refused", reason)
        raise error
    await _invite(request)
    if request.path in LIGHT:
        return await handler(request)
    return await _counted(request, handler)


async def _counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    house, traffic = request.app[HOUSE], request.app[TRAFFIC]
    if traffic.draining:
        raise Loading("The daemon is stopping")
    if traffic.inside >= house.settings.server.max_concurrent:
        house.metrics.count("refused", "busy")
        raise Overloaded(f"{traffic.inside} requests are in the house already", "Try again in a second")
    traffic.enter()
    try:
        return await handler(request)
    finally:
        traffic.leave()


async def no_invitation(request: web.Request) -> None:
    """Instead of aiohttp's answer to `Expect`, which would come before the rules."""


async def _invite(request: web.Request) -> None:
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def foreign_host(request: web.Request, house: House) -> Refusal | None:
    """A web page can point its own name at loopback; it cannot change the Host header that gives it away."""
    hosts = request.headers.getall("Host", [])
    named = len(hosts) == 1 and request.raw_path.startswith("/")
    if named and _LOOPBACK.fullmatch(hosts[0]):
        return None
    if named and _SOCKET_HOST.fullmatch(hosts[0]) and request.transport and is_unix(request.transport):
        return None
    return "host", Refused("Only requests to 127.0.0.1 or localhost are answered")


def browser(request: web.Request, house: House) -> Refusal | None:
    """No page of any origin has business here; editors send neither header."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if "Origin" in request.headers or site not in ("none", "same-origin"):
        return "origin", Refused("Requests from web pages are refused")
    return None


def method(request: web.Request, house: House) -> Refusal | None:
    """GET looks, POST asks; there is nothing else, and no preflight."""
    if request.method in ("GET", "POST"):
        return None
    return "method", WrongMethod("Only GET and POST are answered")


def upgrade(request: web.Request, house: House) -> Refusal | None:
    """No WebSockets. (Other upgrades, such as h2c that Java clients offer, are simply not taken up.)"""
    if "websocket" in request.headers.get("Upgrade", "").lower():
        return "upgrade", Refused("WebSockets are not spoken here")
    return None


def token(request: web.Request, house: House) -> Refusal | None:
    """Without a configured token any bearer is fine: clients send `Bearer undefined` and empty ones."""
    expected = house.settings.server.token
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), expected.encode("utf-8"))
    if not expected or (scheme.lower() == "bearer" and right):
        return None
    return "token", Unauthorized(
        "The token is missing or wrong", "Send `Authorization: Bearer <server.token>`"
    )


def body_type(request: web.Request, house: House) -> Refusal | None:
    """A form or a script of a page can post text; it cannot post JSON without asking first."""
    if request.method != "POST":
        return None
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        return "type", WrongType("The content type must be application/json")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        return "type", WrongType("Compressed bodies are not taken")
    return None


def body_size(request: web.Request, house: House) -> Refusal | None:
    """What says that it is too long is not read at all; what does not say so is cut off while reading."""
    if (request.content_length or 0) > house.settings.server.max_body_mb * 1024 * 1024:
        return "size", too_large(request)
    return None


RULES: tuple[Callable[[web.Request, House], Refusal | None], ...] = (
    foreign_host,
    browser,
    method,
    upgrade,
    token,
    body_type,
    body_size,
)


async def foreign(request: web.Request) -> Refusal | None:
    """Loopback is shared by all users of a machine; this daemon serves one."""
    transport = request.transport
    if transport is None:
        return "gone", BadRequest("The client is gone")
    if await request.app[PEERS].ours(transport):
        return None
    return "user", Refused("This daemon belongs to another user", "Start your own with `foretype up`")
