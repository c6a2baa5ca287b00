"""What fits this machine: weights + KV cache + compute buffers + margin against free memory, with the sums.

KV bytes per token = layers · KV heads · (key + value length) · bytes per value      (engine.md, section 8)
compute ≈ 512 rows · 16 · embedding · 4 B  +  64 rows · vocabulary · 4 B              (an estimate)
"""

from __future__ import annotations

import contextlib
import platform
import subprocess
from collections.abc import Iterable
from typing import Literal

import msgspec
import psutil

from daemon.models.entries import Entry

MIB = 1 << 20
MARGIN = 1024 * MIB
"""What stays free, as llama.cpp's own planner does."""
CONTEXTS = (32768, 16384, 8192, 4096)
"""Contexts tried, largest first, in tokens."""
KV_BYTES = {"f16": 2.0, "q8_0": 34 / 32}
"""Bytes per value of the KV cache."""
_USABLE = 8192
_PROBE_S = 5
_ROWS, _WIDTH, _LOGIT_ROWS = 512, 16, 64
KvType = Literal["f16", "q8_0"]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory that a model could use, in bytes."""

    device: str
    kind: Literal["gpu", "unified", "ram"]
    total: int
    free: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One combination on one device. Sizes in bytes."""

    device: str
    main: str
    draft: str | None
    context: int
    kv_type: KvType
    weights: int
    kv: int
    compute: int
    margin: int
    need: int
    free: int
    fits: bool
    verdict: str
    arithmetic: str


def plan(
    memory: Iterable[Memory],
    entries: Iterable[Entry],
    contexts: tuple[int, ...] = CONTEXTS,
    kv_types: tuple[KvType, ...] = ("f16", "q8_0"),
) -> list[Row]:
    """The best combination for each device, main model and draft model.

    The largest context that fits, f16 before q8_0 unless f16 leaves less than 8192 tokens; where nothing
    fits, the smallest one and by how much it is too large.
    """
    known = sorted(entries, key=lambda entry: entry.bytes)
    rows = []
    for device in memory:
        for main in known:
            if main.role == "draft":
                continue
            drafts = [None, *(entry for entry in known if _drafts_for(entry, main))]
            rows += [_best(device, main, draft, contexts, kv_types) for draft in drafts]
    return rows


def need(main: Entry, draft: Entry | None, context: int, kv_type: KvType) -> tuple[int, int, int]:
    """(weights, KV, compute) in bytes of a main model, a draft model and a context in tokens."""
    models = [main, draft] if draft else [main]
    kv = sum(int(kv_per_token(model, kv_type) * context) for model in models)
    return sum(model.bytes for model in models), kv, sum(compute(model) for model in models)


def memory_mb(entry: Entry) -> int:
    """MiB for one model at 8192 tokens (or its own context, if smaller) of f16 context, margin included."""
    return _mib(sum(need(entry, None, min(8192, entry.context), "f16")) + MARGIN)


def kv_per_token(entry: Entry, kv_type: KvType) -> float:
    """Bytes of KV cache for one token."""
    shape = entry.shape
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * KV_BYTES[kv_type]


def compute(entry: Entry) -> int:
    """Estimated bytes of llama.cpp's compute buffers."""
    return _ROWS * _WIDTH * entry.shape.embedding * 4 + _LOGIT_ROWS * entry.shape.vocabulary * 4


def probe() -> list[Memory]:
    """The devices of this machine: GPUs first, then RAM. Takes up to a few seconds where a driver hangs."""
    ram = psutil.virtual_memory()
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        # Metal lends a share of the unified memory: two thirds up to 36 GiB, three quarters above.
        share = int(ram.total * (2 / 3 if ram.total <= 36 << 30 else 3 / 4))
        unified = Memory(device="Metal", kind="unified", total=share, free=min(share, ram.available))
        return [unified]
    return [*_nvidia(), Memory(device="CPU", kind="ram", total=ram.total, free=ram.available)]


def _nvidia() -> list[Memory]:
    command = ["nvidia-smi", "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=True, text=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return []
    return parse_nvidia(done.stdout)


def parse_nvidia(text: str) -> list[Memory]:
    """The answer of nvidia-smi: one line `name, total MiB, free MiB` per GPU; other lines are passed over."""
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            name, total, free = (piece.strip() for piece in line.rsplit(",", 2))
            found.append(Memory(device=name, kind="gpu", total=int(total) * MIB, free=int(free) * MIB))
    return found


def _drafts_for(draft: Entry, main: Entry) -> bool:
    """A draft must share the family, and be four times smaller: otherwise it costs more than it saves."""
    return draft.family == main.family and draft.role != "main" and draft.bytes * 4 <= main.bytes


def _best(
    device: Memory, main: Entry, draft: Entry | None, contexts: tuple[int, ...], kv_types: tuple[KvType, ...]
) -> Row:
    sizes = sorted({min(size, main.context) for size in contexts}, reverse=True)
    pairs = [(size, kv) for size in sizes for kv in kv_types]
    # Quantized keys cost quality: only where f16 leaves less than a usable window is q8_0 preferred to it.
    pairs.sort(key=lambda pair: (pair[1] != "f16" or pair[0] < _USABLE, pair[1] == "f16", -pair[0]))
    rows = [_row(device, main, draft, size, kv) for size, kv in pairs]
    return next((row for row in rows if row.fits), min(rows, key=lambda row: row.need))


def _row(device: Memory, main: Entry, draft: Entry | None, context: int, kv_type: KvType) -> Row:
    weights, kv, buffers = need(main, draft, context, kv_type)
    total = weights + kv + buffers + MARGIN
    over = total - device.free
    return Row(
        device=device.device,
        main=main.name,
        draft=draft.name if draft else None,
        context=context,
        kv_type=kv_type,
        weights=weights,
        kv=kv,
        compute=buffers,
        margin=MARGIN,
        need=total,
        free=device.free,
        fits=over <= 0,
        verdict="fits" if over <= 0 else f"{_mib(over)} MiB too large",
        arithmetic=_arithmetic(main, draft, context, kv_type)
        + f" = {_mib(total)} of {_mib(device.free)} MiB free",
    )


def _arithmetic(main: Entry, draft: Entry | None, context: int, kv_type: KvType) -> str:
    weights, _, buffers = need(main, draft, context, kv_type)
    per_token = sum(kv_per_token(model, kv_type) for model in ([main, draft] if draft else [main]))
    kv = f"KV {context} × {per_token:,.0f} B = {_mib(int(per_token * context))}"
    return f"weights {_mib(weights)} + {kv} + compute {_mib(buffers)} + margin {_mib(MARGIN)}"


def _mib(count: int) -> int:
    return -(-count // MIB)
