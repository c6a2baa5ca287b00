"""Queries that choose: users of a name, similar signatures, text. Candidates are bounded, then ranked."""

from __future__ import annotations

import heapq
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from indexer import packing, rank
from indexer.answers import (
    CANDIDATES,
    READ_FILES,
    Known,
    Place,
    Use,
    chunk_of,
    identity,
    located,
    paths_of,
    symbol_of,
)
from indexer.records import Chunk, Snippet

_ALIKE = 128
"""Callables looked at for each band: one that more have in common says little."""
_WORDS = 12
"""Words of a text that are looked for."""
_COMMON = 256
"""A word found in so many chunks does not choose."""
_ALL = 32
"""Chunks with these words that are looked at, the newest."""
_ADDED = 3
"""Common words looked for beside rare ones, in the order of the text: each takes longer than those. The
others count in the chunks that are read."""
_TOGETHER = 4
"""Common words that a chunk must hold where no word is rare: each takes longer than the one before."""
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


def using(db: sqlite3.Connection, name: str, near: str, known: Known) -> list[tuple[str, int]]:
    """Path and id of files that use a name, nearest to `near` first, by the full-text table of used names.
    `known`: see `located`."""
    sql = "select rowid from used where used match ? order by rowid desc limit ?"
    ids = [row[0] for row in db.execute(sql, (f'"{packing.word(name)}"', CANDIDATES))]
    located(db, ids, known)
    here = near.rpartition("/")[0]
    ranked = ((-rank.near_folders(here, known[file][0]), known[file][1], file) for file in ids)
    return [(path, file) for _, path, file in heapq.nsmallest(READ_FILES, ranked)]


def callers(
    db: sqlite3.Connection,
    name: str,
    limit: int,
    files: Iterable[tuple[str, int]],
    opened: Callable[[int], packing.References | None],
) -> tuple[Use, ...]:
    """Uses of a name in `files`, found by `using`; places by each file's blob, which `opened` gives."""
    found: list[Use] = []
    for path, file in files:
        blob = opened(file)
        uses = [r for r in blob.rows(name) if r.role != "import"] if blob else []
        uses.sort(key=lambda r: r.role != "call")
        for use in uses[: limit - len(found)]:
            found.append(Use(path=path, reference=use, inside=symbol_of(db, file, use.symbol)))
        if len(found) >= limit:
            break
    return tuple(found)


def references(db: sqlite3.Connection, file: int) -> packing.References | None:
    """A file's references, unpacked."""
    row = db.execute("select data from reference where file = ?", (file,)).fetchone()
    return packing.References(row[0]) if row else None


def similar(db: sqlite3.Connection, bands: bytes, limit: int, apart: str) -> tuple[Place, ...]:
    """By shared band keys."""
    words = packing.band_words(bands).split()
    sql = "select rowid from band where band match ? order by rowid desc limit ?"
    rows = [_ids(db, sql, f'"{word}"', _ALIKE) for word in words]
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
    if not rare or len(scores) > most:  # else all are read anyway, and tell which common words they hold
        scores = _best([*hits, *_together(db, rare, common, known)], left_out, most)
    paths = paths_of(db, [p >> packing.PLACE_BITS for p in scores])
    literal, weights = text.strip().lower(), {**rare, **common}
    found = []
    for place, weight in scores.items():
        file, number = place >> packing.PLACE_BITS, place & (packing.PLACES - 1)
        chunk = chunk_of(db, file, number)
        if chunk is None or file not in paths:
            continue
        lower = chunk.text.lower()
        held = set(_WORD.findall(lower))
        whole = max(weight, sum(w for word, w in weights.items() if word in held))
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
        nearest = dict(islice(common.items(), _TOGETHER))
        every = " AND ".join(f'"{word}"' for word in nearest)
        yield _ids(db, _HOLDING, every, _ALL), sum(nearest.values())


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
