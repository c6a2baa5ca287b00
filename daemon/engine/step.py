"""What passes between a request's work and the tick that evaluates rows for all requests, and what a
drafter is to both."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from daemon.engine.binding import Floats, Ids
from daemon.engine.frames import DraftSource, Submit


class Want(NamedTuple):
    """Rows to evaluate at the end of the run's sequence, with logits for the last `outputs` of them."""

    rows: Ids
    outputs: int = 0
    divisible: bool = False
    """The first rows alone help as well: a tick may take less, and gives the logits that belong to those."""
    alone: bool = False
    """No row of another run may be in the same decode: the shape of the batch is what is measured."""


class Got(NamedTuple):
    """`taken` rows of the want were evaluated; 0: none, look whether to go on and ask again. `logits`, shape
    (outputs, vocabulary), belong to the last rows taken and are valid until the run wants something again."""

    taken: int = 0
    logits: Floats | None = None


Steps = Generator[Want, Got, None]
NOTHING = np.zeros(0, np.int32)
WAIT = Want(NOTHING)
"""Nothing can be evaluated before another run has come further."""


Ends = Callable[[int], bool]
"""Takes the tokens that may follow one after the other, and says of each whether the text ends with it."""


def endless() -> Ends:
    """Of a text that only its limits end."""
    return lambda token: False


def until(tokens: Ids, ends: Ends) -> Ids:
    """None of `tokens` behind the one that ends the text."""
    for n, token in enumerate(tokens.tolist(), 1):
        if ends(token):
            return tokens[:n]
    return tokens


class Draft(NamedTuple):
    """Tokens that may follow, shape (k,), and who guessed them."""

    tokens: Ids = NOTHING
    source: str = ""


class Drafter(Protocol):
    """Guesses what the model will say. Called by the engine thread only."""

    def begin(self, job: Submit, ahead: Callable[[], Ends] = endless) -> None:
        """A run starts; `job.id` names it in every later call, and `ahead()` says at each of them where
        its text ends."""
        ...

    def propose(self, run_id: str, prompt: Ids, generated: Sequence[int], room: int) -> Draft:
        """At most `room` ids of the model's vocabulary that may follow `prompt` and `generated`, whose last
        token is about to be evaluated together with the draft; none behind the one that ends the text. An
        empty draft costs nothing."""
        ...

    def learn(self, draft: Draft, accepted: int) -> None:
        """Of a draft's tokens the first `accepted` were what the model chose, and the next, if there is one,
        was not. A draft that the end of the text cut short comes back as far as it was looked at."""
        ...

    def pause(self, run_id: str) -> None:
        """The run's cells go to others; it may go on later."""
        ...

    def end(self, run_id: str, tokens: Sequence[int]) -> None:
        """The run is over; `tokens` were generated."""
        ...

    def report(self) -> tuple[DraftSource, ...]:
        """Whether drafting pays, for status. May be called from any thread."""
        ...
