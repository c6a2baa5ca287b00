"""The drafts of one request: asked for, verified in one decode, judged token by token as the model chooses.

A drafted token is accepted when it is what the sampler chooses anyway, greedy or at any temperature: a draft
is one guess, not a distribution, and for that this is rejection sampling, exact (reference: Leviathan et al.,
arXiv 2211.17192, with q a point mass).
"""

from __future__ import annotations

from daemon.engine.run import Run
from daemon.engine.step import Draft, Drafter


class Drafts:
    """Used by one Work."""

    def __init__(self, drafter: Drafter | None, run: Run) -> None:
        job = run.job
        wanted = job.draft and not job.warm and (job.cache or job.width > 0)
        self._drafter = drafter if wanted else None
        self._run = run
        self._draft = Draft()
        self._first = self._judged = self._accepted = 0
        if self._drafter is not None:
            self._drafter.begin(job, run.ahead)

    def propose(self, room: int) -> Draft:
        """What may follow the token chosen last, within `room`, up to where window, width, limit or stop end
        it."""
        self._settle()
        run = self._run
        room = min(room, run.job.limits.tokens - run.shown_tokens - 1)
        if run.job.width:
            room = min(room, run.job.width - 1)
        if self._drafter is None or room <= 0:
            return Draft()
        draft = self._drafter.propose(run.job.id, run.prompt, run.tokens, room)
        return Draft(draft.tokens[:room], draft.source)

    def verified(self, draft: Draft, at: int, rows: int) -> None:
        """The token chosen last and the beginning of the draft that stands at `at` were evaluated, together
        `rows`."""
        tokens = draft.tokens[: rows - 1]
        if len(tokens):
            self._draft, self._first = Draft(tokens, draft.source), at
            self._run.count_draft(draft.source, drafted=len(tokens))

    def judge(self, at: int, token: int) -> None:
        """`token` was chosen for the place `at`."""
        index = at - self._first
        if index != self._judged or index >= len(self._draft.tokens):
            return
        self._judged += 1
        if self._draft.tokens[index] == token:
            self._accepted += 1
            self._run.count_draft(self._draft.source, accepted=1)
        else:
            self._settle()

    def pause(self) -> None:
        """The request is set aside."""
        if self._drafter is not None:
            self._drafter.pause(self._run.job.id)

    def close(self) -> None:
        """The request is over."""
        self._settle()
        if self._drafter is not None:
            self._drafter.end(self._run.job.id, self._run.tokens)

    def _settle(self) -> None:
        if self._drafter is not None and self._judged:
            judged = Draft(self._draft.tokens[: self._judged], self._draft.source)
            self._drafter.learn(judged, self._accepted)
        self._draft, self._judged, self._accepted = Draft(), 0, 0
