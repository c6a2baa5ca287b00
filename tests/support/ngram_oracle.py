"""N-grams by looking through everything, and a repeatable history of changes to try them on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from indexer.ngrams import Match, NgramReader, NgramWriter
from indexer.tokens import to_bytes

LONGEST, SHORTEST = 16, 2
VOCABULARY = 12
"""So few ids that long matches happen."""


def followers(files: Mapping[str, Sequence[int]], query: Sequence[int]) -> tuple[int, list[tuple[int, ...]]]:
    """(length of the longest match, what follows each of its places)."""
    for length in range(min(LONGEST, len(query)), SHORTEST - 1, -1):
        wanted = list(query[-length:])
        found = [
            tuple(ids[at:])
            for ids in files.values()
            for at in range(length, len(ids))
            if ids[at - 1] == wanted[-1] and list(ids[at - length : at]) == wanted
        ]
        if found:
            return length, found
    return 0, []


def check(match: Match, files: Mapping[str, Sequence[int]], query: Sequence[int], k: int, most: int) -> None:
    """Assert that `match` is right; among equally frequent ids any may come first."""
    length, found = followers(files, query)
    assert (match.length, match.seen) == (length, len(found)), query
    firsts = Counter(rest[0] for rest in found)
    assert (
        len({path[0] for path, _ in match.continuations})
        == len(match.continuations)
        == min(most, len(firsts))
    )
    counts = [firsts[path[0]] for path, _ in match.continuations]
    assert counts == sorted(firsts.values(), reverse=True)[:most]
    for (path, count), first in zip(match.continuations, counts, strict=True):
        assert 1 <= len(path) <= k
        group = [rest for rest in found if rest[0] == path[0]]
        for at, wanted in enumerate(path):
            votes = Counter(rest[at] for rest in group if len(rest) > at)
            assert votes[wanted] == max(votes.values())
            assert 2 * votes[wanted] > first or votes[wanted] == first
            group = [rest for rest in group if len(rest) > at and rest[at] == wanted]
        assert count == len(group)
        votes = Counter(rest[len(path)] for rest in group if len(rest) > len(path))
        assert len(path) == k or not votes or 2 * max(votes.values()) <= first


def history(seed: int) -> Iterator[dict[str, list[int] | None]]:
    """Endless commits: path → its new ids, None: removed."""
    rng = random.Random(seed)
    phrases = [[rng.randrange(VOCABULARY) for _ in range(rng.randrange(1, 30))] for _ in range(20)]
    while True:
        changes: dict[str, list[int] | None] = {}
        for _ in range(rng.randrange(1, 8)):
            path = f"pkg/module_{rng.randrange(25)}.py"
            ids = [i for _ in range(rng.randrange(12)) for i in rng.choice(phrases)]
            changes[path] = None if rng.random() < 0.25 else ids
        yield changes


def apply(writer: NgramWriter, changes: Mapping[str, list[int] | None]) -> None:
    for path, ids in changes.items():
        if ids is None:
            writer.remove_file(path)
        else:
            writer.add_file(path, to_bytes(ids))


def merge(files: dict[str, list[int]], changes: Mapping[str, list[int] | None]) -> None:
    for path, ids in changes.items():
        files.pop(path, None)
        if ids is not None:
            files[path] = ids


def queries(files: Mapping[str, Sequence[int]], rng: random.Random, number: int) -> Iterator[list[int]]:
    """Contexts that occur, in whole or only at their end, and some that do not."""
    texts = [ids for ids in files.values() if ids] or [[0]]
    for _ in range(number):
        ids = rng.choice(texts)
        at = rng.randrange(len(ids) + 1)
        query = list(ids[max(0, at - rng.randrange(1, 24)) : at])
        noise = [rng.randrange(VOCABULARY + 1) for _ in range(rng.randrange(3))]
        yield noise + query if rng.random() < 0.7 else query + noise


ALL = 1_000_000
A = to_bytes([1, 2, 3, 4, 5, 6, 7, 8])
B = to_bytes([9, 2, 3, 4, 50, 60])


def found(folder: Path, *ids: int, k: int = 4) -> list[tuple[tuple[int, ...], int]]:
    return NgramReader(folder).continuations(list(ids), k)
