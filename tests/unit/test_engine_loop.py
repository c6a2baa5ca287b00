"""The loop over a real context: what is reused changes nothing, what is abandoned costs at most a slice."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from daemon.engine import vocabulary
from daemon.engine.binding import Context, Model
from daemon.engine.frames import Done, Message, Submit
from daemon.engine.loop import Loop
from daemon.engine.vocabulary import Pieces
from daemon.nouns import Generation, Limits, Sampling
from indexer.tokens import TiktokenTokenizer


class Bench:
    """A loop on its own thread; `ask` waits for one job's generation."""

    def __init__(self, model: Model, cells: int) -> None:
        exported, _ = vocabulary.export(model, "loop-test-vocabulary")
        self.tokenizer = TiktokenTokenizer(exported)
        context = Context(model, cells=cells, sequences=6, batch=64, threads=1, kv_type="f16", flash=False)
        self.loop = Loop(context, Pieces(exported.pieces), 4096, self._take)
        self.loop.slice = 16
        self.done: dict[str, Generation] = {}
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.loop.run)
        self.thread.start()
        self.number = 0

    def _take(self, message: Message) -> None:
        if isinstance(message, Done):
            with self.changed:
                self.done[message.id] = message.generation
                self.changed.notify_all()

    def submit(self, text: str, **more: object) -> str:
        self.number += 1
        fields = {"limits": Limits(lines="free", tokens=10), **more}
        job = Submit(id=str(self.number), tokens=self.tokenizer.encode(text), **fields)  # type: ignore[arg-type]
        self.loop.lanes.submit(job)
        return job.id

    def wait(self, job_id: str) -> Generation:
        with self.changed:
            assert self.changed.wait_for(lambda: job_id in self.done, 20)
            return self.done.pop(job_id)

    def ask(self, text: str, **more: object) -> Generation:
        return self.wait(self.submit(text, **more))

    def close(self) -> None:
        self.loop.lanes.close()
        self.thread.join(10)


@pytest.fixture
def bench(model: Model) -> Iterator[Bench]:
    made = Bench(model, cells=1024)
    yield made
    made.close()


TEXT = "import order\n\n\ndef total(items):\n    price = None\n    for item in items:\n        "


def test_the_same_question_is_answered_without_evaluation(bench: Bench) -> None:
    first, second = bench.ask(TEXT), bench.ask(TEXT)
    assert second.text == first.text
    assert second.tokens == first.tokens
    assert (second.counters.evaluated, second.counters.steps) == (0, 0)
    assert second.counters.reused == second.counters.prompt


def test_typing_along_the_answer_needs_no_model(bench: Bench) -> None:
    """The healed remainder of a greedy answer is what a fresh run gives, and it costs nothing."""
    first = bench.ask(TEXT)
    for n in range(1, 4):
        must = first.text[:n].encode()
        along = bench.ask(TEXT, must=must)
        fresh = bench.ask(TEXT, must=must, cache=False)
        assert along.text == fresh.text == first.text.removeprefix(must.decode())[: len(along.text)]
    assert bench.ask(TEXT, must=first.text[:1].encode()).counters.steps == 0


def test_typing_against_the_answer_asks_the_model(bench: Bench) -> None:
    first = bench.ask(TEXT)
    other = "#" if not first.text.startswith("#") else "%"
    against = bench.ask(TEXT, must=other.encode())
    assert against.counters.steps > 0
    assert against.text == bench.ask(TEXT, must=other.encode(), cache=False).text


def test_a_longer_answer_continues_the_shorter(bench: Bench) -> None:
    short = bench.ask(TEXT, limits=Limits(lines="free", tokens=4))
    longer = bench.ask(TEXT, limits=Limits(lines="free", tokens=12))
    assert longer.text.startswith(short.text)
    assert longer.text == bench.ask(TEXT, limits=Limits(lines="free", tokens=12), cache=False).text


def test_sampled_answers_are_never_replayed_as_greedy(bench: Bench) -> None:
    greedy = bench.ask(TEXT)
    for seed in range(5):
        bench.ask(TEXT, sampling=Sampling(temperature=1.5, seed=seed))
    assert bench.ask(TEXT).text == greedy.text == bench.ask(TEXT, cache=False).text


def test_random_edits_equal_fresh_evaluations(bench: Bench) -> None:
    """300 edits as people make them: insertions, deletions, jumps; every cached answer equals a fresh one."""
    random_ = random.Random(3)
    text = TEXT
    for step in range(300):
        kind = random_.random()
        if kind < 0.2:
            text = text[: -random_.randrange(1, 6)] or TEXT
        elif kind < 0.25:
            text = TEXT[: random_.randrange(20, len(TEXT))]
        else:
            text += random_.choice(["order", " price", "\n    ", "for", ".", "(", ")", "self", " in ", "é"])
        text = text[-600:]
        must = random_.choice([b"", b"", b" o", b"re"])
        cached = bench.ask(text, must=must)
        fresh = bench.ask(text, must=must, cache=False)
        assert cached.text == fresh.text, step
        counters = cached.counters
        assert counters.prompt == counters.reused + counters.evaluated


def test_a_prompt_near_the_window_stops_with_window(model: Model) -> None:
    bench = Bench(model, cells=256)
    prompt = "x" * 250
    answer = bench.ask(prompt, limits=Limits(lines="free", tokens=64))
    assert answer.stop in ("window", "eos")
    assert bench.ask("x" * 300).stop == "window"
    assert bench.ask(TEXT[:60]).stop in ("limit", "eos")
    bench.close()


def test_forty_abandoned_requests_cost_at_most_a_slice_each(bench: Bench) -> None:
    endless = Limits(lines="free", tokens=4000)
    ids = []
    for n in range(40):
        ids.append(bench.submit(f"{n} " * 100, limits=endless))
        if n:
            bench.loop.lanes.cancel(ids[n - 1], "cancelled")
    bench.loop.lanes.cancel(ids[-1], "cancelled")
    for job_id in ids:
        assert bench.wait(job_id).stop in ("cancelled", "eos", "window")
    report = bench.loop.report(0)
    assert report.after_slice == 0
    assert max(report.idle_slices, default=0) <= 1


def test_a_deadline_ends_prompt_evaluation(bench: Bench) -> None:
    answer = bench.ask("y " * 400, limits=Limits(deadline=0))
    assert (answer.stop, answer.text) == ("time", "")
    assert answer.counters.evaluated == 0


def test_background_gives_way_and_its_work_is_kept(bench: Bench) -> None:
    warm = bench.submit("z " * 400, warm=True, lane="warm")
    key = bench.submit(TEXT)
    assert bench.wait(key).text
    assert bench.wait(warm).stop in ("superseded", "warm")
