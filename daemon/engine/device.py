"""The machine below llama.cpp: its GPUs, and what llama.cpp says while loading."""

from __future__ import annotations

import ctypes
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from llama_cpp import llama_cpp as lib

from daemon.libc import libc

_BUFFER = re.compile(r"(?:compute|output) buffer size\s*=\s*([0-9.]+) MiB")
_REPACKED = re.compile(r"(?:CPU_REPACK|CPU_KLEIDIAI|AMX) model buffer size\s*=\s*([0-9.]+) MiB")
_KV_SIZE = re.compile(r"KV buffer size\s*=\s*([0-9.]+) MiB")
_MIB = 1024 * 1024
_GPU, _INTEGRATED = 1, 2
"""ggml's types of devices."""


def build() -> str:
    """Which llama.cpp this is, and what its kernels were made for."""
    return f"{version('llama-cpp-python')} {lib.llama_print_system_info().decode('utf-8', 'replace')}"


class Gpu(NamedTuple):
    """A device that layers can be put on. `handle` is llama.cpp's."""

    name: str
    handle: int


def gpu_devices() -> list[Gpu]:
    """What this build of llama.cpp can offload to, in its order; empty on a CPU build. Integrated GPUs count
    where there is no other, as in llama.cpp."""
    if not lib.llama_supports_gpu_offload():
        return []
    folder = Path(lib.__file__).parent / "lib"
    found: dict[int, list[Gpu]] = {_GPU: [], _INTEGRATED: []}
    try:
        base = ctypes.CDLL(str(next(folder.glob("*ggml-base.*"))))
        ggml = ctypes.CDLL(str(next(p for p in folder.glob("*ggml.*") if "base" not in p.name)))
    except (OSError, StopIteration):
        return []
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
    base.ggml_backend_dev_description.restype = ctypes.c_char_p
    for i in range(ggml.ggml_backend_dev_count()):
        device = ctypes.c_void_p(ggml.ggml_backend_dev_get(ctypes.c_size_t(i)))
        kind = base.ggml_backend_dev_type(device)
        if kind in found:
            name = base.ggml_backend_dev_description(device) or b"GPU"
            found[kind].append(Gpu(name.decode("utf-8", "replace"), device.value or 0))
    return found[_GPU] or found[_INTEGRATED]


class Spread(NamedTuple):
    """Over which devices a model is spread: handles of Gpu, none for the CPU alone; `shares` per
    device, none for llama.cpp's own; `main` holds what is not spread."""

    devices: tuple[int, ...] = ()
    split: str = "layer"
    shares: tuple[float, ...] = ()
    main: int = 0


NOWHERE = Spread()
"""On the CPU."""


class Log:
    """What llama.cpp says while loading; silent afterwards (no Python runs on its threads)."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._callback = lib.llama_log_callback(self._take)
        lib.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _take(self, _level: int, text: bytes, _data: Any) -> None:
        self.lines.append(text.decode("utf-8", "replace").rstrip())

    def close(self) -> None:
        """Replace the callback by libc's `abs`, which ignores everything without the GIL."""
        lib.llama_log_set(ctypes.cast(libc().abs, lib.llama_log_callback), ctypes.c_void_p(0))

    def sizes(self) -> tuple[int, int]:
        """(compute bytes, KV bytes) as llama.cpp reported them for a context; its logits count as compute."""
        return self._bytes(_BUFFER), self._bytes(_KV_SIZE)

    def repacked(self) -> int:
        """Bytes of weights that it copied into another layout when it loaded a model."""
        return self._bytes(_REPACKED)

    def _bytes(self, named: re.Pattern[str]) -> int:
        return int(sum(float(size) for size in named.findall("\n".join(self.lines))) * _MIB)

    def problem(self) -> str:
        """The last line that names an error, for messages."""
        bad = [line for line in self.lines if "error" in line.lower() or "fail" in line.lower()]
        return bad[-1].strip() if bad else "llama.cpp gave no reason"
