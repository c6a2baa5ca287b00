"""The n-grams of the indexed files: found as by looking through everything."""

import random
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from support import ngram_oracle as oracle
from support.ngram_oracle import ALL, A, B, found

from indexer.ngram_order import RUN, by_context
from indexer.ngrams import Match, NgramReader, NgramWriter
from indexer.tokens import to_bytes


def test_what_followed_the_longest_match(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path)
    writer.add_file("a", A)
    writer.add_file("b", B)
    assert writer.commit()
    reader = NgramReader(tmp_path)
    assert reader.match([7, 7, 1, 2, 3, 4], 4) == Match(length=4, seen=1, continuations=(((5, 6, 7, 8), 1),))
    assert sorted(reader.continuations([0, 3, 4], 2)) == [((5, 6), 1), ((50, 60), 1)]
    assert reader.match(to_bytes([2, 3]), 9, most=1).continuations == (((4,), 2),)
    assert reader.continuations([6, 7], 9) == [((8,), 1)]


@pytest.mark.parametrize("ids", [[], [2], [8, 9], [7, 8], [3, 5], [-1, 2, 3], [2, 3, 1 << 30], [2, 3, -7]])
def test_nothing_found(tmp_path: Path, ids: list[int]) -> None:
    writer = NgramWriter(tmp_path)
    writer.add_file("a", A)
    writer.add_file("b", B)
    writer.commit()
    assert found(tmp_path, *ids) == []


def test_no_directory_no_files_no_ids(tmp_path: Path) -> None:
    reader = NgramReader(tmp_path / "ngrams")
    assert reader.continuations([1, 2], 4) == []
    writer = NgramWriter(tmp_path / "ngrams")
    assert not writer.commit()
    writer.add_file("empty", b"", digest=b"e")
    writer.add_file("one", to_bytes([1]), digest=b"o")
    writer.commit()
    assert reader.refresh()
    assert reader.continuations([1, 2], 4) == []
    assert NgramWriter(tmp_path / "ngrams").files() == {"empty": b"e", "one": b"o"}


def test_ids_beyond_every_vocabulary_are_refused(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path)
    for ids in (to_bytes([-1]), to_bytes([0xFFFFFF]), b"abc"):
        with pytest.raises(ValueError, match=r"vocabulary|buffer size"):
            writer.add_file("a", ids)
    writer.add_file("a", to_bytes([0xFFFFFE] * 3))
    writer.commit()
    assert found(tmp_path, 0xFFFFFE, 0xFFFFFE) == [((0xFFFFFE,), 1)]


def test_largest_counts_and_paths_that_most_agree_on(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path)
    for n, tail in enumerate(([3, 4, 5], [3, 4, 6], [3, 4, 7], [8, 1], [8, 1], [9])):
        writer.add_file(str(n), to_bytes([1, 2, *tail]))
    writer.commit()
    assert sorted(found(tmp_path, 1, 2)) == [((3, 4), 3), ((8, 1), 2), ((9,), 1)]
    assert NgramReader(tmp_path, sample=2).match([1, 2], 4).seen == 2


@pytest.mark.parametrize("seed", range(6))
def test_equals_looking_through_everything(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    files: dict[str, list[int]] = {}
    writer, reader = NgramWriter(tmp_path), NgramReader(tmp_path, sample=ALL)
    for changes in islice(oracle.history(seed), 25):
        oracle.apply(writer, changes)
        writer.commit()
        oracle.merge(files, changes)
        if rng.random() < 0.2:
            writer = NgramWriter(tmp_path)
        while rng.random() < 0.5 and writer.compact():
            pass
        assert writer.files().keys() == files.keys()
        reader.refresh()
        for query in oracle.queries(files, rng, 40):
            k, most = rng.randrange(1, 9), rng.randrange(1, 5)
            oracle.check(reader.match(query, k, most), files, query, k, most)


def test_many_segments_and_dead_ranges(tmp_path: Path) -> None:
    """Segments too large to be folded into the next commit, so that dead ranges stay."""
    rng = random.Random(5)
    writer, reader = NgramWriter(tmp_path), NgramReader(tmp_path, sample=ALL)
    files = {str(n): [rng.randrange(300) for _ in range(12_000)] for n in range(36)}
    for n in range(0, 36, 6):
        for path in map(str, range(n, n + 6)):
            writer.add_file(path, to_bytes(files[path]))
        writer.commit()
    for path in map(str, rng.sample(range(36), 9)):
        del files[path]
        writer.remove_file(path)
    writer.commit()
    assert writer.figures().segments > 1
    assert writer.figures().ids == sum(map(len, files.values()))
    for _ in range(2):
        reader.refresh()
        for query in oracle.queries(files, rng, 10):
            oracle.check(reader.match(query, 4, 3), files, query, 4, 3)
        while writer.compact():
            pass
    assert writer.figures().segments == 1


@pytest.mark.parametrize(("size", "kinds"), [(3 * RUN, 3), (RUN + 1000, 1), (2 * RUN, 40_000), (20, 5)])
def test_order_of_contexts(size: int, kinds: int) -> None:
    """Groups larger than one run of sorting, wide ids, and none at all."""
    stream = np.random.default_rng(0).integers(0, kinds, size).astype(np.uint32)
    stream[:16] = stream[-1] = stream[size // 2] = 0xFFFFFF
    order = by_context(stream, kinds - 1, 16)
    assert np.array_equal(np.sort(order), np.arange(size))
    order = order[order >= 16]
    undecided = np.ones(len(order) - 1, np.bool_)
    for back in range(1, 17):
        column = stream[order - back]
        assert not (undecided & (column[1:] < column[:-1])).any()
        undecided &= column[1:] == column[:-1]


def test_speed(tmp_path: Path) -> None:
    """Figures only; see them with `pytest -s`."""
    rng = random.Random(0)
    phrases = [
        [int(rng.paretovariate(0.6)) % 30_000 for _ in range(rng.randrange(3, 40))] for _ in range(4000)
    ]
    files = [[i for p in rng.choices(phrases, k=150) for i in p] for _ in range(100)]
    total = sum(map(len, files))
    writer, start = NgramWriter(tmp_path), time.perf_counter()
    for n, ids in enumerate(files):
        writer.add_file(str(n), to_bytes(ids))
    writer.commit()
    built = time.perf_counter() - start
    reader, times = NgramReader(tmp_path), []
    reader.refresh()
    for _ in range(5000):
        ids = rng.choice(files)
        at = rng.randrange(20, len(ids))
        query = ids[at - rng.randrange(2, 17) : at]
        start = time.perf_counter()
        reader.match(query, 16, 1)
        times.append(time.perf_counter() - start)
    times.sort()
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    sys.stdout.write(
        f"\n{total / built / 1e6:.1f} M ids/s built, {size / total:.2f} bytes per id,"
        f" lookup p50 {times[2500] * 1e6:.0f} us, p99 {times[4950] * 1e6:.0f} us\n"
    )
    assert writer.figures().ids == total
