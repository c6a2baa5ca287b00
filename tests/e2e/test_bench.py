"""The measurements from the command line, with real processes and the tiny model."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from support import masked, tiny


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-m", "daemon.cli.main", "bench", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def measured(*words: str) -> dict[str, Any]:
    done = bench(*words, "--json", "--seed", "3")
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    assert outcome["model"]["architecture"]
    assert outcome["profile"]["threads"] >= 1
    assert outcome["machine"]["threads"] >= 1
    assert outcome["seed"] == 3
    assert all(isinstance(value, float | int) for value in outcome["figures"].values())
    return outcome


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A line typed at the end of a document, 20 ms per character."""
    start = "".join(f"def function_{n}(value):\n    return value + {n}\n\n\n" for n in range(12))
    text = "def last(value):\n    return value"
    txns = [
        {"time": f"2024-01-01T00:00:00.{20 * n:03}Z", "patches": [[len(start) + n, 0, character]]}
        for n, character in enumerate(text)
    ]
    path = tmp_path_factory.mktemp("traces") / "typed.json.gz"
    data = {"startContent": start, "endContent": start + text, "txns": txns}
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    return path


def test_typing(tiny_model: Path, trace: Path) -> None:
    words = ("typing", "--model", str(tiny_model), "--trace", str(trace), "--start", "3")
    figures = measured(*words, "--limit", "12")["figures"]
    assert figures["keystrokes"] == 12
    assert figures["evaluated_p50"] <= 4
    assert figures["reused_share"] > 0.5
    assert figures["full_reevaluations"] == 0
    assert figures["failed"] == 0
    figures = measured(*words, "--limit", "10", "--realtime")["figures"]
    assert figures["edits"] == 10
    assert 0 <= figures["answered_before_next"] <= 1
    assert figures["failed"] == 0


def test_typing_with_context(tiny_model: Path, trace: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "shop.py").write_text("class Order:\n    def total(self) -> int:\n        return 1\n")
    named = tmp_path / "typed.py.json.gz"
    edits = json.loads(gzip.decompress(trace.read_bytes()))
    lines = "from shop import Order\n\n\n"
    for edit in edits["txns"]:
        edit["patches"][0][0] += len(lines)
    edits |= {"startContent": lines + edits["startContent"], "endContent": lines + edits["endContent"]}
    named.write_bytes(gzip.compress(json.dumps(edits).encode()))
    words = ("typing", "--context", "--root", str(root), "--model", str(tiny_model), "--trace", str(named))
    figures = measured(*words, "--start", "0", "--limit", "14")["figures"]
    assert figures["with_context_share"] == 1
    assert figures["stable_tokens_p50"] > 10
    assert figures["epochs"] == 1
    assert figures["edits_per_epoch"] == 14
    assert figures["opening_ms"] > 0
    assert figures["idle_ms"] >= 0
    assert figures["stable_reevaluated"] == 0
    assert (figures["audited"], figures["audit_wrong"]) == (14, 0)
    assert figures["evaluated_p50"] <= 4


def test_recorded_clients(tiny_model: Path) -> None:
    wire = Path(__file__).resolve().parent.parent / "data" / "wire"
    sessions = [word for path in sorted(wire.glob("*.jsonl")) for word in ("--session", str(path))]
    figures = measured("wire", "--model", str(tiny_model), *sessions)["figures"]
    assert (figures["requests"], figures["answered"], figures["invalid"]) == (54, 54, 0)
    assert (figures["requests_infill"], figures["requests_tabby"]) == (51, 1)
    assert figures["ms_p50_infill"] > 0


def test_exactness(tiny_model: Path, trace: Path) -> None:
    words = ("exactness", "--model", str(tiny_model), "--trace", str(trace), "--start", "0", "--limit", "8")
    figures = measured(*words)["figures"]
    assert figures["compared"] == 16
    assert (figures["unequal"], figures["shift_max"]) == (0, 0)
    assert figures["fresh_reused"] == 0


def test_cancel_and_overhead(tiny_model: Path) -> None:
    figures = measured("cancel", "--model", str(tiny_model), "--limit", "8")["figures"]
    assert figures["after_slice"] == 0
    assert figures["idle_slices_p95"] <= 1
    assert figures["evaluated_in_silence"] == 0
    figures = measured("overhead", "--model", str(tiny_model), "--limit", "10", "--idle", "1")["figures"]
    assert {"door_ms_p50", "idle_cpu_percent", "rss_beyond_mb"} <= set(figures)
    assert 0 < figures["engine_share_8"] < 1
    assert 0 < figures["engine_share_1"] < 1
    assert figures["door_ms_p50"] > 0
    assert figures["processes"] >= 2


def test_paging(tmp_path: Path) -> None:
    model = tiny.write(tmp_path / "slower.gguf", width=192, layers=6)
    figures = measured("paging", "--model", str(model), "--limit", "5", "--tokens", "400")["figures"]
    assert figures["files_reused_after_restart"] == 5
    assert figures["pagein_ratio"] > 1
    assert figures["ceiling_breaches"] == 0 < figures["looks"]
    assert figures["damaged"] >= 1
    assert (figures["wrong_after_damage"], figures["wrong_after_paging"]) == (0, 0)


def test_batch(tiny_model: Path) -> None:
    words = ("batch", "--model", str(tiny_model), "--limit", "3", "--minutes", "0.05", "--knobs")
    figures = measured(*words)["figures"]
    assert figures["rate_ratio_8"] > 0.5
    assert figures["tokens_together"] > 0
    assert figures["keystroke_p99_ratio"] > 0
    assert figures["mixed_requests"] > 5
    assert figures["mixed_for_ever"] == 0
    assert figures["rate_concurrency_1"] > 0


