"""Secrets in allowed files are replaced before a text is shown to the model or kept.

What is redacted: every text that is not the open document — other files, what a client sends, the clipboard,
recent edits — and every copy that is kept (ledger, logs). The document around the cursor itself (prefix,
suffix, middle) is not: it is the user's own text, the answer must fit it, and a value that changed while it
is being typed would cost the cache.
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from daemon.detection import HAS_DIGIT, PLACEHOLDER, RUN, FileType, Span, determine_file_type, spans_in
from daemon.nouns import Extra, Noun
from indexer.deny import denied

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|Private-Lines: \d+")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]+")
_KEY_GAP = re.compile(r"(?:\\[nr]|[\s\"'`,;()\\#*]|(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]*)*")
_LOWER_WORDS = (
    "pass", "pwd", "secret", "contrase", "apikey", "api_key", "authkey", "auth_key", "servicekey",
    "service_key", "accountkey", "account_key", "dbkey", "db_key", "databasekey", "database_key",
    "privkey", "priv_key", "privatekey", "private_key", "clientkey", "client_key", "token",
    "credential", "bearer", "sig", "://",
)  # fmt: skip
"""A line without one of these, and without a long run that has a digit, is not looked at."""
_MOST = 2000
_PIECE = re.compile(rf".{{1,{_MOST}}}(?:[\s,;]|$)|.{{1,{_MOST}}}")
"""A very long line is looked at in pieces, cut between words where that can be."""
_LONG = 32
_CACHED, _CACHED_CHARACTERS = 1024, 4_000_000
_PASSES = 6


class Redacted(Noun, frozen=True):
    """A text that may be shown. Made by redact()."""

    text: str
    found: tuple[str, ...] = ()
    """What kind of secret stood where PLACEHOLDER stands now, in no order; never a value."""


def redact(text: str, path: str = "") -> Redacted:
    """`text` with PLACEHOLDER where secrets were: the same number of lines, quotes kept.

    `path` tells the language; unknown is fine. Deterministic, and redacting again changes nothing. About
    1 ms for 20 kB the first time, 30 µs when the text was seen before. May be called from any thread.
    """
    kind = _kind(path)
    key = hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=16, key=kind.name.encode()
    ).digest()
    if (known := _seen.get(key)) is None:
        known = _seen.put(key, _redact(text, kind))
    return known if known.found else Redacted(text=text)


def clean(extras: Sequence[Extra]) -> tuple[tuple[Extra, ...], tuple[str, ...]]:
    """What a client sent, without files that the deny list names and without secrets; and what was found."""
    kept: list[Extra] = []
    found: list[str] = []
    for extra in extras:
        if extra.filename and denied(extra.filename):
            found.append("denied file")
            continue
        done = redact(extra.text, extra.filename)
        found += done.found
        kept.append(replace(extra, text=done.text) if done.found else extra)
    return tuple(kept), tuple(found)


class _Seen:
    """Results by content; those without a finding hold no text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, Redacted] = OrderedDict()
        self._characters = 0

    def get(self, key: bytes) -> Redacted | None:
        with self._lock:
            if (found := self._known.get(key)) is not None:
                self._known.move_to_end(key)
            return found

    def put(self, key: bytes, value: Redacted) -> Redacted:
        value = value if value.found else Redacted(text="")
        with self._lock:
            if key not in self._known:
                self._known[key] = value
                self._characters += len(value.text)
            while len(self._known) > _CACHED or self._characters > _CACHED_CHARACTERS:
                self._characters -= len(self._known.popitem(last=False)[1].text)
        return value


_seen = _Seen()
_kind = functools.lru_cache(_CACHED)(determine_file_type)


def _redact(text: str, kind: FileType) -> Redacted:
    found: list[str] = []
    if keys := list(_private_keys(text)):
        text = _replace(text, keys, found)
    marked = _candidates(text)
    if marked:
        lines = text.split("\n")
        for number in marked:
            lines[number] = _settle(lines[number], kind, found)
        text = "\n".join(lines)
    return Redacted(text=text, found=tuple(found))


def _candidates(text: str) -> list[int]:
    """Numbers of the lines that deserve a look."""
    lower = text.lower()
    at = [match.start() for match in RUN.finditer(text) if HAS_DIGIT(match.group())]
    for word in _LOWER_WORDS if len(lower) == len(text) else ():
        position = lower.find(word)
        while position >= 0:
            at.append(position)
            position = lower.find(word, position + len(word))
    if len(lower) != len(text):  # a character whose lower case is longer: offsets do not fit
        return list(range(text.count("\n") + 1))
    line = before = 0
    numbers: list[int] = []
    for position in sorted(at):
        line += text.count("\n", before, position)
        before = position
        if not numbers or numbers[-1] != line:
            numbers.append(line)
    return numbers


def _settle(line: str, kind: FileType, found: list[str]) -> str:
    """One line without its secrets; replacing may uncover another, so it is looked at again."""
    if len(line) > 2 * _MOST:
        return "".join(_settle(piece, kind, found) for piece in _PIECE.findall(line))
    for _ in range(_PASSES):
        spans = [s for s in spans_in(line, kind) if line[s[0] : s[1]] != PLACEHOLDER]
        if not spans:
            break
        line = _replace(line, spans, found)
    return line


def _replace(text: str, spans: list[Span], found: list[str]) -> str:
    parts, end = [], 0
    for start, stop, kind in sorted(spans, key=lambda s: (s[0], -s[1])):
        if start < end:
            end = max(end, stop)  # one placeholder stands for both
            continue
        parts += [text[end:start], PLACEHOLDER]
        found.append(kind)
        end = stop
    return "".join([*parts, text[end:]])


def _private_keys(text: str) -> Iterator[Span]:
    """The bodies of private keys, as lines, as strings or behind `\\n`; whole or cut off."""
    for begin in _BEGIN.finditer(text):
        at, long = begin.end(), False
        while run := _KEY_RUN.match(text, _gap(text, at)):
            enough = run.end() - run.start() >= _LONG
            if not enough and not long:
                break
            if run.group() != PLACEHOLDER:
                yield (*run.span(), "Private Key")
            at, long = run.end(), enough


def _gap(text: str, at: int) -> int:
    match = _KEY_GAP.match(text, at)
    return match.end() if match else at
