"""An engine inside this process, so that a measurement can choose its drafts and take back what it generated.

The same questions are asked again and again with other drafts: their prompts stay evaluated, their answers do
not.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from daemon import settings
from daemon.bench.outcome import Outcome
from daemon.context.layout import Layout
from daemon.engine import startup
from daemon.engine.binding import Ids
from daemon.engine.drafts import Drafts
from daemon.engine.frames import Done, Message, Start, Submit
from daemon.engine.loop import Loop
from daemon.errors import EngineFailed
from daemon.models.catalogue import ModelFile
from daemon.nouns import Generation
from indexer.tokens import TiktokenTokenizer
from indexer.vocabulary import load

_ANSWER_S = 600.0


class Engine:
    """Answers one job after the other. Raises ForetypeError when a model cannot be loaded."""

    def __init__(self, model: ModelFile, draft: ModelFile | None) -> None:
        asked = settings.Engine()
        start = Start(
            path=str(model.path), name=model.name, sha256=model.sha256, context=asked.context, settings=asked,
            draft=str(draft.path) if draft else "",
        )  # fmt: skip
        self._done: dict[str, Generation] = {}
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self.loop: Loop
        self.loop, ready = startup.build(start, self._take)
        self.profile = ready.profile
        self.tokenizer = TiktokenTokenizer(load(Path(ready.vocabulary)))
        self.layout = Layout(self.tokenizer, ready.profile, settings.Context())
        drafts = self.loop.drafter
        if not isinstance(drafts, Drafts):
            raise EngineFailed("drafts are off", 'Set engine.draft = "auto"')
        self.drafts = drafts
        self._thread = threading.Thread(target=self.loop.run, name="engine", daemon=True)
        self._thread.start()

    def _take(self, message: Message) -> None:
        if isinstance(message, Done):
            with self._changed:
                self._done[message.id] = message.generation
                self._changed.notify_all()

    def ask(self, job: Submit, drafts: Drafts | None, **more: Any) -> Generation:
        """The answer with these drafts, written anew. Raises EngineFailed."""
        job = msgspec.structs.replace(job, id=str(next(self._numbers)), **more)
        self._forget(np.frombuffer(job.tokens, np.int32))
        self.loop.drafter = drafts
        self.loop.lanes.submit(job)
        with self._changed:
            if not self._changed.wait_for(lambda: job.id in self._done, _ANSWER_S):
                raise EngineFailed("the engine gave no answer")
            generation = self._done.pop(job.id)
        if generation.stop == "engine":
            raise EngineFailed(generation.note)
        return generation

    def _forget(self, prompt: Ids) -> None:
        """What was generated, the prompt's own tokens excepted. Nothing runs meanwhile."""
        for resident in self.loop.tree.residents:
            resident.choices.clear()
            resident.behind = None
            if resident.match(prompt) == len(prompt):
                self.loop.tree.cut(resident, len(prompt))

    def outcome(self, name: str, seed: int) -> Outcome:
        """An empty result that says what was measured on."""
        profile = msgspec.to_builtins(self.profile)
        model = profile.pop("model")
        model["path"] = Path(model["path"]).name
        return Outcome(name=name, seed=seed, model=model, profile=profile)

    def close(self) -> None:
        """End it."""
        self.loop.lanes.close()
        self._thread.join(10.0)


@contextmanager
def running(model: ModelFile, draft: ModelFile | None) -> Iterator[Engine]:
    """Load both and be ready."""
    engine = Engine(model, draft)
    try:
        yield engine
    finally:
        engine.close()
