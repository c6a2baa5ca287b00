"""Queries that choose: users of a name, similar signatures, text. Candidates are bounded, then ranked."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from indexer import packing, rank
from indexer.answers import CANDIDATES, READ_FILES, Place, Use, chunk_of, identity, paths_of, symbol_of
from indexer.records import Chunk, Snippet

_WORDS = 12
"""Words of a text that are looked for."""
_COMMON = 256
"""A word found in so many chunks does not choose."""
_ALL = 32
"""Chunks with all of the words that are looked at, the newest, where every word is common."""
_ADDED = 7
"""Common words looked for beside rare ones, in the order of the text: each takes longer than those."""
_SPARE = 4
"""Chunks read beyond those asked for, so that one with the text as written can come forward."""
_KNOWN = 512
"""Words whose places are remembered, 2 KB each."""
_HOLDING = "select rowid from chunk_text where chunk_text match ? order by rowid desc limit ?"
_HOLDING_FEW = "select rowid from chunk_text where chunk_text match ? limit ?"
"""A third faster, where all are within the limit anyway."""
_NONE = np.empty(0, np.int64)
_WORD = re.compile(r"[^\W_]+")

Places = npt.NDArray[np.int64]


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
    sql = "select rowid from band where band match ? order by rowid desc limit ?"
    rows = [_ids(db, sql, f'"{word}"', CANDIDATES) for word in words]
    places, shared = np.unique(np.concatenate([_NONE, *rows]), return_counts=True)
    left_out = identity(db, apart) if apart else 0
    found: list[Place] = []
    for at in np.argsort(-shared, kind="stable").tolist():
        place = int(places[at])
        file, number = place >> packing.PLACE_BITS, place & (packing.PLACES - 1)
        symbol = symbol_of(db, file, number) if file != left_out else None
        path = paths_of(db, [file]).get(file) if symbol else None
        if symbol and path:
            score = int(shared[at]) / len(words)
            found.append(Place(path=path, number=number, symbol=symbol, score=score))
        if len(found) >= limit:
            break
    return tuple(found)


def search(
    db: sqlite3.Connection, text: str, limit: int, apart: str, *, known: dict[str, Places]
) -> tuple[Snippet, ...]:
    """By words, each chunk weighing the sum of its words' rarity; a chunk with the text as written leads.
    `known` remembers where words stand; whoever keeps it clears it when the database changes."""
    words = list(dict.fromkeys(w.lower() for w in _WORD.findall(text)))[:_WORDS]
    rare, common = _weighed(db, words, known)
    left_out, most = identity(db, apart) if apart else 0, min(limit + _SPARE, READ_FILES)
    hits = [(known[word], weight) for word, weight in (rare or common).items()]
    scores = _best(hits, left_out, most + 1)
    few = bool(rare) and len(scores) <= most  # all are read anyway, and tell which common words they hold
    if not few:
        scores = _best([*hits, *_together(db, rare, common, known)], left_out, most)
    paths = paths_of(db, [p >> packing.PLACE_BITS for p in scores])
    literal = text.strip().lower()
    found = []
    for place, weight in scores.items():
        file, number = place >> packing.PLACE_BITS, place & (packing.PLACES - 1)
        chunk = chunk_of(db, file, number)
        if chunk is None or file not in paths:
            continue
        lower = chunk.text.lower()
        held = set(_WORD.findall(lower)) if few else ()
        whole = sum((common[word] for word in common if word in held), weight)
        score = whole + (1.0 if literal in lower else 0.0)
        found.append((-score, -whole, -place, _snippet(paths[file], chunk, score)))
    return tuple(row[-1] for row in sorted(found)[:limit])


def _weighed(
    db: sqlite3.Connection, words: Sequence[str], known: dict[str, Places]
) -> tuple[dict[str, float], dict[str, float]]:
    """Words found in few chunks, and the common ones, with the weight of each. Where they stand is in `known`
    then."""
    if len(known) > _KNOWN:
        known.clear()
    for word in words:
        if word not in known:
            known[word] = _ids(db, _HOLDING, f'"{word}"', _COMMON)
    total = int(db.execute("select ifnull(max(id), 1) from file").fetchone()[0]) * 8
    counts = [len(known[word]) for word in words]
    rare: dict[str, float] = {}
    common: dict[str, float] = {}
    for word, count, weight in zip(words, counts, rank.rarity(counts, total), strict=True):
        if count:
            (rare if count < _COMMON else common)[word] = weight
    return rare, common


def _together(
    db: sqlite3.Connection, rare: dict[str, float], common: dict[str, float], known: dict[str, Places]
) -> Iterator[tuple[Places, float]]:
    """Rare words choose, the common ones only add where those are; without rare ones, where all are."""
    either = " OR ".join(f'"{word}"' for word in rare)
    few = sum(len(known[word]) for word in rare) <= _COMMON
    for word, weight in islice(common.items(), _ADDED if rare else 0):
        yield _ids(db, _HOLDING_FEW if few else _HOLDING, f'({either}) AND "{word}"', _COMMON), weight
    if len(common) > 1 and not rare:
        every = " AND ".join(f'"{word}"' for word in common)
        yield _ids(db, _HOLDING, every, _ALL), sum(common.values())


def _best(hits: Sequence[tuple[Places, float]], left_out: int, most: int) -> dict[int, float]:
    """The best places by the weights of what is found there, of equal ones the newest first, without those of
    the file `left_out`."""
    places, which = np.unique(np.concatenate([_NONE, *(rows for rows, _ in hits)]), return_inverse=True)
    weighed = np.array([weight for _, weight in hits], np.float64)
    scores = np.bincount(which, np.repeat(weighed, [len(rows) for rows, _ in hits]), minlength=len(places))
    kept = places >> packing.PLACE_BITS != left_out
    places, scores = places[kept], scores[kept]
    order = np.lexsort((-places, -scores))[:most]
    return dict(zip(places[order].tolist(), scores[order].tolist(), strict=True))


def _ids(db: sqlite3.Connection, sql: str, match: str, limit: int) -> Places:
    return np.fromiter(chain.from_iterable(db.execute(sql, (match, limit))), np.int64)


def _snippet(path: str, chunk: Chunk, score: float) -> Snippet:
    return Snippet(
        path=path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        text=chunk.text,
        kind="text",
        score=score,
    )
