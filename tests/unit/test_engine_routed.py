"""Routing: the draft model answers alone what is simple, exactly as if it were the main model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import tiny

from daemon import replay
from daemon.engine.binding import Context, Model
from daemon.engine.client import EngineClient, EngineModel
from daemon.engine.draftmodel import DraftModel
from daemon.engine.frames import Done, Message, Piece, Start, Submit
from daemon.engine.loop import Loop
from daemon.engine.startup import build
from daemon.engine.vocabulary import Pieces
from daemon.errors import BadRequest
from daemon.nouns import CompletionRequest, Generation, Limits
from daemon.observe.entries import Entry
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Engine, Recall, Settings
from tests.support import ticking

PROMPT = np.random.default_rng(5).integers(0, 250, 150).astype(np.int32)


class Answering:
    """A loop over one context, and what it says."""

    def __init__(self, model: Model) -> None:
        self.context = small_context(model, 512)
        self.said: list[Message] = []
        self.pieces = Pieces(model.pieces())
        self.loop = Loop(self.context, self.pieces, 512, self.said.append)

    def submit(self, name: str, **more: object) -> None:
        fields = {"tokens": PROMPT.tobytes(), "limits": Limits(lines="free", tokens=12), **more}
        self.loop.lanes.submit(Submit(id=name, **fields))  # type: ignore[arg-type]

    def done(self, name: str) -> Generation | None:
        found = [one.generation for one in self.said if isinstance(one, Done) and one.id == name]
        return found[0] if found else None

    def ask(self, name: str, **more: object) -> Generation:
        self.submit(name, **more)
        while (generation := self.done(name)) is None:
            self.loop.tick()
        pieces = [one.text for one in self.said if isinstance(one, Piece) and one.id == name]
        ends = [one.rest for one in self.said if isinstance(one, Done) and one.id == name]
        assert "".join(pieces + ends) == generation.text
        counters = generation.counters
        assert counters.prompt == counters.reused + counters.evaluated == len(PROMPT)
        return generation


def small_context(model: Model, cells: int) -> Context:
    return Context(model, cells=cells, sequences=4, batch=64, threads=1, kv_type="f16", flash=False)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> tuple[Model, Model]:
    """Two of one vocabulary that say different things."""
    other = tiny.write(tmp_path_factory.mktemp("small") / "small.gguf", seed=11)
    return ticking.load(tiny_model), ticking.load(other)


@pytest.fixture
def alone(models: tuple[Model, Model]) -> Iterator[Answering]:
    """What the small model says as a main model."""
    made = Answering(models[1])
    yield made
    made.context.close()


@pytest.fixture
def both(models: tuple[Model, Model]) -> Iterator[Answering]:
    made = Answering(models[0])
    yield made
    made.context.close()


def route(both: Answering, model: Model, cells: int = 512) -> DraftModel:
    small = DraftModel("small", small_context(model, cells), both.pieces.control, sure=0.0)
    both.loop.route(small)
    return small


@pytest.mark.parametrize("must", [b"", b"r"])
def test_what_is_simple_is_what_the_small_model_says(
    both: Answering, alone: Answering, models: tuple[Model, Model], must: bytes
) -> None:
    main = both.ask("main", must=must)
    small = route(both, models[1])
    expected = alone.ask("alone", must=must)
    decodes = both.context.decodes
    first = both.ask("simple", must=must, simple=True)
    assert both.context.decodes == decodes
    assert (first.tokens, first.text, first.stop) == (expected.tokens, expected.text, expected.stop)
    assert first.tokens != main.tokens
    assert (first.counters.small, first.counters.evaluated) == ("small", len(PROMPT))
    again = both.ask("again", must=must, simple=True)
    assert again.tokens == first.tokens
    assert again.counters.reused == len(PROMPT) - 1
    other = both.ask("other", must=must)
    assert (other.tokens, other.counters.small) == (main.tokens, "")
    small.close()


def test_measurements_and_warming_stay_with_the_main_model(
    both: Answering, models: tuple[Model, Model]
) -> None:
    small = route(both, models[1])
    for number, more in enumerate(({"warm": True}, {"cache": False}, {"margins": True}, {"width": 4})):
        assert both.ask(str(number), simple=True, **more).counters.small == ""
    assert small.evaluated == 0
    small.close()


@pytest.mark.parametrize("cells", [100, 155])
def test_the_main_model_takes_over_where_there_is_no_room(
    both: Answering, models: tuple[Model, Model], cells: int
) -> None:
    """Before the first token, or behind some."""
    main = both.ask("main")
    small = route(both, models[1], cells)
    found = both.ask("simple", simple=True)
    assert (found.counters.small, found.counters.generated) == ("", main.counters.generated)
    assert (found.tokens == main.tokens) == (cells == 100)
    small.close()


def test_a_cancelled_one_costs_at_most_a_slice(both: Answering, models: tuple[Model, Model]) -> None:
    small = route(both, models[1])
    both.submit("gone", simple=True)
    both.loop.tick()
    before = small.evaluated
    both.loop.lanes.cancel("gone", "cancelled")
    both.loop.tick()
    generation = both.done("gone")
    assert generation is not None
    assert (generation.stop, small.evaluated) == ("cancelled", before)
    assert both.ask("next", simple=True).counters.small == "small"
    small.close()


@pytest.mark.parametrize("draft", [True, False])
def test_it_is_switched_on_at_start_and_noted_where_it_cannot_be(tiny_model: Path, draft: bool) -> None:
    settings = Engine(threads=1, route_simple=True)
    named = {"draft": str(tiny_model), "draft_name": "tiny"} if draft else {}
    start = Start(path=str(tiny_model), name="tiny", sha256="r", context=512, settings=settings, **named)
    said: list[Message] = []
    loop, ready = build(start, said.append)
    notes = () if draft else ("engine.route_simple has no effect: engine.draft_model names none",)
    assert ready.profile.chosen.notes == notes
    loop.lanes.submit(Submit(id="a", tokens=PROMPT.tobytes(), limits=Limits(tokens=4), simple=True))
    while not isinstance(said[-1], Done):
        loop.tick()
    assert said[-1].generation.counters.small == ("tiny" if draft else "")


async def test_only_a_simple_place_is_routed_and_its_row_says_so(tiny_model: Path) -> None:
    settings = Settings(engine=Engine(threads=1, route_simple=True, disk_mb=0), recall=Recall(on=False))
    model = EngineModel("tiny", tiny_model, "routed")
    client = EngineClient(settings, model, EngineModel("small", tiny_model, "small"))
    pipeline = Pipeline(client, settings, Metrics())
    rows: list[Entry] = []

    def record(*passed: object) -> None:
        assert client.profile is not None
        rows.append(replay.entry(*passed, profile=client.profile, build="b"))  # type: ignore[arg-type]

    pipeline.record = record
    await client.start()
    try:
        await asyncio.wait_for(client.ready.wait(), 60)
        comment = await pipeline.complete(request("1", "total = 1\n# the price of "))
        body = await pipeline.complete(request("2", "def total(items):\n    "))
        assert (comment.window.split(":")[0], comment.counters.small) == ("simple", "small")
        assert body.window.split(":")[0] != "simple"
        assert body.counters.small == ""
        assert [row.counters.small for row in rows] == ["small", ""]
        with pytest.raises(BadRequest, match="small answered alone"):
            await replay.replay(client, rows[0])
    finally:
        await pipeline.close()
        await client.close()


def request(name: str, prefix: str) -> CompletionRequest:
    return CompletionRequest(
        id=name,
        client="c",
        door="t",
        prefix=prefix,
        suffix="",
        path="/x/a.py",
        limits=Limits(tokens=6),
        comments=True,
    )
