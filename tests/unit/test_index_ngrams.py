"""The n-grams of the indexed files: found as by looking through everything, whatever happens to the files."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from support import ngram_oracle as oracle

from indexer.grams import FOLDER, Grams
from indexer.ngram_order import RUN, by_context
from indexer.ngram_parts import MANIFEST
from indexer.ngram_segments import read_manifest
from indexer.ngrams import Match, NgramReader, NgramWriter
from indexer.records import FileRow
from indexer.tokens import to_bytes

ALL = 1_000_000
A = to_bytes([1, 2, 3, 4, 5, 6, 7, 8])
B = to_bytes([9, 2, 3, 4, 50, 60])


def found(folder: Path, *ids: int, k: int = 4) -> list[tuple[tuple[int, ...], int]]:
    return NgramReader(folder).continuations(list(ids), k)


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


def damage(path: Path, kind: str, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if kind == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "zero":
        at = rng.randrange(len(data))
        data[at : at + 4096] = bytes(len(data[at : at + 4096]))
        data[0] ^= 0 if any(path.read_bytes()[at : at + 4096]) else 1
    elif kind == "cut":
        del data[rng.randrange(len(data)) :]
    elif kind == "foreign":
        data = bytearray(rng.randbytes(len(data)))
    path.unlink()
    if kind != "gone":
        path.write_bytes(data)


@pytest.mark.parametrize("kind", ["flip", "zero", "cut", "foreign", "gone"])
@pytest.mark.parametrize("victim", ["manifest", "*.seg"])
def test_damage_costs_only_what_is_damaged(tmp_path: Path, kind: str, victim: str) -> None:
    for seed in range(4):
        rng, folder = random.Random(seed), tmp_path / str(seed)
        files = {str(n): [rng.randrange(50) for _ in range(9_000)] for n in range(8)}
        writer = NgramWriter(folder)
        for path, ids in files.items():
            writer.add_file(path, to_bytes(ids))
            if path == "5":
                writer.commit()
        writer.commit()
        damage(rng.choice(list(folder.glob(victim))), kind, rng)
        reader = NgramReader(folder)
        for query in oracle.queries(files, rng, 200):
            reader.continuations(query, 8)
        again = NgramWriter(folder)
        left = again.files()
        assert len(left) < len(files)
        for path, ids in files.items():
            if path not in left:
                again.add_file(path, to_bytes(ids))
        again.commit()
        reader = NgramReader(folder, sample=ALL)
        for query in oracle.queries(files, rng, 3):
            oracle.check(reader.match(query, 4, 2), files, query, 4, 2)


def test_a_segment_lost_while_the_writer_runs(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path)
    writer.add_file("a", A)
    writer.commit()
    next(tmp_path.glob("*.seg")).unlink()
    assert writer.commit()
    assert writer.files() == {}
    writer.add_file("a", A)
    writer.commit()
    segment = next(tmp_path.glob("*.seg"))
    damage(segment, "cut", random.Random(1))
    writer.add_file("b", B)
    writer.commit()
    assert writer.files().keys() == {"b"}
    assert found(tmp_path, 3, 4) == [((50, 60), 1)]


def test_a_failed_commit_can_be_repeated(tmp_path: Path) -> None:
    script = """
import resource, signal, sys
from pathlib import Path
from indexer.ngrams import NgramReader, NgramWriter
from indexer.tokens import to_bytes
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = Path(sys.argv[1])
writer = NgramWriter(folder)
writer.add_file("a", to_bytes([1, 2, 3]))
writer.commit()
writer.remove_file("a")
writer.add_file("b", to_bytes([4, 5, 6] * 10000))
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, limit[1]))
for _ in range(2):
    try:
        writer.commit()
        raise SystemExit("no error")
    except OSError:
        assert NgramReader(folder).continuations([1, 2], 1) == [((3,), 1)]
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
assert writer.commit()
reader = NgramReader(folder)
assert reader.continuations([1, 2], 1) == []
assert reader.continuations([4, 5], 1) [0][0] == (6,)
assert not list(folder.glob("*.part"))
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)


WORKER = """
import sys
from pathlib import Path
from support import ngram_oracle as oracle
from indexer.ngrams import NgramWriter
writer = NgramWriter(Path(sys.argv[1]))
for step, changes in enumerate(oracle.history(11), 1):
    oracle.apply(writer, changes)
    writer.add_file("step", b"", digest=str(step).encode())
    writer.commit()
    print(step, flush=True)
    while writer.compact():
        pass
"""


def test_killed_while_committing(tmp_path: Path) -> None:
    """Ten times: the state is that of the last commit that was reported, or of the one after it."""
    rng = random.Random(2)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(("tests", "."))}
    for round_ in range(10):
        folder = tmp_path / str(round_)
        command = [sys.executable, "-c", WORKER, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as worker:
            assert worker.stdout is not None
            for _ in range(rng.randrange(3, 30)):
                assert worker.stdout.readline()
            until = time.perf_counter() + rng.random() * 0.02
            while time.perf_counter() < until:
                pass
            worker.send_signal(signal.SIGKILL)
            reported = worker.stdout.read().split()
        writer = NgramWriter(folder)
        assert not list(folder.glob("*.part"))
        step = int(writer.files()["step"])
        assert not reported or step - int(reported[-1]) in (0, 1)
        files: dict[str, list[int]] = {}
        for changes in islice(oracle.history(11), step):
            oracle.merge(files, changes)
        assert writer.files().keys() == files.keys() | {"step"}
        reader = NgramReader(folder, sample=ALL)
        for query in oracle.queries(files, rng, 20):
            oracle.check(reader.match(query, 4, 2), files, query, 4, 2)


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
