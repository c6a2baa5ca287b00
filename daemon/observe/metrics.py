"""Counters by name and label, and bounded samples of latencies. Pure, fast, and free of source text."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from daemon.nouns import Completion, Counters, Prompt
from daemon.observe.callers import Callers

SAMPLES = 512
"""Newest latencies kept per name."""
LABELS = 64
"""Labels kept per counter; whatever comes later is counted as `other`, so that no client can grow this."""


class Metrics:
    """What happened since start. Used from one thread: the daemon's loop."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[str, int]] = {}
        self._latencies: dict[str, deque[float]] = {}
        self.callers = Callers()

    def count(self, name: str, label: str = "", by: int = 1) -> None:
        """Add `by` to counter `name` under `label`."""
        labels = self._counters.setdefault(name, {})
        if label not in labels and len(labels) >= LABELS:
            label = "other"
        labels[label] = labels.get(label, 0) + by

    def observe(self, name: str, milliseconds: float) -> None:
        """Keep one latency of `name`; the oldest of SAMPLES is dropped."""
        if name not in self._latencies:
            self._latencies[name] = deque(maxlen=SAMPLES)
        self._latencies[name].append(milliseconds)

    def total(self, name: str, label: str | None = None) -> int:
        """Counter `name` under `label`, or the sum of all labels."""
        labels = self._counters.get(name, {})
        return sum(labels.values()) if label is None else labels.get(label, 0)

    def answered(self, door: str, completion: Completion, milliseconds: float) -> None:
        """Count one answer of `door` that took `milliseconds` from request to reply."""
        self.count("answers", completion.stop)
        work = completion.counters
        self.worked(work)
        self.observe(f"answer_{door}", milliseconds)
        if work.generated:
            self.observe("first_token", completion.timings.first)
            self.observe("door", max(0.0, milliseconds - completion.timings.total))

    def planned(self, prompt: Prompt) -> None:
        """Count a prompt that is evaluated for an answer."""
        self.count("anchor", prompt.reason.split(",")[0])
        for kind in prompt.redacted:
            self.count("redacted", kind)

    def worked(self, work: Counters) -> None:
        """Count what the engine did."""
        for name, tokens in (
            ("prompt", work.prompt),
            ("reused", work.reused),
            ("evaluated", work.evaluated),
            ("generated", work.generated),
        ):
            self.count("tokens", name, tokens)

    def snapshot(self) -> dict[str, Any]:
        """`counters`: name → label → count (no label: `all`); `latency_ms`: name → count, p50, p90, p99;
        `callers`: see observe/callers.py."""
        return {
            "counters": {
                name: {label or "all": value for label, value in sorted(labels.items())}
                for name, labels in sorted(self._counters.items())
            },
            "latency_ms": {name: _summary(values) for name, values in sorted(self._latencies.items())},
            "callers": self.callers.facts(),
        }


def quantile(ordered: list[float], share: float) -> float:
    """The value below which `share` of `ordered` (ascending, not empty) lies, by nearest rank."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _summary(values: deque[float]) -> dict[str, float]:
    ordered = sorted(values)
    marks = {f"p{round(share * 100)}": round(quantile(ordered, share), 3) for share in (0.5, 0.9, 0.99)}
    return {"count": len(ordered), **marks}
