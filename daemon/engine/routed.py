"""Routing: what is simple is answered by the draft model alone; the main model takes over where it cannot."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from daemon.engine.draftmodel import DraftModel
from daemon.engine.run import Run, Stopped
from daemon.engine.step import WAIT, Got, Want
from daemon.engine.verify import Drafts
from daemon.engine.work import Desk, Work
from daemon.errors import EngineFailed


def work_for(run: Run, desk: Desk) -> Work:
    """On the draft model where the request is simple and routing is on."""
    job = run.job
    plain = job.cache and not (job.warm or job.margins or job.width)
    return Routed(run, desk, desk.small) if desk.small and job.simple and plain else Work(run, desk)


class Routed(Work):
    """One slice of its prompt, or one token, per tick; it has no rows in the main model's decodes."""

    def __init__(self, run: Run, desk: Desk, small: DraftModel) -> None:
        self._small = small
        super().__init__(run, desk)

    def _whole(self, drafts: Drafts) -> Generator[Want, Got, bool]:
        run = self.run
        if not run.tokens:
            run.small = self._small.name
            try:
                yield from self._alone()
            except EngineFailed:  # no room, or a decode failed: what was said so far stands
                run.small = ""
                self.known = np.append(run.prompt, np.array(run.tokens, np.int32))
            finally:
                self._small.end(run.job.id)
        return (yield from super()._whole(drafts))

    def _alone(self) -> Generator[Want, Got, None]:
        """Ends with Stopped, or with EngineFailed where the main model has to go on."""
        run, desk, small = self.run, self._desk, self._small
        if not 0 < len(run.prompt) <= desk.window - 2:
            raise Stopped("window")
        run.evaluated = small.lag(run.job.id, run.prompt)
        run.reused = len(run.prompt) - run.evaluated
        while True:
            run.check()
            text = np.append(run.prompt, np.array(run.tokens, np.int32))
            row = small.row(run.job.id, text, desk.small_rows)
            run.steps += 1
            if row is not None:
                run.prompt_done()
                token = run.sampler.choose(row)
                if not desk.pieces.pieces[token]:
                    run.tokens.append(token)
                    raise Stopped("eos")
                self._show(token)
                self._say()
                if (reason := run.ended()) is not None:
                    raise Stopped(reason)
                if len(text) + 1 >= desk.window:
                    raise Stopped("window")
            yield WAIT
