"""Damaged, lost and half-written files of n-grams cost only what is damaged."""

import os
import random
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest
from support import ngram_oracle as oracle
from support.ngram_oracle import ALL, A, B, found

from indexer.ngrams import NgramReader, NgramWriter
from indexer.tokens import to_bytes


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
