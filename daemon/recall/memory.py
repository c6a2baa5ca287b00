"""The room of answers that need no model, as the pipeline sees it.

    request → answers that say what was typed since → remainder → polish → Known
    answer of a run → kept, and what is asked next by who takes it is asked in advance

Questions that measure, warm-ups, alternatives and prompts that a client rendered are neither answered here
nor remembered; nothing is kept of files on the deny list, and nothing of files that are switched off.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from daemon.context.planner import Planned, Planner
from daemon.documents.mirror import DENIED
from daemon.engine.frames import Submit
from daemon.engine.protocol import Engine
from daemon.nouns import Completion, CompletionRequest, Generation, Timings
from daemon.polish.emit import Emitter
from daemon.readers import Finder
from daemon.recall.prefetch import Prefetch
from daemon.recall.remainder import CUT, Remainder, remainder
from daemon.recall.shown import AFTER, BEFORE, Answer, Shown, key, kind
from daemon.recall.similar import Similar
from daemon.settings import Recall as Settings

_TRIED = 4
"""Answers that say what was typed and are looked at closely."""
LEVELS = ("typed", "exact", "prefetched")
Job = Callable[[str, Planned], Submit]


class Known(NamedTuple):
    """An answer without a run, with all that its row in the ledger says."""

    planned: Planned
    job: Submit
    generation: Generation
    completion: Completion


class Recall:
    """Remembers for one pipeline, on its loop. `job` makes of a plan what the engine would be asked."""

    def __init__(self, engine: Engine, readers: Finder, settings: Settings, job: Job) -> None:
        self._on = settings.on
        self._job = job
        self._shown = Shown(settings.mb * 2**20)
        self.prefetch = Prefetch(engine, job, self._ahead, self._answered)
        self.prefetch.on = settings.on and settings.prefetch
        self.similar = Similar(readers)
        self.hushed: Callable[[Planned], object] = lambda planned: False
        """Whether nothing is to be answered where a request stands."""
        self._hits: Counter[str] = Counter()
        self._misses = 0
        self._saved = 0.0

    def find(self, planner: Planner, request: CompletionRequest, began: float) -> Known | None:
        """The answer, if it is known. `began`: when the question came (perf_counter)."""
        if not self._on or _measured(request):
            return None
        found = self._find(planner, request, planner.placed)
        if found is None:
            self._misses += 1
            self.prefetch.drop()
            return None
        answer, typed, planned, job, rest = found
        level = LEVELS[2 if answer.ahead else 0 if typed else 1]
        self._hits[level] += 1
        self._saved += answer.ms
        self.prefetch.use(0 if answer.used else answer.ahead)
        self._shown.use(answer)
        generation = Generation(text=rest.text, stop=rest.stop, stop_word=rest.stop_word)
        reason = f"{level}: from the answer to {answer.id}"
        prompt = msgspec.structs.replace(planned.prompt, reason=reason)
        planned = dataclasses.replace(planned, prompt=prompt)
        completion = Emitter(planned.request, planned.request.replaces).finish(generation, (), reason)
        taken = (time.perf_counter() - began) * 1000.0
        timed = msgspec.structs.replace(generation, timings=Timings(first=taken, total=taken))
        completion = msgspec.structs.replace(
            completion,
            language=planned.around.language,
            recall=level,
            timings=timed.timings,
            window=f"{planned.window.name}: {planned.window.reason}",
        )
        self.prefetch.after(planner, planned, request, completion)
        return Known(planned, job, timed, completion)

    def keep(
        self,
        planner: Planner,
        asked: CompletionRequest,
        planned: Planned,
        generation: Generation,
        completion: Completion,
    ) -> None:
        """Remember what a run answered to a question as it was before it was planned."""
        if not self._on or _measured(asked):
            return
        if planned.document.why == DENIED:
            self.forget(asked.path)
            return
        self._keep(asked, planned, generation)
        self.prefetch.after(planner, planned, asked, completion)

    def forget(self, path: str | None) -> None:
        """Nothing of this file is kept, nor asked ahead."""
        self.prefetch.drop()
        if path:
            self._shown.forget(f"path {path}")

    async def close(self) -> None:
        """End what is done in advance."""
        await self.prefetch.close()
        await self.similar.close()

    def facts(self) -> dict[str, Any]:
        """For status. `saved_ms`: what the engine took for the answers when it made them."""
        hits = sum(self._hits.values())
        return {
            "on": self._on,
            "hits": {level: self._hits[level] for level in LEVELS},
            "misses": self._misses,
            "hit_rate": hits / (hits + self._misses) if hits + self._misses else 0.0,
            "saved_ms": round(self._saved, 1),
            "answers": len(self._shown),
            "bytes": self._shown.bytes,
            "ceiling": self._shown.most,
            "prefetch": self.prefetch.facts(),
        }

    def _find(
        self, planner: Planner, request: CompletionRequest, place: Callable[[CompletionRequest], Planned]
    ) -> tuple[Answer, str, Planned, Submit, Remainder] | None:
        planned: Planned | None = None
        for answer, typed in islice(self._shown.find(request), _TRIED):
            if not _as_written(planner, answer, typed, request):
                continue
            planned = planned or place(request)
            if planned.document.why == DENIED:
                self.forget(request.path)
                return None
            if self.hushed(planned):
                return None
            if not typed and answer.context != planned.stable.key:
                continue
            job = self._job(request.id, planned)
            rest = remainder(answer, typed, job, planner.layout.count)
            if rest is not None:
                return answer, typed, planned, job, rest
        return None

    def _answered(self, planner: Planner, request: CompletionRequest, planned: Planned) -> bool:
        """Whether a question that nobody put yet needs no run."""
        return self._find(planner, request, lambda _: planned) is not None

    def _ahead(self, asked: CompletionRequest, planned: Planned, generation: Generation) -> None:
        self._keep(asked, planned, generation, ahead=max(1, generation.counters.generated))

    def _keep(
        self, asked: CompletionRequest, planned: Planned, generation: Generation, ahead: int = 0
    ) -> None:
        if generation.stop in CUT:
            return
        segments, limits = planned.prompt.segments, planned.request.limits
        ids = segments[-1].tokens if segments and segments[-1].kind == "middle" else 0
        middle = len(planned.anchor.middle(asked.prefix, asked.suffix) or "")
        known = bool(generation.tokens) and middle <= BEFORE
        prompt = planned.prompt.tokens
        answer = Answer(
            id=asked.id,
            kind=kind(asked),
            before=asked.prefix[-BEFORE:],
            after=asked.suffix[:AFTER],
            text=generation.text,
            stop=generation.stop,
            stop_word=generation.stop_word,
            context=planned.stable.key,
            lines=limits.lines,
            tokens=limits.tokens,
            middle=middle,
            written=prompt[len(prompt) - 4 * ids :] + generation.tokens if known else b"",
            ms=generation.timings.total - generation.timings.queued,
            ahead=ahead,
        )
        self._shown.keep(key(asked), answer)


def _measured(request: CompletionRequest) -> bool:
    """Whether an answer must come from the model, or is not one that a person waits for."""
    aside = request.warm or request.alternative or request.margins or not request.cache
    bound = request.anchor_lines is not None or request.context == "now" or request.window != "auto"
    return aside or bound or bool(request.rendered) or not request.recall


def _as_written(planner: Planner, answer: Answer, typed: str, request: CompletionRequest) -> bool:
    """Whether the prompt would hold what was typed in the tokens in which the model wrote it. Inside of a
    token of several signs (`());`) it would not, and the model may then go on otherwise."""
    if not typed or not answer.written:
        return True
    start = answer.before[len(answer.before) - answer.middle :]
    return answer.written.startswith(planner.layout.written(start + typed, request.heal))
