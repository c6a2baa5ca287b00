"""N-grams while files change: readers follow, what is old is dropped, segments are merged."""

import random
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from support import ngram_oracle as oracle
from support.ngram_oracle import A, B, found

from indexer.grams import FOLDER, Grams
from indexer.ngram_parts import MANIFEST
from indexer.ngram_segments import read_manifest
from indexer.ngrams import NgramReader, NgramWriter
from indexer.records import FileRow
from indexer.tokens import to_bytes


def test_same_digest_changes_nothing(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path)
    writer.add_file("a", A, digest=b"1")
    writer.commit()
    writer.add_file("a", B, digest=b"1")
    assert not writer.commit()
    writer.remove_file("unknown")
    assert not writer.commit()
    writer.add_file("a", B, digest=b"2")
    assert writer.commit()
    assert found(tmp_path, 3, 4) == [((50, 60), 1)]


def test_a_reader_follows_and_keeps_what_was_replaced(tmp_path: Path) -> None:
    writer, reader = NgramWriter(tmp_path), NgramReader(tmp_path)
    writer.add_file("a", A)
    writer.commit()
    assert reader.continuations([2, 3], 1) == [((4,), 1)]
    before = {path.name for path in tmp_path.iterdir()}
    writer.add_file("b", to_bytes([2, 3, 9]))
    writer.commit()
    assert {path.name for path in tmp_path.iterdir()}.isdisjoint(before - {"manifest"})
    deadline = time.monotonic() + 10
    while len(reader.continuations([2, 3], 1)) < 2:
        assert time.monotonic() < deadline
    for path in tmp_path.iterdir():
        path.unlink()
    reader.refresh()
    assert reader.continuations([2, 3], 1) == []


def test_lookups_while_the_writer_works(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path)
    writer.add_file("kept", to_bytes([900, 901, 902, 903]))
    writer.commit()

    def work() -> None:
        for changes in islice(oracle.history(3), 60):
            oracle.apply(writer, changes)
            writer.commit()
            writer.compact()

    thread = threading.Thread(target=work)
    thread.start()
    reader, lookups = NgramReader(tmp_path), 0
    while thread.is_alive():
        reader.refresh()
        assert reader.continuations([900, 901], 4) == [((902, 903), 1)]
        lookups += 1
    thread.join()
    assert lookups > 10


def test_bounded_drops_the_least_recently_changed(tmp_path: Path) -> None:
    rng = random.Random(0)
    most = 200_000
    writer = NgramWriter(tmp_path, max_bytes=most)
    for n in range(60):
        ids = to_bytes([n + 1000, n + 2000, *(rng.randrange(900) for _ in range(1000))])
        writer.add_file(f"f{n}", ids, digest=bytes([n]), changed_ns=1000 + n)
        writer.commit()
        assert sum(path.stat().st_size for path in tmp_path.glob("*.seg")) <= most
    figures = writer.figures()
    assert figures.files + figures.dropped == 60
    assert figures.files > 15
    assert found(tmp_path, 1059, 2059) != []
    assert found(tmp_path, 1000, 2000) == []
    reopened = NgramWriter(tmp_path, max_bytes=most)
    assert reopened.files() == writer.files() == {f"f{n}": bytes([n]) for n in range(60)}
    reopened.add_file("f0", to_bytes([1000, 2000, 7]), digest=b"new")
    reopened.commit()
    assert found(tmp_path, 1000, 2000) == [((7,), 1)]
    reopened.add_file("huge", to_bytes([5] * most), digest=b"h")
    reopened.commit()
    assert reopened.files()["huge"] == b"h"
    assert reopened.figures().bytes <= most


def test_of_a_checkout_whole_segments_are_dropped(tmp_path: Path) -> None:
    """All files are equally old, give or take: none of what is left is dead and waits for a rewrite."""
    writer = NgramWriter(tmp_path, max_bytes=4_400_000)
    for number in range(9):
        for n in range(8):
            ids = [(number * 8 + n) * 97 + i % 2000 for i in range(20_000)]
            writer.add_file(f"{n}/{number}", to_bytes(ids), changed_ns=(n + 1) * 10**9 + number)
        writer.commit()
    figures = writer.figures()
    assert figures.dropped > 0
    assert figures.bytes < 8 * figures.ids


def test_another_vocabulary_starts_afresh(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path, vocabulary="one")
    writer.add_file("a", A)
    writer.commit()
    assert NgramReader(tmp_path, vocabulary="two").continuations([1, 2], 1) == []
    assert NgramReader(tmp_path, vocabulary="one").continuations([1, 2], 1) == [((3,), 1)]
    assert NgramWriter(tmp_path, vocabulary="two").files() == {}
    assert not list(tmp_path.glob("*.seg"))


def test_what_the_thread_was_given_is_there_at_its_end(tmp_path: Path) -> None:
    grams = Grams(tmp_path, "v", 1 << 24)
    grams.start()
    for name, ids in (("a", A), ("b", B), ("c", A)):
        grams.put(name, FileRow(path=name, size=1, mtime_ns=1, digest=name.encode()), ids)
    grams.put("b", FileRow(path="b", size=1, mtime_ns=2, digest=b"b2"), B)
    grams.put("c")
    grams.close()
    assert NgramWriter(tmp_path / FOLDER, vocabulary="v").files() == {"a": b"a", "b": b"b2"}
    reader = NgramReader(tmp_path / FOLDER, vocabulary="v")
    assert sorted(reader.continuations([0, 3, 4], 2)) == [((5, 6), 1), ((50, 60), 1)]


def test_segments_are_merged_in_quiet_unless_held(tmp_path: Path) -> None:
    writer, rng = NgramWriter(tmp_path / FOLDER, vocabulary="v"), np.random.default_rng(5)
    for name in ("a", "b"):
        writer.add_file(name, rng.integers(0, 5000, 300_000, np.int32).tobytes(), digest=name.encode())
        writer.commit()
    grams = Grams(tmp_path, "v", 1 << 24)
    grams.held = True
    grams.start()
    grams.put("c", FileRow(path="c", size=1, mtime_ns=1, digest=b"c"), A)
    until(lambda: segments(tmp_path) == 3)
    grams.held = False
    until(lambda: segments(tmp_path) == 2)
    grams.close()
    assert NgramWriter(tmp_path / FOLDER, vocabulary="v").files().keys() == {"a", "b", "c"}


def segments(folder: Path) -> int:
    manifest = read_manifest(folder / FOLDER / MANIFEST)
    assert manifest is not None
    return len(manifest.segments)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
