"""Queries that choose: users of a name, similar signatures, text. Candidates are bounded, then ranked."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from indexer import packing, rank
from indexer.answers import CANDIDATES, READ_FILES, Place, Use, chunk_of, identity, paths_of, symbol_of
from indexer.records import Chunk, Snippet

_WORDS = 12
"""Words of a text that are looked for."""
_COMMON = 256
"""A word found in so many chunks does not choose."""
_SPARE = 4
"""Chunks read beyond those asked for, so that one with the text as written can come forward."""
_WORD = re.compile(r"[^\W_]+")


def callers(db: sqlite3.Connection, name: str, limit: int, near: str) -> tuple[Use, ...]:
    """Files by the full-text table of used names, places by each file's blob."""
    sql = "select rowid from used where used match ? order by rowid desc limit ?"
    ids = [row[0] for row in db.execute(sql, (f'"{packing.word(name)}"', CANDIDATES))]
    paths = paths_of(db, ids)
    ids.sort(key=lambda file: (-rank.nearness(near, paths.get(file, "")), paths.get(file, "")))
    found: list[Use] = []
    for file in ids[:READ_FILES]:
        row = db.execute("select data from reference where file = ?", (file,)).fetchone()
        uses = [r for r in packing.References(row[0]).rows(name) if r.role != "import"] if row else []
        uses.sort(key=lambda r: r.role != "call")
        for use in uses[: limit - len(found)]:
            found.append(Use(path=paths[file], reference=use, inside=symbol_of(db, file, use.symbol)))
        if len(found) >= limit:
            break
    return tuple(found)


def similar(db: sqlite3.Connection, bands: bytes, limit: int, apart: str) -> tuple[Place, ...]:
    """By shared band keys."""
    words = packing.band_words(bands).split()
    shared: dict[int, int] = {}
    sql = "select rowid from band where band match ? order by rowid desc limit ?"
    for word in words:
        for (place,) in db.execute(sql, (f'"{word}"', CANDIDATES)):
            shared[place] = shared.get(place, 0) + 1
    left_out = identity(db, apart) if apart else 0
    found: list[Place] = []
    for place in sorted(shared, key=lambda p: (-shared[p], p)):
        file, number = place >> packing.PLACE_BITS, place & (packing.PLACES - 1)
        symbol = symbol_of(db, file, number) if file != left_out else None
        path = paths_of(db, [file]).get(file) if symbol else None
        if symbol and path:
            found.append(Place(path=path, number=number, symbol=symbol, score=shared[place] / len(words)))
        if len(found) >= limit:
            break
    return tuple(found)


def search(db: sqlite3.Connection, text: str, limit: int, apart: str) -> tuple[Snippet, ...]:
    """By words, each chunk weighing the sum of its words' rarity; a chunk with the text as written leads."""
    scores = _scores(db, list(dict.fromkeys(w.lower() for w in _WORD.findall(text)))[:_WORDS])
    left_out = identity(db, apart) if apart else 0
    places = sorted(
        (p for p in scores if p >> packing.PLACE_BITS != left_out), key=lambda p: (-scores[p], -p)
    )
    places = places[: min(limit + _SPARE, READ_FILES)]
    paths = paths_of(db, [p >> packing.PLACE_BITS for p in places])
    literal = text.strip().lower()
    found = []
    for place in places:
        file, number = place >> packing.PLACE_BITS, place & (packing.PLACES - 1)
        chunk = chunk_of(db, file, number)
        if chunk is not None and file in paths:
            score = scores[place] + (1.0 if literal in chunk.text.lower() else 0.0)
            found.append(_snippet(paths[file], chunk, score))
    found.sort(key=lambda s: -s.score)
    return tuple(found[:limit])


def _scores(db: sqlite3.Connection, words: Sequence[str]) -> dict[int, float]:
    """Chunk → weight. Words found in few chunks choose; the common ones only add where those are."""
    sql = "select rowid from chunk_text where chunk_text match ? order by rowid desc limit ?"
    hits = {w: [r[0] for r in db.execute(sql, (f'"{w}"', _COMMON))] for w in words}
    total = int(db.execute("select ifnull(max(id), 1) from file").fetchone()[0]) * 8
    weights = dict(zip(hits, rank.rarity([len(rows) for rows in hits.values()], total), strict=True))
    rare = [w for w, rows in hits.items() if 0 < len(rows) < _COMMON]
    common = [w for w, rows in hits.items() if len(rows) >= _COMMON]
    scores: dict[int, float] = {}
    for word in rare or common:
        for place in hits[word]:
            scores[place] = scores.get(place, 0.0) + weights[word]
    either = " OR ".join(f'"{w}"' for w in rare)
    for word in common if rare else ():
        for (place,) in db.execute(sql, (f'({either}) AND "{word}"', _COMMON)):
            if place in scores:
                scores[place] += weights[word]
    if len(common) > 1 and not rare:
        for (place,) in db.execute(sql, (" AND ".join(f'"{w}"' for w in common), _COMMON)):
            scores[place] = scores.get(place, 0.0) + sum(weights[w] for w in common)
    return scores


def _snippet(path: str, chunk: Chunk, score: float) -> Snippet:
    return Snippet(
        path=path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        text=chunk.text,
        kind="text",
        score=score,
    )
