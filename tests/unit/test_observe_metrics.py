"""Counters and latencies: exact, bounded, plain data."""

import time

import msgspec
import pytest

from daemon.nouns import Completion, Counters, Range, Timings
from daemon.observe.callers import KEPT, Callers, product
from daemon.observe.metrics import LABELS, SAMPLES, Metrics, quantile


def test_counts_by_name_and_label() -> None:
    metrics = Metrics()
    metrics.count("refused", "host")
    metrics.count("refused", "host", 2)
    metrics.count("starts")
    assert metrics.total("refused", "host") == 3
    assert metrics.total("refused") == 3
    assert metrics.total("nothing") == 0
    assert metrics.snapshot()["counters"] == {"refused": {"host": 3}, "starts": {"all": 1}}


def test_labels_and_samples_are_bounded() -> None:
    metrics = Metrics()
    for number in range(LABELS * 3):
        metrics.count("clients", str(number))
    for number in range(SAMPLES * 3):
        metrics.observe("door", number)
    snapshot = metrics.snapshot()
    assert len(snapshot["counters"]["clients"]) == LABELS + 1
    assert snapshot["counters"]["clients"]["other"] == LABELS * 2
    assert snapshot["latency_ms"]["door"]["count"] == SAMPLES
    assert snapshot["latency_ms"]["door"]["p50"] >= SAMPLES * 2


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.9, 90), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_quantile_is_the_nearest_rank(share: float, value: float) -> None:
    assert quantile([float(n) for n in range(1, 101)], share) == value
    assert quantile([7.0], share) == 7.0


def test_an_answer_is_counted_with_its_tokens_and_times() -> None:
    metrics = Metrics()
    done = Completion(
        id="1",
        text="x",
        replace=Range(start=0, end=0),
        stop="line",
        counters=Counters(prompt=10, reused=7, evaluated=3, generated=2),
        timings=Timings(first=4.0, total=9.0),
    )
    metrics.answered("native", done, 10.5)
    snapshot = metrics.snapshot()
    assert snapshot["counters"]["answers"] == {"line": 1}
    assert snapshot["counters"]["tokens"] == {"evaluated": 3, "generated": 2, "prompt": 10, "reused": 7}
    assert snapshot["latency_ms"]["door"]["p50"] == 1.5
    assert snapshot["latency_ms"]["answer_native"]["p99"] == 10.5
    assert msgspec.json.decode(msgspec.json.encode(snapshot)) == snapshot


def test_callers_are_known_by_door_and_program_and_bounded() -> None:
    callers = Callers()
    first = callers.arrived("infill", "me", "curl/8.5.0")
    callers.arrived("infill", "you", "curl/7.1").served(text=True)
    first.lost("overloaded")
    callers.arrived("native", "lsp:Zed: beta:77", "foretype").lost("x")
    callers.arrived("native", "z", "Zed (linux)").served(text=False)
    for number in range(3 * KEPT):
        callers.arrived("infill", "", f"made-up-{number}")
    facts = {(one["door"], one["agent"]): one for one in callers.facts()}
    assert len(facts) == KEPT + 1
    assert facts["other", ""]["requests"] == 2 * KEPT + 3
    assert facts["lsp", "Zed: beta"]["failed"] == 1
    curl = facts["infill", "curl"]
    assert (curl["requests"], curl["answered"], curl["shown"], curl["failed"]) == (2, 1, 1, 1)
    assert curl["last_failure"] == "overloaded"
    assert 0 < curl["last_request"] <= curl["last_answer"] <= time.time()
    assert facts["native", "Zed"]["shown"] == 0
    assert product("") == ""
