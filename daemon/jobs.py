"""Plan → Submit: what the engine is asked to do, and how urgently."""

from __future__ import annotations

from pathlib import Path

from daemon.context.planner import Planned
from daemon.documents.mirror import DENIED
from daemon.engine.frames import Lane, Submit
from daemon.nouns import CompletionRequest
from daemon.polish.ahead import closer_ahead
from indexer.grams import FOLDER

_ABOVE = 12
_LONG = 512
"""Tokens. Whoever asks for more does not wait at the keyboard."""


def job(job_id: str, planned: Planned, index: Path | None, guesses: bytes, follow: bool) -> Submit:
    """The work for a plan. `index`: the database of the repository that holds its file, whose n-grams may be
    drafted from; `guesses`: tokens that may follow; `follow`: somebody reads along."""
    request, prompt = planned.request, planned.prompt
    above = request.prefix[: len(request.prefix) - len(prompt.line)]
    return Submit(
        id=job_id,
        tokens=prompt.tokens,
        must=prompt.must,
        line=prompt.line,
        suffix=request.suffix[:2000],
        above=tuple(above[-4000:].split("\n")[-_ABOVE:]),
        closes=closer_ahead(request),
        limits=request.limits,
        sampling=request.sampling,
        warm=request.warm,
        lane=lane(request),
        client=request.client,
        cache=request.cache,
        margins=request.margins,
        ngrams=str(index.parent / FOLDER) if index else "",
        guesses=guesses,
        keep=planned.document.why != DENIED,
        follow=follow,
        simple=planned.window.name == "simple",
    )


def lane(request: CompletionRequest) -> Lane:
    """Who comes first, see engine/lanes.py."""
    if request.warm:
        return "warm"
    if request.limits.tokens > _LONG:
        return "long"
    return "alternative" if request.alternative else "keystroke"
