"""The daemon with a real engine child and the tiny model: arrival, death, and the end of both."""

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest
from support.living import Home, alive, home, until

from daemon.doors import client
from daemon.engine.child import computing
from daemon.errors import ForetypeError

__all__ = ["home"]


@pytest.fixture
def ready(home: Home, tiny_model: Path) -> Home:
    home.up("--model", str(tiny_model))
    until(lambda: home.status()["model"]["phase"] == "ready", 30)
    return home


def test_status_tells_everything(ready: Home) -> None:
    body = ready.status()
    assert body["model"]["name"] == "tiny"
    assert body["device"]["backend"]
    assert body["device"]["why"]
    assert body["profile"]["prefill"]
    assert body["profile"]["verify"]
    assert body["memory"]["engine_rss_bytes"] > body["memory"]["kv_bytes"] > 0
    assert body["children"] == [{**body["children"][0], "name": "engine", "phase": "ready", "restarts": 0}]
    told = ready.run("status").stdout
    assert body["lines"] == {
        "lines": "auto",
        "languages": {},
        "paths": [],
        "comments": False,
        "strings": False,
    }
    assert body["pacing"] == {"waits": 0, "waited_ms": 0.0, "spared": 0, "clients": {}}
    assert 3500 < body["power"]["unload_in_s"] <= 3600
    assert body["power"]["why"]
    for word in ("device", "profile", "memory", "reuse", "children", "lines", "pacing", "power"):
        assert f"\n{word} " in told


def test_complete_prints_ghost_text_and_counters(ready: Home) -> None:
    (ready.folder / "a.py").write_bytes("# é\r\ndef total(order):\r\n    return \r\n".encode())
    done = ready.run("complete", "a.py:3:12", "--json", "--lines", "free", "--max-tokens", "8")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    counters = answer["counters"]
    assert counters["prompt"] == counters["reused"] + counters["evaluated"] > 0
    assert sum(segment["tokens"] for segment in answer["segments"]) == counters["prompt"]
    assert answer["replace"]["start"] == len("# é\r\ndef total(order):\r\n    return ")
    shown = ready.run("complete", "a.py:3", "--max-tokens", "8")
    assert shown.returncode == 0, shown.stderr
    assert "stop: " in shown.stdout


def test_the_engines_threads_do_not_spin_for_long(ready: Home) -> None:
    engine = psutil.Process(ready.status()["children"][0]["pid"])
    wanted = computing(os.environ)  # without it where OMP_WAIT_POLICY is set outside
    assert engine.environ().get("GOMP_SPINCOUNT") == wanted.get("GOMP_SPINCOUNT")


