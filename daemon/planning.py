"""The planner of whatever model is loaded, made when it is first needed and again for another model."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from daemon.context.layout import Layout
from daemon.context.planner import Planner
from daemon.documents.mirror import Mirror
from daemon.engine.protocol import Engine
from daemon.errors import Loading, NotSupported
from daemon.readers import Readers
from daemon.settings import Context
from indexer.errors import VocabularyUnusable
from indexer.tokens import TiktokenTokenizer, Tokenizer
from indexer.vocabulary import load


class Planning:
    """For one engine, one event loop."""

    def __init__(self, engine: Engine, mirror: Mirror, readers: Readers, settings: Context) -> None:
        self._engine = engine
        self._mirror, self._readers, self._settings = mirror, readers, settings
        self._made: tuple[str, Planner] | None = None
        self.note = ""
        """What is degraded in planning, for status; empty when nothing is."""

    def planner(self) -> Planner:
        """Raises Loading while no model is ready, NotSupported when its vocabulary cannot be read."""
        profile = self._engine.profile
        path, note = self._engine.vocabulary
        if profile is None or not path:
            state = self._engine.state
            raise Loading(
                f"the engine is {state.phase}: {state.detail}".rstrip(": "), "Try again in a moment"
            )
        if self._made is None or self._made[0] != path:
            self.note = "" if profile.model.fim.usable else "plain prefix: the model has no FIM tokens"
            tokenizer = _tokenizer(Path(path), note, Path(profile.model.path))
            layout = Layout(tokenizer, profile, self._settings)
            self._made = (path, Planner(layout, self._mirror, self._readers, self._settings))
        return self._made[1]

    async def prepare(self) -> None:
        """Build what planning needs beside the loop, so that the first keystroke does not wait for it."""
        with contextlib.suppress(Loading, NotSupported):
            await asyncio.to_thread(self.planner)


def _tokenizer(exported: Path, note: str, model: Path) -> Tokenizer:
    """From the exported vocabulary; from the model's own file where only llama.cpp can split its text.

    Raises NotSupported.
    """
    try:
        vocabulary = load(exported)
        if not note:
            return TiktokenTokenizer(vocabulary)
    except VocabularyUnusable as error:
        raise NotSupported(str(error), "Restart the daemon: the vocabulary is exported anew") from error
    from daemon.engine.words import Words  # noqa: PLC0415 - llama.cpp in this process only where it must be

    return Words(model, vocabulary.control)
