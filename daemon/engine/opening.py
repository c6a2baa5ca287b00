"""A model with its context on the best backend that passes a real decode; each step down has its reason."""

from __future__ import annotations

import contextlib
import logging
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from daemon.engine import costs, placing
from daemon.engine.binding import Context, Model, Part
from daemon.engine.device import Gpu, Log, gpu_devices
from daemon.engine.frames import Start
from daemon.engine.placing import CPU, Attention, Place
from daemon.errors import EngineFailed, ForetypeError

_SEQUENCES = 16
_FILLED = 512
"""Positions before the rows that are timed to place the KV cache."""
_log = logging.getLogger(__name__)


class Opened(NamedTuple):
    """A model with its context, and how they came to be."""

    model: Model
    context: Context
    backend: str
    device: str
    why: str
    log: Log
    """Of the context."""
    kv_type: str
    gpus: tuple[Gpu, ...] = ()
    """What the model may use; none on the CPU."""
    offload_why: str = ""
    notes: tuple[str, ...] = ()
    repacked: int = 0
    """Bytes of weights in another layout than the file's."""

    def close(self) -> None:
        """Free both."""
        self.context.close()
        self.model.close()


def ladder(start: Start) -> Opened:
    """GPU first where there is one and it is wanted; every step down is named in `why`."""
    settings = start.settings
    gpus = gpu_devices() if settings.backend != "cpu" and not start.force_cpu else []
    if settings.backend == "cpu":
        why = "engine.backend is cpu"
    elif start.force_cpu:
        why = f"GPU given up: {start.force_cpu}"
    elif not gpus:
        why = "no GPU device in this build of llama.cpp"
    else:
        try:
            place = placing.place(settings, gpus)
            return opened(start, place, "a test decode on it succeeded")._replace(gpus=tuple(gpus))
        except ForetypeError as error:
            why = f"GPU {gpus[0].name} failed: {error}"
            _log.warning("%s", why)
    made = opened(start, CPU, why)
    return made._replace(notes=(*made.notes, *placing.idle(settings, why)))


def opened(start: Start, place: Place, why: str) -> Opened:
    """On this place, with flash attention where that works. Raises ForetypeError."""
    loading = Log()
    try:
        model = Model(Path(start.path), place.layers, loading, place.spread)
    finally:
        loading.close()
    with contextlib.ExitStack() as undo:
        undo.callback(model.close)
        ways = placing.attentions(start.settings, gpu=bool(place.name))
        context, log, way, notes = _attending(start, model, ways)
        device = place.name or platform.processor() or "CPU"
        backend = "GPU" if place.name else "CPU"
        made = Opened(
            model, context, backend, device, why, log, way.kv_type,
            notes=notes, repacked=loading.repacked(),
        )  # fmt: skip
        if place.name:
            made = _cached(start, made, way)
        undo.pop_all()
    return made


def _attending(
    start: Start, model: Model, ways: Sequence[Attention]
) -> tuple[Context, Log, Attention, tuple[str, ...]]:
    """The first of `ways` that decodes, and notes on those that did not. Raises what the last one raised."""
    notes: list[str] = []
    for way in ways:
        try:
            offload = start.settings.kv_offload != "off"
            return *_proved(start, model, way, offload), way, tuple(notes)
        except EngineFailed as error:
            if way == ways[-1]:
                raise
            kept = f", and the KV cache is {ways[-1].kv_type}" if way.kv_type == "q8_0" else ""
            notes.append(f"flash attention is off{kept}: a test decode with it failed: {error.message}")
            _log.warning("%s", notes[-1])
    raise EngineFailed("there is no way to compute attention")


def _proved(start: Start, model: Model, way: Attention, offload: bool) -> tuple[Context, Log]:
    """A context that decodes one token to finite logits, and what llama.cpp said while making it."""
    settings, log = start.settings, Log()
    try:
        context = Context(
            model,
            cells=start.context,
            sequences=max(_SEQUENCES, 2 * settings.concurrency),
            batch=settings.max_batch,
            threads=settings.threads or costs.usable_threads(),
            kv_type=way.kv_type,
            flash=way.flash,
            offload=offload,
        )
    except EngineFailed as error:
        raise EngineFailed(f"{error.message} ({log.problem()})", error.remedy) from error
    finally:
        log.close()
    with contextlib.ExitStack() as undo:
        undo.callback(context.close)
        context.decode(Part(np.zeros(1, np.int32), 0, 0, 1))
        if not np.isfinite(context.logits(1)).all():
            raise EngineFailed(
                "a test decode gave no finite logits", "Update the driver or use backend = cpu"
            )
        context.cut(0, 0)
        undo.pop_all()
    return context, log


def _cached(start: Start, made: Opened, way: Attention) -> Opened:
    """On a GPU: the KV cache there or in host memory, as asked for, else as measured."""
    asked = start.settings.kv_offload
    if asked != "auto":
        return made._replace(offload_why=f"engine.kv_offload is {asked}")
    with contextlib.ExitStack() as undo:
        try:
            context, log = _proved(start, made.model, way, offload=False)
            undo.callback(context.close)
            beside = made._replace(context=context, log=log)
            named = [("GPU memory", made), ("host memory", beside)]
            measured = [(name, one, costs.behind_ms(one.context, _FILLED)) for name, one in named]
        except EngineFailed as error:
            return made._replace(offload_why=f"host memory failed: {error.message}")
        chosen, why = placing.fastest(measured)
        if chosen is beside:
            undo.pop_all()
            made.context.close()
    return chosen._replace(offload_why=why)
