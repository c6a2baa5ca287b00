"""From a row of logits to the next token: greedy, temperature with top-k and top-p, and healing.

Healing takes the half-typed word off the prompt and lets the model write it again: only tokens whose bytes
agree with what is owed are allowed, until it is paid. Method: token healing as in guidance, by byte prefix.
"""

from __future__ import annotations

import numpy as np

from daemon.engine.binding import Floats, Ids
from daemon.engine.vocabulary import Pieces
from daemon.nouns import Sampling

NO_RIVAL = 1e9
"""The margin of a choice without a second candidate: finite, because margins travel as JSON."""


class Sampler:
    """Chooses tokens for one request. `owed` are the bytes that must still be reproduced."""

    def __init__(self, sampling: Sampling, pieces: Pieces, must: bytes) -> None:
        self._sampling = sampling
        self._pieces = pieces
        self._random: np.random.Generator | None = None
        """Made when it is first drawn from: most requests never draw."""
        self._values: Floats | None = None
        self.owed = must

    def choose(self, row: Floats) -> int:
        """The next token for this row of logits, shape (vocabulary,)."""
        allowed = self._pieces.agreeing(self.owed) if self.owed else None
        if allowed is not None and len(allowed) == 0:
            allowed = None  # bytes no token can produce: the rest of the word is given up, never the answer
            self.owed = b""
        values = self._values = row if allowed is None else row[allowed]
        index = int(values.argmax()) if self._sampling.temperature <= 0 else self._draw(values)
        return index if allowed is None else int(allowed[index])

    def margin(self) -> float:
        """Best logit minus second best among what the last choice allowed; NO_RIVAL for a single candidate.

        Valid until the next decode, like the row it was chosen from.
        """
        if self._values is None or len(self._values) < 2:
            return NO_RIVAL
        two = np.partition(self._values, -2)[-2:]
        return float(two[1] - two[0])

    def pay(self, token: int) -> bytes:
        """Take `token`; returns its bytes beyond what was owed."""
        piece = self._pieces.pieces[token]
        paid = min(len(piece), len(self.owed))
        self.owed = self.owed[paid:]
        return piece[paid:]

    def _best(self, values: Floats) -> Ids:
        """Places of the values that may be drawn, best first: to sort all of 152k takes 10 ms."""
        k = self._sampling.top_k
        if not 0 < k < len(values):
            return np.argsort(values)[::-1].astype(np.int32)
        some = np.argpartition(values, -k)[-k:]
        return some[np.argsort(values[some])[::-1]].astype(np.int32)

    def _draw(self, values: Floats) -> int:
        order = self._best(values)
        scaled = values[order].astype(np.float64) / self._sampling.temperature
        weights = np.exp(scaled - scaled.max())
        weights /= weights.sum()
        keep = int(np.searchsorted(weights.cumsum(), min(self._sampling.top_p, 1.0))) + 1
        weights = weights[:keep] / weights[:keep].sum()
        random = self._random = self._random or np.random.default_rng(self._sampling.seed)
        return int(order[random.choice(len(weights), p=weights)])
