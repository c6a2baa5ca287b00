"""The draft model, loaded where it is quickest."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from daemon.engine import costs, placing
from daemon.engine.draftmodel import DraftModel, incompatible
from daemon.engine.frames import Start
from daemon.engine.opening import Opened, opened
from daemon.engine.placing import Place
from daemon.engine.vocabulary import Pieces
from daemon.errors import EngineFailed, ForetypeError


def load(start: Start, main: Opened, pieces: Pieces, threads: int) -> tuple[DraftModel, str]:
    """The draft model of `start`, and on what it runs and why.

    Raises ForetypeError when it cannot be loaded, or speaks another vocabulary than `main`.
    """
    asked = start.settings.draft_device
    places = placing.draft_places(start.settings, main.gpus)
    with contextlib.ExitStack() as undo:
        chosen, why = _quickest(msgspec.structs.replace(start, path=start.draft), places, threads)
        undo.callback(chosen.close)
        reason = incompatible(main.model, pieces.pieces, chosen.model, chosen.model.pieces())
        if reason:
            raise EngineFailed(f"{start.draft_name} cannot draft for {start.name}: {reason}")
        made = DraftModel(start.draft_name, chosen.context, pieces.control, start.settings.draft_sure / 100)
        undo.pop_all()
    where = f"{chosen.backend} {chosen.device}"
    if asked == "auto":
        return made, f"{where}: {why if len(places) > 1 else 'beside the main model'}"
    return (
        made,
        f"{where}: engine.draft_device is {asked}{'' if main.gpus else ', and the model is on the CPU'}",
    )


def _quickest(start: Start, places: Sequence[Place], threads: int) -> tuple[Opened, str]:
    """Raises what the last place raised when none works."""
    measured: list[tuple[str, Opened, float]] = []
    failed = ""
    for place in places:
        name = place.name or "CPU"
        with contextlib.ExitStack() as undo:
            try:
                one = opened(start, place, "")
                undo.callback(one.close)
                one.context.set_threads(threads)
                measured.append((name, one, costs.both_ms(one.context)))
            except ForetypeError as error:
                if place == places[-1] and not measured:
                    raise
                failed += f"; {name} failed: {error.message}"
                continue
            undo.pop_all()
    chosen, why = placing.fastest(measured)
    for _, other, _ in measured:
        if other is not chosen:
            other.close()
    return chosen, why + failed
