"""Pull from the model hub: one HTTPS file, resumed by Range, never trusted further than its hash."""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from daemon import __version__
from daemon.models.entries import Hub
from daemon.models.sources import SourceFailed, Task

CONNECT_S = 10
"""Limit of one connection attempt and of each read."""
OPEN_S = 25
"""Limit of name resolution, connections, redirects and answer head together."""
RETRIES = 3
"""How often a transfer that was cut and made no progress is taken up again."""
RETRY_S = 1.0
"""Pause before such a retry, times the number of failures."""
BLOCK = 1 << 20
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class _Unreachable(SourceFailed):
    """No answer at all: a network that went away may come back."""


def fetch(source: Hub, task: Task, base: str) -> None:
    """Download into the task's partial file. Raises SourceFailed; OSError where the disk fails."""
    quoted = urllib.parse.quote(f"{source.repo}/resolve/{source.revision}/{source.file}")
    url = f"{base}/{quoted}"
    failures, started = 0, False
    while True:
        before = task.partial.on_disk()
        try:
            done, reason = _once(url, source, task)
        except _Unreachable as error:
            if not started:
                raise
            done, reason = False, str(error)
        if done:
            return
        moved = task.partial.on_disk() > before
        failures, started = (0 if moved else failures + 1), started or moved
        if failures > RETRIES:
            raise SourceFailed(f"the transfer was cut and could not be taken up again ({reason})")
        time.sleep(RETRY_S * failures)


def _once(url: str, source: Hub, task: Task) -> tuple[bool, str]:
    """One request; (complete, why not)."""
    key = f"hub:{source.repo}@{source.revision}/{source.file}"
    at = task.partial.resumable(key, all_bytes=task.pinned)
    validator = task.partial.journal.validator if at else ""
    if at and not validator and not task.pinned:
        at = 0
    if task.pinned and at == task.entry.bytes:
        task.partial.begin(key, at, validator)
        return True, ""
    task.report("connecting", done=at)
    response = _open(url, at, validator, task.pinned)
    with response:
        at, total = _placement(response, at)
        if total is not None:
            task.check_size(total)
        task.check_space((total or task.entry.bytes) - at)
        strong = response.headers.get("ETag", "")
        kept = strong if strong and not strong.startswith("W/") else ""
        task.partial.begin(key, at, kept or response.headers.get("Last-Modified", ""))
        return _copy(response, task, total)


def _copy(response: Any, task: Task, total: int | None) -> tuple[bool, str]:
    most = total if total is not None else 2 * task.entry.bytes
    while True:
        try:
            block = response.read1(BLOCK)  # what has arrived: a kill loses none of it
        except (OSError, http.client.HTTPException) as error:
            return False, str(error) or type(error).__name__
        if not block:
            break
        task.partial.write(block[: most - task.partial.size])
        task.report("from the hub", total=total)
        if task.partial.size == most and total is None:
            raise SourceFailed("it sends more than the model can be")
    if total is not None and task.partial.size < total:
        return False, f"the connection closed after {task.partial.size} of {total} bytes"
    return True, ""


def _placement(response: Any, at: int) -> tuple[int, int | None]:
    """Where the body begins, and how long the whole file is."""
    if response.status == 206:
        match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != at:
            raise SourceFailed("it answered another range than it was asked for")
        return at, int(match[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isascii() and length.isdigit() else None


def _open(url: str, at: int, validator: str, pinned: bool) -> Any:
    headers = {"User-Agent": f"foretype/{__version__}", "Accept-Encoding": "identity"}
    if at:
        headers["Range"] = f"bytes={at}-"
        if validator:
            headers["If-Range"] = validator
    _check(url, pinned)
    # Proxies of the environment lead out of the house; nothing on this machine is asked through them.
    local = urllib.parse.urlsplit(url).hostname in _LOOPBACK
    proxies = urllib.request.ProxyHandler({} if local else None)
    opener = urllib.request.build_opener(proxies, _Redirects(pinned))
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - _check allows http(s) only
    try:
        return _within(OPEN_S, lambda: opener.open(request, timeout=CONNECT_S))
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and at:
                return _open(url, 0, "", pinned)
            raise SourceFailed(f"it answered {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _Unreachable(f"not reachable ({error.reason})") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Unreachable(f"not reachable ({error or type(error).__name__})") from None


def _check(url: str, pinned: bool) -> None:
    parts = urllib.parse.urlsplit(url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and (pinned or parts.hostname in _LOOPBACK))
    if not safe:
        raise SourceFailed(f"a {parts.scheme} address is not used: without a known hash it must be https")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects only to addresses that may be asked directly."""

    def __init__(self, pinned: bool) -> None:
        self.pinned = pinned

    def redirect_request(  # noqa: PLR0917 - the base class fixes the signature
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """As the base class, after a look at the new address."""
        try:
            _check(newurl, self.pinned)
        except SourceFailed:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _within(seconds: float, call: Callable[[], Any]) -> Any:
    """The result of `call`, or TimeoutError: name resolution knows no time limit of its own."""
    box: list[Any] = []
    lock = threading.Lock()
    late = False

    def work() -> None:
        result: Any
        try:
            result = call()
        except BaseException as error:  # handed to the waiting thread
            result = error
        with lock:
            box.append(result)
            if late and hasattr(result, "close"):
                with contextlib.suppress(OSError):
                    result.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    with lock:
        late = not box
    if late:
        raise TimeoutError(f"no answer within {seconds} s")
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]
