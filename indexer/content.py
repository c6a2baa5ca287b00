"""What a file's bytes are: text to index, or a reason to leave it alone.

Decisions that are ours: text with a UTF-8, UTF-16 or UTF-32 byte order mark is decoded and the mark removed;
in other text every byte that is not UTF-8 is read as Windows-1252 when there are few of them (a Latin-1
comment in a source file must not hide its symbols), and the file is left out as `encoding` when there are
many. A private key or a service account is `denied` whatever its file is called, unless in source code.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Literal

from indexer.deny import DENY, SOURCE_SUFFIXES, denied
from indexer.records import SkipReason

__all__ = ["DENY", "Caps", "classify", "denied", "secret"]


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits of the walk and of one file. Beyond them a file is listed with a reason and not read."""

    size: int = 1_048_576
    """Bytes of a file."""
    line: int = 20_000
    """Bytes of one line."""
    nesting: int = 500
    """Brackets open at once."""
    depth: int = 64
    """Folders between the root and a file."""
    files: int = 200_000
    """Files of one root."""
    folders: int = 100_000
    """Folders watched natively; more are scanned periodically."""
    ignore: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns beyond git's, see RootSpec."""


DEFAULTS = Caps()

LOCKFILES: frozenset[str] = frozenset((
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock",
    "deno.lock", "cargo.lock",
    "poetry.lock", "pipfile.lock", "pdm.lock", "uv.lock", "pixi.lock", "conda-lock.yml",
    "composer.lock", "gemfile.lock",
    "podfile.lock", "go.sum", "go.work.sum", "flake.lock", "mix.lock", "rebar.lock", "pubspec.lock",
    "package.resolved",
    "gradle.lockfile", "packages.lock.json", "paket.lock", "project.assets.json", "stack.yaml.lock",
    "cartfile.resolved",
))  # fmt: skip
"""Files that package managers write, by name in lower case."""

MINIFIED_SUFFIXES = (".min.js", ".min.mjs", ".min.css", ".js.map", ".css.map", ".mjs.map", ".bundle.js")

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEAD = 4096
_GENERATED = re.compile(
    rb"""^[ \t]*(?://|\#|\*|/\*|--|;|<!--|<\?|%|'|"{3}|"|!)  # a comment, or a docstring
    [^\n]*?(?:
        (?<![\w@])@generated\b
      | \bgenerated\b[^\n]*\bdo\ not\ (?:edit|modify)\b
      | \bdo\ not\ (?:edit|modify)\b[^\n]*\bgenerated\b
      | <auto-?generated\b
      | \bauto(?:matically)?[-\ ]?generated\ (?:by|from|using|with)\b
      | \bcode\ generated\ by\b
      | \bgenerated\ by\ (?:the\ )?(?:protocol\ buffer|grpc|protoc|swig|cython|flex|(?:gnu\ )?bison|thrift)
    )""",
    re.MULTILINE | re.VERBOSE,
)
_CODE = re.compile(
    rb"^(?:import\s|from\s+\S+\s+import\s|package\s+[\w.]+;?\s*$|us(?:e|ing)\s[^\n]*;|\#[ \t]*include\s)",
    re.MULTILINE,
)
"""What is said behind this is of other files: a text that the code writes."""
_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----\s")
_CONTROL = bytes(b for b in range(32) if b not in b"\t\n\r\f\b\x1b")
_OPENERS = b"([{"
_FLATTEN = bytes.maketrans(b"([{)]}", b"((()))")
_NOT_BRACKETS = bytes(b for b in range(256) if b not in b"([{)]}")
_WINDOWS = {
    0xDC00 + byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)
}
"""What Python writes for an undecodable byte → the character it has in Windows-1252."""


