"""What the engine found when it started: the model's facts, and what evaluation costs on this machine."""

from __future__ import annotations

from daemon.backend import Backend
from daemon.nouns import Noun


class FimIds(Noun, frozen=True):
    """Control token ids of fill-in-the-middle; -1 where the model has none."""

    pre: int = -1
    suf: int = -1
    mid: int = -1
    sep: int = -1
    rep: int = -1
    pad: int = -1

    @property
    def usable(self) -> bool:
        """Whether a prefix, a suffix and a middle marker exist."""
        return min(self.pre, self.suf, self.mid) >= 0


class ModelFacts(Noun, frozen=True):
    """What the engine read from the loaded GGUF. `trained_context` in tokens."""

    name: str
    path: str
    sha256: str
    architecture: str
    vocabulary: int
    trained_context: int
    bos: int = -1
    add_bos: bool = False
    fim: FimIds = FimIds()
    weights_bytes: int = 0


class EngineProfile(Noun, frozen=True):
    """What evaluation costs on this machine, measured at start; the planner's only source of cost."""

    model: ModelFacts
    backend: str
    """CPU, CUDA, Metal, Vulkan, …"""
    device: str
    why: str
    """Why this backend and these sizes, in words."""
    threads: int
    context: int
    """Cells of the KV cache, in tokens."""
    prefill: tuple[tuple[int, float], ...] = ()
    """(rows in one batch, milliseconds) for prompt slices."""
    verify: tuple[tuple[int, float], ...] = ()
    """(rows with logits, milliseconds): V(k)."""
    load_ms: float = 0.0
    kv_bytes: int = 0
    compute_bytes: int = 0
    """llama.cpp's own compute buffers, and the logits it holds."""
    repacked_bytes: int = 0
    """Weights in memory in a layout for the kernels of this CPU; the file's are mapped beside them."""
    tick_tokens: int = 64
    """Slice size of prompt evaluation: what a new keystroke may have to wait for."""
    kv_type: str = "f16"
    """Of keys and values; `f16+bf16`: of keys, and of values."""
    flash_attention: bool = True
    chosen: Backend = Backend()

    def prefill_ms(self, tokens: int) -> float:
        """Estimated milliseconds to evaluate `tokens` prompt tokens in full slices."""
        if not self.prefill or tokens <= 0:
            return 0.0
        rows, ms = max(self.prefill)
        return tokens * ms / rows
