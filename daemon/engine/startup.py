"""Loading: the backend ladder by a real decode, the vocabulary, the profile."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import logging
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from daemon import paths
from daemon.engine import costs, device, vocabulary
from daemon.engine.binding import Context, Model, Part
from daemon.engine.device import Log, gpu_devices, trim_memory
from daemon.engine.draftmodel import DraftModel, incompatible
from daemon.engine.drafts import FREE, NAMES, Drafts
from daemon.engine.frames import Loading, Message, Ready, Start
from daemon.engine.loop import Loop
from daemon.engine.pagedisk import MB
from daemon.engine.pages import Pages
from daemon.engine.paging import Paging
from daemon.engine.tree import Tree
from daemon.engine.vocabulary import Pieces
from daemon.engine.worth import Costs
from daemon.errors import EngineFailed, ForetypeError
from daemon.machine import EngineProfile, FimIds
from daemon.settings import Engine

_SEQUENCES = 16
_GPU_TICK_MS, _CPU_TICK_MS = 25, 150


class Opened(NamedTuple):
    """A model with its context, and how they came to be."""

    model: Model
    context: Context
    backend: str
    device: str
    why: str
    log: Log
    kv_type: str


_log = logging.getLogger(__name__)


def build(start: Start, emit: Callable[[Message], None]) -> tuple[Loop, Ready]:
    """Load the model on the best backend that passes a real decode. Raises ForetypeError when none does."""
    began = time.perf_counter()
    emit(Loading(share=0.1, stage=f"loading {start.name}"))
    opened = _ladder(start)
    model, context = opened.model, opened.context
    emit(Loading(share=0.6, stage="reading the vocabulary"))
    exported, path = vocabulary.export(model, start.sha256)
    load_ms = (time.perf_counter() - began) * 1000.0
    emit(Loading(share=0.8, stage="measuring this machine"))
    facts = model.facts(start.name, start.sha256)
    threads, prefill, verify = _costs(start, context)
    gc.collect()
    trim_memory()
    pieces = Pieces(exported.pieces)
    loop = _loop(start.settings, opened, pieces, facts.trained_context, emit)
    rows = costs.RowCosts(verify, context.batch)
    loop.drafter = _drafts(start, opened, pieces, facts.fim, rows, threads=threads)
    loop.batching.costs = costs.RowCosts([*prefill, *verify], context.batch)
    tick_ms = start.settings.tick_ms or (_GPU_TICK_MS if opened.backend == "GPU" else _CPU_TICK_MS)
    loop.slice = start.settings.slice or costs.slice_for(prefill, tick_ms, context.batch)
    loop.paging = _paging(start, opened, loop.tree, prefill)
    compute_bytes, kv_bytes = opened.log.sizes()
    made = EngineProfile(
        model=facts,
        backend=opened.backend,
        device=opened.device,
        why=opened.why,
        threads=threads,
        context=min(context.cells, facts.trained_context),
        prefill=prefill,
        verify=verify,
        load_ms=load_ms,
        kv_bytes=kv_bytes,
        compute_bytes=compute_bytes,
        tick_tokens=loop.slice,
        kv_type=opened.kv_type,
        flash_attention=context.flash,
    )
    return loop, Ready(profile=made, vocabulary=str(path), vocabulary_note=exported.note)


def _loop(
    settings: Engine, opened: Opened, pieces: Pieces, window: int, emit: Callable[[Message], None]
) -> Loop:
    slots, delay_s = settings.concurrency, settings.max_delay_ms / 1000
    return Loop(opened.context, pieces, window, emit, slots=slots, delay_s=delay_s)


def _drafts(
    start: Start, opened: Opened, pieces: Pieces, fim: FimIds, verify: costs.RowCosts, *, threads: int
) -> Drafts | None:
    """What guesses ahead; a draft model that cannot be used is refused with a reason."""
    settings = start.settings
    if settings.draft == "off":
        return None
    model, only, note = None, frozenset(FREE), start.draft_note or "engine.draft_model names none"
    if settings.draft == "auto":
        only = frozenset(NAMES)
    if settings.draft == "auto" and start.draft:
        try:
            model = _draft_model(start, opened.model, pieces, threads)
        except ForetypeError as error:
            note = error.message
            _log.warning("no draft model: %s", note)
    return Drafts(pieces, fim, Costs(verify), model=model, only=only, vocabulary=start.sha256, note=note)


def _draft_model(start: Start, main: Model, pieces: Pieces, threads: int) -> DraftModel:
    """Raises ForetypeError when it cannot be loaded, or speaks another vocabulary."""
    opened = _ladder(msgspec.structs.replace(start, path=start.draft))
    with contextlib.ExitStack() as undo:
        undo.callback(opened.model.close)
        undo.callback(opened.context.close)
        reason = incompatible(main, pieces.pieces, opened.model, opened.model.pieces())
        if reason:
            raise EngineFailed(f"{start.draft_name} cannot draft for {start.name}: {reason}")
        opened.context.set_threads(threads)
        sure = start.settings.draft_sure / 100
        made = DraftModel(start.draft_name, opened.context, pieces.control, sure)
        undo.pop_all()
    return made


def _paging(start: Start, opened: Opened, tree: Tree, prefill: tuple[tuple[int, float], ...]) -> Paging:
    """Pages of whatever computes the same states: weights, types, kernels, device, and the context's size, by
    which some models choose their rope factors. Other rope settings are the model's own; no adapters."""
    settings, context = start.settings, opened.context
    machine = opened.backend, opened.device, device.build()
    state = (start.sha256, opened.kv_type, context.flash, context.cells, *machine)
    pages = Pages(
        context,
        tree.scratch,
        hashlib.blake2b(repr(state).encode(), digest_size=32).digest(),
        host_bytes=settings.page_mb * MB,
        disk_bytes=settings.disk_mb * MB,
        folder=paths.pages_dir(),
    )
    for rows, ms in prefill:
        pages.evaluated(rows, ms)
    return Paging(tree, pages)


