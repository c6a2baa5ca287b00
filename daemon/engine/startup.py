"""Loading: the model, the vocabulary, what this machine costs, and the loop that works with them."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from daemon import paths
from daemon.backend import Backend
from daemon.engine import cores, costs, device, draftplace, vocabulary
from daemon.engine.drafts import FREE, NAMES, Drafts
from daemon.engine.frames import Loading, Message, Ready, Start
from daemon.engine.loop import Loop
from daemon.engine.opening import Opened, ladder
from daemon.engine.pagedisk import MB
from daemon.engine.pages import Pages
from daemon.engine.paging import Paging
from daemon.engine.team import Team, fewer
from daemon.engine.tree import Tree
from daemon.engine.vocabulary import Pieces
from daemon.engine.worth import Costs
from daemon.errors import ForetypeError
from daemon.libc import give_back
from daemon.machine import EngineProfile, FimIds, ModelFacts

_GPU_TICK_MS, _CPU_TICK_MS = 25, 150


class Measured(NamedTuple):
    """Threads, the cores they are kept on, why, and what prompt rows and rows with logits cost then."""

    threads: int
    cores: tuple[int, ...]
    why: str
    prefill: tuple[tuple[int, float], ...]
    verify: tuple[tuple[int, float], ...]


_log = logging.getLogger(__name__)


def build(start: Start, emit: Callable[[Message], None]) -> tuple[Loop, Ready]:
    """Load the model on the best backend that passes a real decode. Raises ForetypeError when none does."""
    began = time.perf_counter()
    emit(Loading(share=0.1, stage=f"loading {start.name}"))
    opened = ladder(start)
    emit(Loading(share=0.6, stage="reading the vocabulary"))
    exported, path = vocabulary.export(opened.model, start.sha256)
    pieces, note = Pieces(exported.pieces), exported.note
    del exported
    load_ms = (time.perf_counter() - began) * 1000.0
    emit(Loading(share=0.8, stage="measuring this machine"))
    facts = opened.model.facts(start.name, start.sha256)
    measured = _costs(start, opened)
    loop = _loop(start, opened, pieces, measured, facts.trained_context, emit=emit)
    rows = costs.RowCosts(measured.verify, opened.context.batch)
    loop.drafter, draft_device = _drafts(start, opened, pieces, facts.fim, rows, threads=measured.threads)
    if start.settings.route_simple:
        opened = _routed(loop, opened)
    made = _profile(opened, measured, facts, draft_device, loop.team.fewer)
    made = msgspec.structs.replace(made, load_ms=load_ms, tick_tokens=loop.slice)
    give_back()
    return loop, Ready(profile=made, vocabulary=str(path), vocabulary_note=note)


def _routed(loop: Loop, opened: Opened) -> Opened:
    """The draft model answers alone what is simple; without one that is noted."""
    drafter = loop.drafter
    if isinstance(drafter, Drafts) and drafter.model is not None:
        loop.route(drafter.model)
        return opened
    why = drafter.note if isinstance(drafter, Drafts) else "engine.draft is off"
    return opened._replace(notes=(*opened.notes, f"engine.route_simple has no effect: {why}"))


def _profile(
    opened: Opened, measured: Measured, facts: ModelFacts, draft_device: str, ahead: int
) -> EngineProfile:
    context = opened.context
    compute_bytes, kv_bytes = opened.log.sizes()
    return EngineProfile(
        model=facts,
        backend=opened.backend,
        device=opened.device,
        why=opened.why,
        threads=measured.threads,
        context=min(context.cells, facts.trained_context),
        prefill=measured.prefill,
        verify=measured.verify,
        kv_bytes=kv_bytes,
        compute_bytes=compute_bytes,
        repacked_bytes=opened.repacked,
        kv_type=opened.kv_type,
        flash_attention=context.flash,
        chosen=Backend(
            threads_why=measured.why,
            threads_ahead=ahead,
            cores=measured.cores,
            kv_offload=bool(opened.gpus) and context.offload,
            kv_offload_why=opened.offload_why,
            draft_device=draft_device,
            notes=opened.notes,
        ),
    )


def _loop(
    start: Start,
    opened: Opened,
    pieces: Pieces,
    measured: Measured,
    window: int,
    *,
    emit: Callable[[Message], None],
) -> Loop:
    """With the costs of this machine, and pages."""
    settings, context = start.settings, opened.context
    slots, delay_s = settings.concurrency, settings.max_delay_ms / 1000
    loop = Loop(context, pieces, window, emit, slots=slots, delay_s=delay_s)
    loop.batching.costs = costs.RowCosts([*measured.prefill, *measured.verify], context.batch)
    tick_ms = settings.tick_ms or (_GPU_TICK_MS if opened.backend == "GPU" else _CPU_TICK_MS)
    loop.team = Team(context, measured.threads, _ahead(opened, measured))
    loop.slice = settings.slice or costs.slice_for(measured.prefill, tick_ms, context.batch)
    loop.paging = _paging(start, opened, loop.tree, measured.prefill)
    return loop


def _drafts(
    start: Start, opened: Opened, pieces: Pieces, fim: FimIds, verify: costs.RowCosts, *, threads: int
) -> tuple[Drafts | None, str]:
    """What guesses ahead, and where its model runs; one that cannot be used is refused with a reason."""
    settings = start.settings
    if settings.draft == "off":
        return None, ""
    model, only, note = None, frozenset(FREE), start.draft_note or "engine.draft_model names none"
    device = ""
    if settings.draft == "auto":
        only = frozenset(NAMES)
    if settings.draft == "auto" and start.draft:
        try:
            model, device = draftplace.load(start, opened, pieces, threads)
        except ForetypeError as error:
            note = str(error)
            _log.warning("no draft model: %s", note)
    vocabulary = start.sha256
    return Drafts(
        pieces, fim, Costs(verify), model=model, only=only, vocabulary=vocabulary, note=note
    ), device


def _ahead(opened: Opened, measured: Measured) -> int:
    """Threads for what is asked in advance. A GPU leaves the cores alone, and who keeps to some of them the
    others."""
    return measured.threads if opened.backend == "GPU" or measured.cores else fewer(measured.threads)


def _paging(start: Start, opened: Opened, tree: Tree, prefill: tuple[tuple[int, float], ...]) -> Paging:
    """Pages of whatever computes the same states: weights, types, kernels, device, and the context's size, by
    which some models choose their rope factors. Other rope settings are the model's own; no adapters."""
    settings, context = start.settings, opened.context
    machine = opened.backend, opened.device, device.build()
    state = (start.sha256, opened.kv_type, context.flash, context.offload, context.cells, *machine)
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


def _costs(start: Start, opened: Opened) -> Measured:
    """From the last start of the same model where there was one."""
    context, asked = opened.context, start.settings.threads
    if (known := start.profile) is not None:
        context.set_threads(known.threads)
        kept = known.chosen.cores if cores.keep_on(known.chosen.cores) else ()
        return Measured(known.threads, kept, known.chosen.threads_why, known.prefill, known.verify)
    chosen, why = cores.Choice(asked), "engine.threads"
    if not asked:
        chosen, why = costs.choose_threads(context, cores.machine())
    context.set_threads(chosen.threads)
    return Measured(*chosen, why, *costs.measure(context))