@pytest.mark.parametrize("named", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"])
def test_how_threads_wait_may_be_said_outside(named: str) -> None:
    assert computing({named: "7", "A": "b"}) == {named: "7", "A": "b"}


def test_a_killed_engine_is_explained_and_comes_back(ready: Home) -> None:
    pid = ready.status()["children"][0]["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: ready.status()["children"][0]["restarts"] == 1)
    until(lambda: ready.status()["model"]["phase"] == "ready", 30)
    child = ready.status()["children"][0]
    assert child["pid"] != pid
    assert "SIGKILL" in child["last_failure"]
    assert any("started again" in line for line in ready.status()["degradations"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_engine_dies_with_the_daemon(ready: Home, number: signal.Signals) -> None:
    body = ready.status()
    engine = body["children"][0]["pid"]
    os.kill(body["pid"], number)
    until(lambda: not alive(body["pid"]), 2.5)
    until(lambda: not alive(engine), 5)


def test_a_model_that_arrives_later_is_loaded(home: Home, tiny_model: Path) -> None:
    late = home.folder / "late.gguf"
    home.up("--model", str(late))
    until(lambda: home.status()["model"]["phase"] == "failed")
    assert "no model file" in home.status()["model"]["detail"]
    shutil.copy(tiny_model, home.folder / "part")
    (home.folder / "part").rename(late)
    until(lambda: home.status()["model"]["phase"] == "ready", 30)
    assert home.status()["model"]["name"] == "late"


def test_up_says_what_the_running_daemon_does_not_do(ready: Home) -> None:
    done = ready.run("up", "--port", "1", "--model", "other.gguf")
    assert done.returncode == 0
    assert "already running" in done.stdout
    assert f"foretype restart --port 1 --model {ready.folder / 'other.gguf'}" in done.stderr


def test_running_streams_are_told_when_the_daemon_ends(ready: Home) -> None:
    """Three clients that ask without pause: each gets a last word, and it is over in two seconds."""
    at = client.Address(ready.socket)
    ask = {"prefix": "order = ", "lines": "free", "max_tokens": 3000, "time_ms": 60_000, "temperature": 1.0}
    last_words: dict[str, str] = {}
    begun = [threading.Event() for _ in range(3)]

    def read(name: str, event: threading.Event) -> None:
        for seed in range(10_000):
            try:
                for piece in client.stream("/v1/complete", {**ask, "client": name, "seed": seed}, at=at):
                    event.set()
                    last_words[name] = str(piece.get("stop", "none"))
            except ForetypeError as error:
                last_words[name] = error.code
                return
            if last_words[name] == "cancelled":
                return

    pid = ready.status()["pid"]
    readers = [threading.Thread(target=read, args=pair) for pair in zip("abc", begun, strict=True)]
    for reader in readers:
        reader.start()
    assert all(event.wait(20) for event in begun)
    began = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    until(lambda: not alive(pid), 5)
    assert time.monotonic() - began < 2
    for reader in readers:
        reader.join(5)
        assert not reader.is_alive()
    assert set(last_words.values()) <= {"cancelled", "unavailable", "not_running"}
    assert "cancelled" in last_words.values()


@pytest.mark.parametrize("named", ["nobody-has-it", "tiny"])
def test_a_draft_model_serves_or_is_missed_in_words(home: Home, tiny_model: Path, named: str) -> None:
    settings = home.folder / "config/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    draft = str(tiny_model) if named == "tiny" else named
    text = f"[engine]\nroute_simple = true\nmain_gpu = 1\ndraft_model = {json.dumps(draft)}\n"
    settings.write_text(text, encoding="utf-8")
    home.up("--model", str(tiny_model))
    until(lambda: home.status()["model"]["phase"] == "ready", 30)
    (home.folder / "a.py").write_text("order = price\norder = ", encoding="utf-8")
    done = home.run("complete", "a.py:2:9", "--json", "--lines", "free", "--max-tokens", "8")
    assert json.loads(done.stdout)["counters"]["generated"] > 0
    body = home.status()
    model = next(source for source in body["drafts"] if source["name"] == "model")
    missed = [line for line in body["degradations"] if "draft model" in line]
    assert model["ready"] == (not missed) == (named == "tiny")
    assert all(named in line for line in missed)
    unrouted = [line for line in body["degradations"] if "engine.route_simple has no effect: " in line]
    assert bool(unrouted) == (named != "tiny")
    if body["device"]["backend"] == "CPU":
        assert any("engine.main_gpu has no effect: " in line for line in body["degradations"])
    assert bool(body["device"]["draft_device"]) == (named == "tiny")
    told = home.run("status").stdout
    assert "threads measured: " in told
    assert ("draft CPU" in told or "draft GPU" in told) == (named == "tiny")


def test_a_model_that_nobody_uses_leaves_memory_and_comes_back(home: Home, tiny_model: Path) -> None:
    config = home.folder / "config/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[power]\nunload_minutes = 0.001\n")
    home.up("--model", str(tiny_model))
    until(lambda: home.status()["model"]["phase"] == "unloaded", 40)
    body = home.status()
    assert body["model"]["detail"].startswith("idle: nothing was asked for")
    assert body["children"] == []
    assert "unloaded (idle: nothing was asked for" in home.run("status").stdout
    (home.folder / "a.py").write_text("x = \n")
    done = home.run("complete", "a.py:1", "--json", "--max-tokens", "4")
    assert done.returncode == 0, done.stderr
    assert home.status()["power"]["battery"] in (True, False)