def classify(data: bytes, path: str, caps: Caps = DEFAULTS) -> tuple[bytes | None, SkipReason | Literal[""]]:
    """(UTF-8 text without a byte order mark, "") for text to index, (None, reason) otherwise.

    `data` is the whole file as on disk; `path` is used for names only. Reasons: denied, size, binary,
    encoding, generated, minified, line, depth.
    """
    if denied(path):
        return None, "denied"
    if len(data) > caps.size:
        return None, "size"
    text, reason = _decode(data)
    if text is None:
        return None, reason
    reason = _unwanted(text, path, caps)
    return (None, reason) if reason else (text, "")


def _decode(data: bytes) -> tuple[bytes | None, SkipReason | Literal[""]]:
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _recode(data[len(mark) :], name)
    if b"\0" in data or _mostly_control(data):
        return None, "binary"
    if data.isascii():
        return data, ""
    return _recode(data, "utf-8")


def _recode(data: bytes, name: str) -> tuple[bytes | None, SkipReason | Literal[""]]:
    try:
        text = data.decode(name)
    except UnicodeDecodeError:
        return _mend(data) if name == "utf-8" else (None, "encoding")
    if "\0" in text:
        return None, "binary"
    return (data if name == "utf-8" else text.encode()), ""


def _mend(data: bytes) -> tuple[bytes | None, SkipReason | Literal[""]]:
    """Read stray bytes as Windows-1252: few, or one in 50 of a long text; never more than a quarter."""
    if b"\0" in data:
        return None, "binary"
    text = data.decode("utf-8", "surrogateescape")
    stray = sum(text.count(chr(code)) for code in _WINDOWS)
    if stray * 4 > len(data) or (stray > 16 and stray * 50 > len(data)):
        return None, "encoding"
    return text.translate(_WINDOWS).encode(), ""


def _mostly_control(data: bytes) -> bool:
    head = data[:8192]
    return (len(head) - len(head.translate(None, _CONTROL))) * 20 > len(head)


def _unwanted(text: bytes, path: str, caps: Caps) -> SkipReason | Literal[""]:
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    if secret(text, name):
        return "denied"
    if name in LOCKFILES or _generated(text):
        return "generated"
    if _too_nested(text, caps.nesting):
        return "depth"
    lines = text.split(b"\n")
    longest = max(map(len, lines))
    if name.endswith(MINIFIED_SUFFIXES) or _minified(text, longest, len(lines)):
        return "minified"
    return "line" if longest > caps.line else ""


def secret(text: bytes, name: str) -> bool:
    """A private key or a service account by its content; `name` is the file's name in lower case."""
    if name.rpartition(".")[2] in SOURCE_SUFFIXES:
        return False
    return _KEY.search(text, 0, _HEAD) is not None or (name.endswith(".json") and b'"private_key"' in text)


def _generated(text: bytes) -> bool:
    head = text[:_HEAD].lower()
    if b"generated" not in head:
        return False
    code = _CODE.search(head)
    return _GENERATED.search(head, 0, code.start() if code else len(head)) is not None


def _minified(text: bytes, longest: int, lines: int) -> bool:
    """Long lines of dense code: prose has spaces, and a long row of data has no brackets."""
    if longest < 1000 or len(text) < 200 * lines:
        return False
    size = len(text)
    spaces = text.count(b" ") + text.count(b"\t")
    marks = size - len(text.translate(None, b"(){}[];,:=.\"'"))
    return spaces * 10 < size and marks * 20 > size


def _too_nested(text: bytes, limit: int) -> bool:
    """Innermost pairs are taken away until none is left: as many rounds as the brackets are deep.

    Brackets in strings count as well; that errs by their number, which is far below the limit.
    """
    if sum(text.count(bytes([b])) for b in _OPENERS) <= limit:
        return False
    rest = text.translate(_FLATTEN, _NOT_BRACKETS)
    for _ in range(limit):
        shorter = rest.replace(b"()", b"")
        if len(shorter) == len(rest):
            return rest.count(b"(") > limit
        rest = shorter
    return True
