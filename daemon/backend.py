"""How llama.cpp is run on this machine, as it was chosen at start."""

from __future__ import annotations

import msgspec


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """Beside the device itself."""

    threads_why: str = ""
    threads_ahead: int = 0
    """Of what is asked in advance; 0: not known."""
    cores: tuple[int, ...] = ()
    """The engine is kept on these; empty: it may run on any."""
    kv_offload: bool = False
    """The KV cache lies in the GPU's memory."""
    kv_offload_why: str = ""
    draft_device: str = ""
    """Where the draft model runs, and why; empty without one."""
    notes: tuple[str, ...] = ()
    """What was asked for and is not so, with the reason."""