def _ladder(start: Start) -> Opened:
    """GPU first where there is one and it is wanted; every step down is named in `why`."""
    settings = start.settings
    devices = gpu_devices() if settings.backend != "cpu" and not start.force_cpu else []
    if settings.backend == "cpu":
        why = "engine.backend is cpu"
    elif start.force_cpu:
        why = f"GPU given up: {start.force_cpu}"
    elif not devices:
        why = "no GPU device in this build of llama.cpp"
    else:
        try:
            return _open(start, settings.gpu_layers, devices[0], "a test decode on it succeeded")
        except ForetypeError as error:
            why = f"GPU {devices[0]} failed: {error.message}"
            _log.warning("%s", why)
    return _open(start, 0, "", why)


def _open(start: Start, gpu_layers: int, gpu: str, why: str) -> Opened:
    """Model and context, proved by decoding one token to finite logits."""
    settings, log = start.settings, Log()
    flash = settings.flash_attention != "off"
    kinds = kv_type(settings, flash, gpu=bool(gpu))
    with contextlib.ExitStack() as undo:
        try:
            model = Model(Path(start.path), gpu_layers, log)
            undo.callback(model.close)
            context = Context(
                model,
                cells=start.context,
                sequences=max(_SEQUENCES, 2 * settings.concurrency),
                batch=settings.max_batch,
                threads=settings.threads or costs.usable_cores(),
                kv_type=kinds,
                flash=flash,
            )
            undo.callback(context.close)
        finally:
            log.close()
        context.decode(Part(np.zeros(1, np.int32), 0, 0, 1))
        if not np.isfinite(context.logits(1)).all():
            raise EngineFailed(
                "a test decode gave no finite logits", "Update the driver or use backend = cpu"
            )
        context.cut(0, 0)
        undo.pop_all()
    device = gpu or platform.processor() or "CPU"
    return Opened(model, context, "GPU" if gpu else "CPU", device, why, log, kinds)


def kv_type(settings: Engine, flash: bool, gpu: bool) -> str:
    """Types of keys and values. On a CPU values are bf16 beside keys of f16: with f16 for both, llama.cpp's
    flash attention adds values up in 16 bits, and in one part per thread for single rows, so that answers
    depend on where in the cache a text lies. With two types it adds up in 32 bits, in order of position."""
    return "f16+bf16" if flash and not gpu and settings.kv_type == "f16" else settings.kv_type


def _costs(
    start: Start, context: Context
) -> tuple[int, tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]:
    """Threads, prefill and verify costs: from the last start of the same model where there was one."""
    if (known := start.profile) is not None:
        context.set_threads(known.threads)
        return known.threads, known.prefill, known.verify
    threads = start.settings.threads or costs.choose_threads(context, costs.usable_cores())
    context.set_threads(threads)
    return threads, *costs.measure(context)