def test_shared_runs(tiny_model: Path) -> None:
    figures = measured("coalesce", "--model", str(tiny_model), "--limit", "12")["figures"]
    assert figures["requests"] == figures["runs_alone"] == 12
    assert figures["joined_awaited_alone"] == figures["joined_said_alone"] == 0
    saved = figures["joined_awaited_shared"] + figures["joined_said_shared"] - figures["parted_shared"]
    assert 0 < figures["runs_shared"] <= 12 - saved
    assert figures["misfits_shared"] == figures["misfits_known"] == 0
    assert figures["answered_shared"] + figures["overtaken_shared"] == 12
    assert 0 < figures["runs_known"] <= 12 - figures["known_known"]


def test_load(tiny_model: Path) -> None:
    figures = measured("load", "--model", str(tiny_model), "--streams", "8", "--seconds", "1")["figures"]
    endings = ("answered", "cancelled", "waiting", "refused", "failed")
    for side in ("8", "naive_8"):
        assert figures[f"asked_{side}"] == sum(figures[f"{ending}_{side}"] for ending in endings) >= 8
        assert figures[f"failed_{side}"] == figures[f"refused_{side}"] == 0
        assert figures[f"kv_mb_{side}"] > 0
    assert figures["asked_8"] == figures["asked_naive_8"], "the same edits"
    assert 0 <= figures["streams_naive"] <= 8


def test_quality_for_people(tiny_model: Path, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    row = {"task_id": "t/0", "prompt": "def f():\n", "suffix": "", "canonical_solution": "    return 1\n"}
    tasks.write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = bench("quality", "--model", str(tiny_model), "--tasks", str(tasks), "--fresh")
    assert done.returncode == 0, done.stderr
    assert "cursor_split" in done.stdout
    assert "anchored_12" in done.stdout


def test_quality_of_a_masked_repository_goes_on_where_it_stopped(tiny_model: Path, tmp_path: Path) -> None:
    root = masked.write(tmp_path / "shapes")
    words = ("quality", "--root", str(root), "--n", "3", "--model", str(tiny_model), "--commit", "r1")
    first = measured(*words, "--variants", "none,fulltext")
    figures = first["figures"]
    assert (figures["n"], figures["resumed"]) == (3, 0)
    assert 0 <= figures["em_none"] <= figures["em_high_none"] <= 1
    assert figures["tokens_fulltext"] > figures["tokens_none"] > 0
    assert any("shapes at r1" in note for note in first["notes"])
    again = measured(*words, "--variants", "none,fulltext")["figures"]
    assert again == figures | {"resumed": 6}
    assert masked.user(0) == (root / "one.py").read_text(encoding="utf-8"), "the original is left alone"


def test_a_model_that_is_missing_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process(os.getpid()).children(recursive=True)}
    done = bench("cancel", "--model", str(tmp_path / "none.gguf"))
    assert done.returncode != 0
    assert "error:" in done.stderr
    assert {child.pid for child in psutil.Process(os.getpid()).children(recursive=True)} == before


def test_draft(tiny_model: Path, trace: Path, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    rows = [
        {
            "task_id": str(n),
            "prompt": f"def f{n}(items):\n    total = {n}\n    total",
            "suffix": "\n    return total\n",
            "canonical_solution": " = 1",
        }
        for n in range(3)
    ]
    tasks.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    words = (
        "draft",
        "--model",
        str(tiny_model),
        "--draft-model",
        str(tiny_model),
        "--tasks",
        str(tasks),
        "--limit",
        "3",
    )
    figures = measured(*words, "--trace", str(trace), "--pairs", "6", "--width", "4")["figures"]
    assert (figures["pairs"], figures["unequal"]) == (6, 0)
    assert figures["tokens_per_step"] > 0
    assert figures["speed_min"] > 0


def test_typing_with_recall(tiny_model: Path, trace: Path) -> None:
    words = ("typing", "--recall", "--model", str(tiny_model), "--trace", str(trace))
    figures = measured(*words, "--start", "0", "--limit", "16")["figures"]
    assert figures["keystrokes"] == 16
    assert figures["failed"] == 0
    assert 0 <= figures["model_free_share"] <= 1
    assert figures["compared"] == sum(figures[f"hits_{level}"] for level in ("typed", "exact", "prefetched"))
    assert figures["prefetch_ready_share"] > 0.5
    assert figures["prefetch_generated"] == figures["prefetch_used"] + figures["prefetch_wasted"]


def test_polish(tiny_model: Path, tmp_path: Path) -> None:
    root = masked.write(tmp_path / "shapes")
    words = ("polish", "--root", str(root), "--n", "14", "--model", str(tiny_model))
    outcome = measured(*words)
    figures = outcome["figures"]
    assert figures["n"] == 14
    assert figures["duplicated"] == figures["unbalanced"] == figures["restyled"] == 0, outcome["notes"]
    assert 0 <= figures["blank"] <= 14
    assert figures["languages"] == 1


def test_flood(tiny_model: Path) -> None:
    figures = measured("flood", "--model", str(tiny_model), "--minutes", "0.05")["figures"]
    ends = ("refused", "superseded", "answered", "waiting", "failed")
    assert sum(figures[f"flood_{end}"] for end in ends) == 600
    assert figures["typist_keys_beside"] >= 1
    assert figures["typist_refused"] == figures["flood_failed"] == 0
    assert figures["typist_p99_ratio"] > 0
