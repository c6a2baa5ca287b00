"""A small model that drafts for the main one: its own context and cache tree, only new text is evaluated.

    prompt + generated → forget what was rejected → evaluate what is new → tokens, while it is sure of them

What the main model accepted stays evaluated here. Nothing is drafted that the main model could not have
written: the two vocabularies are compared token by token before the first draft.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from daemon.engine.binding import Context, Floats, Ids, Model, Part
from daemon.engine.costs import decode_ms
from daemon.engine.step import Ends
from daemon.engine.tree import Resident, Tree
from daemon.errors import EngineFailed

_SUREST = 0.93
"""Of tokens with a probability from 0.9 on, so many were accepted (0.5B for 1.5B): the more there are, the
less sure all of them are."""
_KNOWN = 0.3
"""Of less probable tokens two in five were accepted, of more probable ones two in three."""
_LEARNING, _HICCUP = 0.1, 3.0
_PROBE_ROWS = 64


class NoRoom(EngineFailed):
    """The draft model has no cells for a text now."""


def incompatible(main: Model, main_pieces: Sequence[bytes], draft: Model, pieces: Sequence[bytes]) -> str:
    """Why `draft` cannot draft for `main`, empty when it can. The pieces are `Model.pieces` of each.

    The same id must mean the same bytes, or the same control token; padding at the end may differ in length
    (Qwen's embeddings are padded by model size).
    """
    common = min(len(main_pieces), len(pieces))
    if list(main_pieces[:common]) != list(pieces[:common]):
        at = next(i for i in range(common) if main_pieces[i] != pieces[i])
        return f"token {at} is {main_pieces[at]!r} in one vocabulary and {pieces[at]!r} in the other"
    for at in range(common):
        if not pieces[at]:
            ours, theirs = main.text(at), draft.text(at)
            if ours and theirs and ours != theirs:
                return f"control token {at} is {ours!r} in one vocabulary and {theirs!r} in the other"
    longer, all_pieces = (main, main_pieces) if len(main_pieces) > common else (draft, pieces)
    for at in range(common, len(all_pieces)):
        if all_pieces[at] or longer.text(at):
            return f"one vocabulary ends at {common} tokens, the other has {longer.text(at)!r} behind them"
    return ""


class Sureness:
    """How far a guess goes: on while all of it has the probability `least`, and to the token behind. That one
    is known already and costs a row; every further one costs a step as well."""

    def __init__(self, least: float) -> None:
        self._least = least
        self._all = 1.0

    def takes(self, probability: float) -> bool:
        """Whether the next token belongs to it."""
        self._all *= min(probability, _SUREST)
        return self._all >= min(_KNOWN, self._least)

    @property
    def goes_on(self) -> bool:
        """Whether it is worth a step to know the next one."""
        return self._all >= self._least


class DraftModel:
    """Drafts greedily from one context. Engine thread only.

    `control` marks the tokens that end every text, shape (main vocabulary). `step_ms` and `prompt_ms` are
    what one row alone and one row among many cost; `sure` as `least` in Sureness.
    """

    def __init__(self, name: str, context: Context, control: npt.NDArray[np.bool_], sure: float) -> None:
        self.name = name
        self._context = context
        self._tree = Tree(context)
        self._control = control
        self._sure = sure
        self._known = min(len(control), context.model.n_vocab)
        self._weights: Floats = np.empty(self._known, np.float32)
        self._runs: dict[str, Resident] = {}
        self.step_ms = decode_ms(context, 1, 1)
        rows = min(_PROBE_ROWS, context.batch)
        self.prompt_ms = decode_ms(context, rows, 1) / rows
        self.evaluated = 0

    def lag(self, run_id: str, text: Ids) -> int:
        """Tokens of `text` to evaluate before the first draft. Raises NoRoom when it does not fit."""
        if len(text) >= self._context.cells:
            raise NoRoom(f"{len(text)} tokens do not fit {self._context.cells} cells")
        return len(text) - min(self._resident(run_id, text).match(text), len(text) - 1)

    def propose(self, run_id: str, text: Ids, most: int, rows: int, ends: Ends | None = None) -> Ids:
        """Up to `most` tokens that follow `text`, none behind the one that `ends` it, none while more than
        `rows` of it are not evaluated: then so many are, and the next call goes on. Raises NoRoom, and
        EngineFailed when a decode fails."""
        most = min(most, self._context.cells - len(text))
        if self.row(run_id, text, rows) is None:
            return text[:0]
        resident = self._runs[run_id]
        drafted: list[int] = []
        sureness = Sureness(self._sure)
        while len(drafted) < most:
            token, probability = self._best()
            if not sureness.takes(probability):
                break
            drafted.append(token)
            if not sureness.goes_on or self._control[token] or (ends is not None and ends(token)):
                break
            if len(drafted) < most:
                began = time.perf_counter()
                self._evaluate(resident, np.array([token], np.int32))
                self._learn((time.perf_counter() - began) * 1000.0)
        return np.array(drafted, np.int32)

    def row(self, run_id: str, text: Ids, rows: int) -> Floats | None:
        """Logits behind `text`, shape (common vocabulary,), valid until the next call; None while more than
        `rows` of it are not evaluated: then so many are. Raises as `propose` does."""
        resident = self._resident(run_id, text)
        self._tree.cut(resident, min(resident.match(text), len(text) - 1))
        if not self._catch_up(resident, text, rows):
            return None
        return self._last()

    def _last(self) -> Floats:
        """Logits behind what was evaluated last."""
        row: Floats = self._context.logits(1)[0][: self._known]
        return row

    def _learn(self, ms: float) -> None:
        """A step took so long. One that was disturbed says little."""
        self.step_ms += (min(ms, _HICCUP * self.step_ms) - self.step_ms) * _LEARNING

    def end(self, run_id: str) -> None:
        """The request is over; what is evaluated stays for the next one."""
        if (resident := self._runs.pop(run_id, None)) is not None:
            self._tree.release(resident)

    @property
    def calls(self) -> int:
        """Decode calls so far."""
        return self._context.decodes

    def close(self) -> None:
        """Free the context."""
        self._context.close()

    def _resident(self, run_id: str, text: Ids) -> Resident:
        if run_id not in self._runs:
            try:
                self._runs[run_id] = self._tree.acquire(text)
            except EngineFailed as busy:
                raise NoRoom(str(busy)) from busy
        return self._runs[run_id]

    def _catch_up(self, resident: Resident, text: Ids, rows: int) -> bool:
        end = min(len(text), resident.n + rows)
        while resident.n < end:
            self._evaluate(resident, text[resident.n : min(end, resident.n + self._context.batch)])
        return end == len(text)

    def _evaluate(self, resident: Resident, rows: Ids) -> None:
        if not self._tree.make_room(len(rows)):
            raise NoRoom(f"{resident.n + len(rows)} tokens do not fit {self._context.cells} cells")
        if not self._context.decode(Part(rows, resident.n, resident.sequence, 1)):
            raise EngineFailed("a draft was interrupted")
        self._tree.extend(resident, rows)
        self.evaluated += len(rows)

    def _best(self) -> tuple[int, float]:
        """The most probable token behind what was evaluated last, and its probability."""
        row = self._last()
        token = int(row.argmax())
        np.subtract(row, row[token], out=self._weights)
        np.exp(self._weights, out=self._weights)
        return token, 1.0 / float(self._weights.sum())
