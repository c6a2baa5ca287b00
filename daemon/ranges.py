"""The numbers that settings may have, and which of two limits holds."""

from __future__ import annotations

RANGES: dict[str, tuple[float, float]] = {
    "server.port": (0, 65535),
    "server.max_body_mb": (1, 64),
    "server.max_concurrent": (1, 4096),
    "server.high_mark": (1, 100),
    "server.low_mark": (0, 99),
    "server.client_per_s": (0, 100_000),
    "server.read_s": (0.1, 3600.0),
    "engine.context": (512, 1_048_576),
    "engine.threads": (0, 512),
    "engine.main_gpu": (0, 63),
    "engine.slice": (0, 2048),
    "engine.tick_ms": (0, 10_000),
    "engine.max_delay_ms": (0, 1000),
    "engine.max_batch": (16, 2048),
    "engine.concurrency": (1, 32),
    "engine.page_mb": (0, 1_048_576),
    "engine.disk_mb": (0, 1_048_576),
    "context.anchor_lines": (0, 100),
    "context.suffix_tokens": (0, 65536),
    "context.prefix_tokens": (16, 65536),
    "context.middle_tokens": (16, 65536),
    "context.extra_tokens": (0, 1_048_576),
    "context.window_simple": (256, 1_048_576),
    "context.window_medium": (256, 1_048_576),
    "context.window_complex": (256, 1_048_576),
    "context.output_simple": (1, 4096),
    "context.output_medium": (1, 4096),
    "context.output_complex": (1, 4096),
    "context.stable_tokens": (0, 1_048_576),
    "context.stable_ms": (0, 600_000),
    "context.best": (1, 100),
    "complete.max_tokens": (1, 4096),
    "complete.time_ms": (1, 600_000),
    "complete.coalesce_ms": (0, 10_000),
    "complete.debounce_ms": (0, 150),
    "recall.mb": (1, 1024),
    "power.window_percent": (10, 100),
    "power.unload_minutes": (0, 527_040),
    "index.workers": (0, 64),
    "index.max_file_kb": (1, 65_536),
    "index.max_line": (100, 1 << 30),
    "index.max_files": (1, 10_000_000),
    "index.budget_ms": (10, 600_000),
    "index.ngram_mb": (0, 4096),
    "index.busy_share": (0.01, 64.0),
    "ledger.rows": (1, 1_000_000),
    "ledger.keep_text_minutes": (-1, 527_040),
    "ledger.answers": (0, 1_000_000),
    "ledger.shown_ms": (0, 60_000),
    "index.poll_s": (0.1, 86_400.0),
}
"""Key → (lowest, highest) value."""


def least(limit: int, other: int | None) -> int:
    """The lower of a limit and one that may not be there."""
    return limit if other is None else min(limit, other)
