"""Where models are put: what the settings and the devices allow, and which of the measured ways is taken.

Only decisions; opening.py carries them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from daemon.engine.device import NOWHERE, Gpu, Spread
from daemon.errors import EngineFailed
from daemon.settings import Engine

_CLEARLY = 0.95
"""Of the first way's time: what another one must take at most to be taken instead."""
T = TypeVar("T")


class Place(NamedTuple):
    """Of one model. `name` is that of the devices, empty for the CPU."""

    name: str = ""
    layers: int = 0
    spread: Spread = NOWHERE


CPU = Place()


class Attention(NamedTuple):
    """A way to compute attention, and the cache's types that go with it."""

    flash: bool
    kv_type: str


def kv_type(settings: Engine, flash: bool, gpu: bool) -> str:
    """Types of keys and values. On a CPU values are bf16 beside keys of f16: with f16 for both, llama.cpp's
    flash attention adds values up in 16 bits, and in one part per thread for single rows, so that answers
    depend on where in the cache a text lies. With two types it adds up in 32 bits, in order of position."""
    return "f16+bf16" if flash and not gpu and settings.kv_type == "f16" else settings.kv_type


def attentions(settings: Engine, gpu: bool) -> list[Attention]:
    """What to try, in order. Without flash attention there is no quantized cache: auto then does without."""
    asked = settings.flash_attention
    flash = Attention(True, kv_type(settings, True, gpu))
    return {
        "on": [flash],
        "off": [Attention(False, settings.kv_type)],
        "auto": [flash, Attention(False, "f16")],
    }[asked]


def place(settings: Engine, gpus: Sequence[Gpu]) -> Place:
    """Of the main model on these, one at least. Raises EngineFailed naming the setting that does not fit."""
    count = f"{len(gpus)} GPU{'s' * (len(gpus) != 1)} ({', '.join(gpu.name for gpu in gpus)})"
    if settings.main_gpu >= len(gpus):
        raise EngineFailed(
            f"engine.main_gpu is {settings.main_gpu}, and there {'is' if len(gpus) == 1 else 'are'} {count}",
            f"Give {len(gpus) - 1} at most",
        )
    shares = settings.tensor_split
    if shares and len(shares) != len(gpus):
        raise EngineFailed(
            f"engine.tensor_split has {len(shares)} shares for {count}", "Give one for each, or none"
        )
    if settings.split_mode == "none":
        return alone(gpus[settings.main_gpu], settings.gpu_layers)
    spread = Spread(tuple(gpu.handle for gpu in gpus), settings.split_mode, shares, settings.main_gpu)
    return Place(", ".join(gpu.name for gpu in gpus), settings.gpu_layers, spread)


def alone(gpu: Gpu, layers: int = -1) -> Place:
    """All on one GPU."""
    return Place(gpu.name, layers, Spread((gpu.handle,), "none"))


def idle(settings: Engine, why: str) -> tuple[str, ...]:
    """Notes on settings that do nothing on a CPU, which is used because of `why`."""
    default = Engine()
    names = ("split_mode", "tensor_split", "main_gpu", "kv_offload")
    found = [f"engine.{name}" for name in names if getattr(settings, name) != getattr(default, name)]
    found += ["engine.draft_device"] if settings.draft_device.startswith("gpu") else []
    if not found:
        return ()
    return (f"{', '.join(found)} {'has' if len(found) == 1 else 'have'} no effect: {why}",)


def draft_places(settings: Engine, gpus: Sequence[Gpu]) -> list[Place]:
    """Where the draft model may run; the first one, unless another one is measured faster. `gpus` are those
    that the main model may use, none where it is on the CPU. Raises EngineFailed naming the setting."""
    asked = settings.draft_device
    if asked == "cpu" or not gpus:
        return [CPU]
    if asked == "auto":
        others = [gpu for at, gpu in enumerate(gpus) if at != settings.main_gpu]
        return [alone(gpus[settings.main_gpu]), *(alone(gpu) for gpu in others[:1]), CPU]
    number = int(asked.removeprefix("gpu:"))
    if number >= len(gpus):
        raise EngineFailed(
            f'engine.draft_device is "{asked}", and the last GPU is gpu:{len(gpus) - 1}',
            'Give that or a lower one, "cpu", or "auto"',
        )
    return [alone(gpus[number])]


def fastest(measured: Sequence[tuple[str, T, float]]) -> tuple[T, str]:
    """Of ways with their names and milliseconds, the first unless another one is clearly quicker; and why."""
    name, way, ms = min(measured, key=lambda one: one[2])
    if ms > measured[0][2] * _CLEARLY:
        name, way, ms = measured[0]
    others = ", ".join(f"{other} {took:.1f}" for other, one, took in measured if one is not way)
    return way, f"measured: {name} {ms:.1f} ms ({others})" if others else name
