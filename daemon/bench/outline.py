"""`foretype bench outline`: how much shorter summaries are, and whether each still parses."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

from daemon.bench import stats
from daemon.bench.outcome import Outcome, Progress, table
from indexer import crew, outline, parse, tokens
from indexer.errors import ParseBudgetExceeded
from indexer.languages import registry
from indexer.languages.registry import Language
from indexer.records import ParsedFile

_CLASSES = frozenset(("class", "interface", "struct", "trait", "enum"))
_BUDGET_S = 10.0


async def run(root: Path | None, limit: int, vocabulary: str, progress: Progress) -> Outcome:
    """The `limit` most class-heavy files of `root` (the standard library by default)."""
    folder = root or Path(sysconfig.get_paths()["stdlib"])
    tokenizer, note = crew.tokenizer_of(vocabulary)
    found = sorted(_parsed(folder), key=lambda item: (-item[0], str(item[1])))[:limit]
    saved, errors, rows = [], 0, []
    for number, (classes, file, language, source, parsed) in enumerate(found, 1):
        made = outline.outline(source, parsed, language)
        for one in made:
            again, _ = parse.parse_file(one.text.encode(), language, _BUDGET_S)
            errors += bool(again.errors)
        whole, short = _size(tokenizer, source.decode()), _size(tokenizer, made[0].text if made else "")
        saved.append(1.0 - stats.ratio(short, whole) if made else 0.0)
        rows.append([str(file.relative_to(folder)), classes, whole, short, saved[-1]])
        progress(number, len(found))
    outcome = Outcome(name="outline", seed=0)
    outcome.figures = {
        "files": float(len(saved)),
        "saved_median": stats.percentile(saved, 0.5),
        "saved_p10": stats.percentile(saved, 0.1),
        "parse_errors": float(errors),
    }
    columns = ["file", "types", "tokens", "outline", "saved"]
    least = sorted(rows, key=lambda row: float(str(row[4])))[:15]
    outcome.tables.append(table("outlines that save least", columns, least))
    outcome.tables.append(table("outline", ["", "figure"], [list(item) for item in outcome.figures.items()]))
    if tokenizer is None:
        outcome.notes.append(f"{note}: counted in bytes")
    return outcome


def _parsed(folder: Path) -> Iterator[tuple[int, Path, Language, bytes, ParsedFile]]:
    for file in sorted(folder.rglob("*")):
        if "site-packages" in file.parts or not file.is_file():
            continue
        language = registry.language_for(file.name, b"")
        if language is None:
            continue
        source = file.read_bytes()
        try:
            source.decode()
            parsed, _ = parse.parse_file(source, language, _BUDGET_S)
        except (UnicodeDecodeError, ParseBudgetExceeded):
            continue
        yield sum(symbol.kind in _CLASSES for symbol in parsed.symbols), file, language, source, parsed


def _size(tokenizer: tokens.Tokenizer | None, text: str) -> int:
    return tokens.count(tokenizer.encode(text)) if tokenizer else len(text.encode())
