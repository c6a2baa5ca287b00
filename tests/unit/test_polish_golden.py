"""The table of polish: raw model text and what an editor may show, with both line ends and in pieces."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from daemon.documents.positions import split_at
from daemon.nouns import CompletionRequest, Generation, Limits, Lines, StopReason
from daemon.polish.emit import Emitter

TABLE = Path(__file__).resolve().parent.parent / "golden" / "polish.toml"
CURSOR = "‸"
SIX = {"python", "typescript", "go", "rust", "java", "cpp"}


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row."""

    name: str
    language: str
    document: str
    raw: str
    text: str
    trims: tuple[str, ...]
    stop: StopReason = "eos"
    lines: Lines = "auto"
    replaces: int = 0


CASES = msgspec.convert(tomllib.loads(TABLE.read_text(encoding="utf-8"))["case"], list[Case])


def request_of(case: Case, newline: str) -> CompletionRequest:
    document = case.document.replace("\n", newline)
    at = document.index(CURSOR)
    parts = split_at(document.replace(CURSOR, ""), at)
    return CompletionRequest(
        id="1",
        client="test",
        door="test",
        prefix=parts.prefix,
        suffix=parts.suffix,
        language=case.language,
        newline=parts.newline,
        limits=Limits(lines=case.lines),
    )


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def test_the_table_is_large_and_names_are_unique() -> None:
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({case.language for case in CASES}) >= 6
    by_language = Counter(case.language for case in CASES)
    assert min(by_language[language] for language in SIX) >= 12


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_row(case: Case, newline: str) -> None:
    request = request_of(case, newline)
    generation = Generation(text=case.raw, stop=case.stop)
    whole = Emitter(request).finish(generation)
    assert whole.text == case.text.replace("\n", request.newline)
    assert whole.trims == case.trims
    start = len(request.prefix)
    assert (whole.replace.start, whole.replace.end) == (start, start + case.replaces)
    for size in (1, 3, 5):
        emitter = Emitter(request)
        shown = [emitter.feed(piece) for piece in pieces(case.raw, size)]
        assert emitter.finish(generation) == whole
        assert "".join(shown) + emitter.tail == whole.text
