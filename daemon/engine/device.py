"""The machine below llama.cpp: its GPUs, and memory that libc keeps."""

from __future__ import annotations

import ctypes
import os
from importlib.metadata import version
from pathlib import Path

from llama_cpp import llama_cpp as lib


def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL("ucrtbase.dll") if os.name == "nt" else ctypes.CDLL(None)


def trim_memory() -> None:
    """Give freed memory back to the system where libc can (glibc keeps it otherwise)."""
    trim = getattr(libc(), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def build() -> str:
    """Which llama.cpp this is, and what its kernels were made for."""
    return f"{version('llama-cpp-python')} {lib.llama_print_system_info().decode('utf-8', 'replace')}"


def gpu_devices() -> list[str]:
    """Names of the devices this build of llama.cpp can offload to; empty on a CPU build."""
    if not lib.llama_supports_gpu_offload():
        return []
    folder = Path(lib.__file__).parent / "lib"
    names = []
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
        if base.ggml_backend_dev_type(device) in (1, 2):  # GPU, integrated GPU
            names.append((base.ggml_backend_dev_description(device) or b"GPU").decode("utf-8", "replace"))
    return names
