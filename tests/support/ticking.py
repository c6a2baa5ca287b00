"""A loop over a real context whose ticks the test makes itself, and what must hold after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from daemon.engine import vocabulary
from daemon.engine.binding import Context, Ids, Model, Part
from daemon.engine.device import Log
from daemon.engine.frames import Done, DraftSource, Message, Piece, Submit
from daemon.engine.loop import Loop
from daemon.engine.pages import Pages
from daemon.engine.paging import Paging
from daemon.engine.step import Draft, Drafter, Ends, endless, until
from daemon.engine.tree import Tree
from daemon.engine.vocabulary import Pieces
from daemon.nouns import Generation, Limits
from indexer.tokens import TiktokenTokenizer

PAGE = 96 * 1024
"""Bytes that a whole page of the tiny model does not exceed."""
FREE = Limits(lines="free", tokens=10)


def load(path: Path) -> Model:
    """The model of a test module."""
    log = Log()
    model = Model(path, 0, log)
    log.close()
    return model


class Ticking:
    """Submit, tick, look. `batches` lists every decode as its parts."""

    def __init__(
        self,
        model: Model,
        *,
        cells: int = 1024,
        sequences: int = 16,
        slots: int = 8,
        drafter: Drafter | None = None,
        flash: bool = False,
    ) -> None:
        exported, _ = vocabulary.export(model, "loop-test-vocabulary")
        self.tokenizer = TiktokenTokenizer(exported)
        kv_type = "f16+bf16" if flash else "f16"
        self.context = Context(
            model, cells=cells, sequences=sequences, batch=64, threads=1, kv_type=kv_type, flash=flash
        )
        pieces = Pieces(exported.pieces)
        self.loop = Loop(self.context, pieces, 4096, self._take, drafter=drafter, slots=slots)
        self.loop.slice = 16
        self.done: dict[str, Generation] = {}
        self.text: dict[str, str] = {}
        self.messages = 0
        self.number = 0
        self.paging: Paging | None = None
        self.batches: list[tuple[Part, ...]] = []
        self._decode = self.context.decode
        self.context.decode = self._recorded  # type: ignore[method-assign]

    def _recorded(self, *parts: Part) -> bool:
        self.batches.append(parts)
        return self._decode(*parts)

    def _take(self, message: Message) -> None:
        self.messages += 1
        if isinstance(message, Done):
            assert message.id not in self.done, "ended twice"
            self.done[message.id] = message.generation
            self.text[message.id] = self.text.get(message.id, "") + message.rest
        elif isinstance(message, Piece):
            self.text[message.id] = self.text.get(message.id, "") + message.text

    def submit(self, what: str | Ids, **more: object) -> str:
        """Queue a job; its id."""
        self.number += 1
        tokens = self.tokenizer.encode(what) if isinstance(what, str) else what.astype("<i4").tobytes()
        fields = {"limits": FREE, **more}
        job = Submit(id=str(self.number), tokens=tokens, **fields)  # type: ignore[arg-type]
        self.loop.lanes.submit(job)
        return job.id

    def tick(self, times: int = 1) -> None:
        """Let the engine make so many ticks."""
        for _ in range(times):
            self.loop.tick()

    def finish(self, *jobs: str, within: int = 4000) -> list[Generation]:
        """Tick until all of `jobs` are done."""
        for _ in range(within):
            if all(job in self.done for job in jobs):
                return [self.done[job] for job in jobs]
            self.tick()
        raise AssertionError(f"not done after {within} ticks")

    def ask(self, what: str | Ids, **more: object) -> Generation:
        """One job from beginning to end."""
        return self.finish(self.submit(what, **more))[0]

    def page(self, folder: Path, host: int, disk: int = 0, leaving_s: float = 20.0) -> Paging:
        """From now on keep pages, so many in host memory and on disk, each as soon as it is quiet."""
        pages = Pages(
            self.context,
            self.loop.tree.scratch,
            b"i" * 32,
            host_bytes=host * PAGE,
            disk_bytes=disk * PAGE,
            folder=folder,
        )
        self.loop.paging = self.paging = Paging(
            self.loop.tree, pages, ahead_s=0.0, rest_s=0.0, leaving_s=leaving_s
        )
        return self.paging

    def close(self) -> None:
        """Free the context."""
        if self.paging is not None:
            self.paging.close()
        self.context.close()


class Scripted:
    """A drafter that knows the answers, and errs where it is told to."""

    def __init__(self, wrong_at: int = -1) -> None:
        self.answers: dict[str, Sequence[int]] = {}
        """Run id → the tokens that the model will choose."""
        self.wrong_at = wrong_at
        self.most = 4
        self.learnt: list[tuple[int, int]] = []
        self.running: dict[str, Callable[[], Ends]] = {}
        self.paused: list[str] = []

    def begin(self, job: Submit, ahead: Callable[[], Ends] = endless) -> None:
        self.running[job.id] = ahead

    def propose(self, run_id: str, prompt: Ids, generated: Sequence[int], room: int) -> Draft:
        assert room > 0
        assert generated
        begin = len(generated)
        tokens = np.array(self.answers.get(run_id, ())[begin : begin + min(room, self.most)], np.int32)
        if 0 <= self.wrong_at - begin < len(tokens):
            tokens[self.wrong_at - begin] = (tokens[self.wrong_at - begin] + 1) % 250
        return Draft(until(tokens, self.running[run_id]()), "script")

    def learn(self, draft: Draft, accepted: int) -> None:
        assert 0 <= accepted <= len(draft.tokens) <= accepted + 1
        self.learnt.append((len(draft.tokens), accepted))

    def pause(self, run_id: str) -> None:
        assert run_id in self.running
        self.paused.append(run_id)

    def end(self, run_id: str, tokens: Sequence[int]) -> None:
        del self.running[run_id]

    def report(self) -> tuple[DraftSource, ...]:
        return ()


def check(tree: Tree, context: Context) -> None:
    """Cells, sequences and lengths, counted again from nothing."""
    residents = tree.residents
    held = [r.cells[: r.n] for r in residents if r.n]
    distinct = np.unique(np.concatenate(held)) if held else np.zeros(0, np.int32)
    assert tree.cells_used == len(distinct) <= context.cells
    named = [r.sequence for r in residents]
    assert len(set(named)) == len(named)
    lengths = {r.sequence: r.n for r in residents}
    for sequence in range(context.sequences):
        assert context.last_position(sequence) == lengths.get(sequence, 0) - 1
    assert tree.scratch not in named
    for resident in residents:
        assert (np.diff(resident.cells[: resident.n]) > 0).all()
        for other in residents:
            shared = np.flatnonzero(resident.cells[: resident.n] == other.cells[: resident.n])
            if other is not resident and len(shared):
                upto = min(int(shared[-1]) + 1, other.n)
                if len(np.intersect1d(resident.cells[:upto], other.cells[:upto])) == upto:
                    assert np.array_equal(resident.tokens[:upto], other.tokens[:upto])


@pytest.fixture
def ticking(model: Model) -> Iterator[Callable[..., Ticking]]:
    """Makes loops, and frees them."""
    made: list[Ticking] = []

    def make(**options: object) -> Ticking:
        made.append(Ticking(model, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        check(one.loop.tree, one.context)
        one.close()


def ids(n: int, seed: int = 1) -> Ids:
    return np.array([(i * i * 7 + i * 37 + seed * 11) % 250 for i in range(n)], np.int32)
