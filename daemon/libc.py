"""The C library of this process, and the freed memory that it keeps."""

from __future__ import annotations

import ctypes
import gc
import os


def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL("ucrtbase.dll") if os.name == "nt" else ctypes.CDLL(None)


def give_back() -> None:
    """Collect garbage and give freed memory back to the system where libc can (glibc keeps it otherwise)."""
    gc.collect()
    trim = getattr(libc(), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
