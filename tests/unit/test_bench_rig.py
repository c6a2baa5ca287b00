"""The rig and the commands: memory accounting, a private environment, clear errors, nothing left behind."""

import argparse
import asyncio
import importlib.util
import os
import sys
from pathlib import Path

import psutil
import pytest

from daemon.bench import children, overhead, peer, rig
from daemon.cli import bench
from daemon.errors import BadRequest, EngineFailed, ForetypeError

SMAPS = """\
7f00-7f10 r--s 00000000 08:01 42                         /models/a.gguf
Size:               1000 kB
Rss:                 100 kB
Pss:                  50 kB
7f10-7f20 rw-p 00000000 00:00 0 
Rss:                  10 kB
7f20-7f30 r--s 00001000 08:01 42                         /models/a.gguf
Rss:                  20 kB
7f30-7f40 r--p 00001000 08:01 43                         /models/a.gguf.other
Rss:                   7 kB
"""


def test_resident_pages_of_the_model_are_told_apart() -> None:
    assert overhead.resident_of(SMAPS.splitlines(), "/models/a.gguf") == 120 * 1024
    assert overhead.resident_of(SMAPS.splitlines(), "/models/b.gguf") == 0


async def test_idle_share_is_measured_on_real_processes() -> None:
    family = overhead.processes(os.getpid())
    assert psutil.Process() in family
    assert overhead.cpu_seconds(family) > 0
    assert await overhead.idle_percent(os.getpid(), 0.05) >= 0


def test_the_private_daemon_has_its_own_home_and_the_users_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORETYPE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = rig.environment(tmp_path / "home")
    assert made["FORETYPE_HOME"] == str(tmp_path / "home")
    assert made["FORETYPE_MODELS"] == str(tmp_path / "models")
    assert not {"HTTPS_PROXY", "PYTHONPATH"} & set(made)
    assert made["PATH"] == os.environ["PATH"]


async def test_a_child_that_ignores_everything_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "PATIENCE_S", 0.2)
    deaf = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True)\n"
        "while 1: signal.pause()"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", deaf, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    assert (await child.stdout.readline()).strip() == b"on"
    await children.ended(child)
    assert child.returncode is not None
    assert not psutil.pid_exists(child.pid)


SHAPE = peer.Shape("/models/a.gguf", 2, 4096, True, "f16", False)


async def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadRequest, match="pip install xllamacpp"):
        async with peer.running("xllamacpp", SHAPE):
            pass


async def test_a_url_without_a_server_is_an_error() -> None:
    with pytest.raises(EngineFailed, match="no llama-server answers"):
        async with peer.running(f"http://127.0.0.1:{rig.free_port()}", SHAPE):
            pass


def parsed(*words: str) -> argparse.Namespace:
    top = argparse.ArgumentParser()
    bench.register(top.add_subparsers())
    return top.parse_args(["bench", *words])


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (["typing"], 300),
        (["exactness"], 300),
        (["cancel"], 40),
        (["coalesce"], 300),
        (["overhead"], 200),
        (["quality", "--tasks", "x"], 150),
        (["quality", "--root", "x"], 150),
    ],
)
def test_every_measurement_has_the_common_flags(words: list[str], limit: int) -> None:
    found = parsed(*words)
    assert (found.limit, found.json, found.model) == (limit, False, None)
    found = parsed(*words, "--limit", "3", "--json", "--model", "m.gguf", "--seed", "9")
    assert (found.limit, found.json, found.model, found.seed) == (3, True, "m.gguf", 9)
    assert callable(found.run)


@pytest.mark.parametrize(
    "words",
    [
        ["typing", "--limit", "0"],
        ["typing", "--start", "-1"],
        ["typing", "--context", "--realtime"],
        ["load", "--streams", "0"],
        ["load", "--streams", "50,"],
        ["load", "--limit", "3"],
        ["quality"],
        [],
    ],
)
def test_impossible_words_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["typing", "--trace", "missing.json.gz"],
        ["typing", "--realtime"],
        ["typing", "--context"],
        ["typing", "--root", "x"],
        ["typing", "--context", "--peer", "xllamacpp"],
        ["exactness", "--trace", "missing.json.gz"],
        ["quality", "--tasks", "missing.jsonl.gz"],
        ["quality", "--tasks", "x", "--variants", "sideways"],
        ["quality", "--tasks", "x", "--variants", "ring"],
        ["quality", "--root", "x", "--variants", "anchored"],
        ["quality", "--root", "missing"],
        ["load", "--root", "missing"],
    ],
)
def test_what_is_missing_is_said_before_anything_starts(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = parsed(*words)
    with pytest.raises(ForetypeError):
        found.run(found)
