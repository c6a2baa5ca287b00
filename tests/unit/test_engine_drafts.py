"""Which source drafts how much, judged by what is really generated, and a draft model of its own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from support import tiny
from support.ticking import load

from daemon.engine.binding import Context, Model, Part
from daemon.engine.costs import RowCosts
from daemon.engine.draftmodel import DraftModel, incompatible
from daemon.engine.drafts import MODEL, Drafts
from daemon.engine.frames import Submit
from daemon.engine.judging import MOST
from daemon.engine.vocabulary import Pieces
from daemon.engine.worth import Costs
from daemon.errors import EngineFailed
from daemon.nouns import FimIds, Sampling
from indexer.ngrams import NgramWriter
from indexer.tokens import to_bytes

PIECES = Pieces([bytes([65 + n % 26]) * (1 + n // 26) if n < 90 else b"" for n in range(100)])
FIM = FimIds(pre=90, suf=91, mid=92)


def costs(*points: tuple[int, float]) -> Costs:
    return Costs(RowCosts(points, 16))


CHEAP = costs((1, 10.0), (16, 12.0))
DEAR = costs((1, 10.0), (2, 40.0), (16, 400.0))
LAPTOP = costs((1, 10.0), (2, 12.0), (5, 19.0), (8, 30.0))


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


class Driven(NamedTuple):
    """Steps, tokens drafted, and tokens accepted by source."""

    steps: int
    drafted: int
    accepted: Counter[str]


def drive(drafts: Drafts, prompt: list[int], truth: list[int], run: str = "r", **more: object) -> Driven:
    """Let a request generate `truth`."""
    job = Submit(id=run, tokens=to_bytes(prompt), **more)  # type: ignore[arg-type]
    generated: list[int] = []
    steps = drafted = 0
    accepted: Counter[str] = Counter()
    drafts.begin(job)
    while len(generated) < len(truth):
        room = min(MOST, len(truth) - len(generated) - 1)
        draft = drafts.propose(run, ids(*prompt), generated, room)
        assert len(draft.tokens) <= room
        agreed = 0
        while agreed < len(draft.tokens) and draft.tokens[agreed] == truth[len(generated) + agreed]:
            agreed += 1
        if len(draft.tokens):
            drafts.learn(draft, agreed)
            accepted[draft.source] += agreed
        generated = truth[: len(generated) + agreed + 1]
        steps, drafted = steps + 1, drafted + len(draft.tokens)
    drafts.end(run, generated)
    return Driven(steps, drafted, accepted)


KNOWN = list(range(40))


def test_known_text_takes_few_steps() -> None:
    drafts = Drafts(PIECES, FIM, CHEAP)
    done = drive(drafts, [90, *KNOWN, 91, 50, 92, 3, 4, 5], KNOWN[6:36])
    assert done.steps <= 5
    assert done.accepted["own"] == done.drafted > 20
    own = next(source for source in drafts.report() if source.name == "own")
    assert own.length > 0
    assert "times as fast" in own.why


@pytest.mark.parametrize(("source", "prompt"), [
    ("suffix", [90, 1, 91, *KNOWN, 92, 3, 4]),
    ("context", [*KNOWN, 90, 1, 91, 50, 92, 3, 4]),
])  # fmt: skip
def test_every_part_of_the_prompt_is_a_source(source: str, prompt: list[int]) -> None:
    drafts = Drafts(PIECES, FIM, CHEAP)
    done = drive(drafts, prompt, KNOWN[5:25])
    assert done.steps <= 4
    assert done.accepted[source] > 0
    alone = Drafts(PIECES, FIM, CHEAP, only=frozenset({"own"}))
    assert drive(alone, prompt, KNOWN[5:25])[:2] == (20, 0)


def test_what_was_answered_before_is_a_source() -> None:
    drafts = Drafts(PIECES, FIM, CHEAP)
    prompt = [90, 60, 61, 91, 50, 92, 62, 63]
    assert drive(drafts, prompt, KNOWN)[:2] == (40, 0)
    again = drive(drafts, [90, 70, 91, 50, 92, 62, 63], KNOWN, "again")
    assert again.steps <= 6
    assert again.accepted["earlier"] > 30


def test_the_index_is_a_source(tmp_path: Path) -> None:
    writer = NgramWriter(tmp_path, vocabulary="v")
    writer.add_file("a", to_bytes(KNOWN))
    writer.commit()
    prompt = [90, 60, 91, 50, 92, 2, 3, 4]
    here = str(tmp_path)
    for vocabulary, fewest in (("v", 2), ("w", 20)):
        drafts = Drafts(PIECES, FIM, CHEAP, vocabulary=vocabulary)
        assert drive(drafts, prompt, KNOWN[5:25], ngrams=here)[0] == fewest


def test_nothing_is_drafted_where_rows_are_dear_and_all_of_it_when_the_width_is_fixed() -> None:
    prompt = [90, *KNOWN, 91, 50, 92, 3, 4, 5]
    drafts = Drafts(PIECES, FIM, DEAR)
    assert drive(drafts, prompt, KNOWN[6:36])[:2] == (30, 0)
    own = next(source for source in drafts.report() if source.name == "own")
    assert (own.length, own.steps) == (0, 0)
    assert own.why.startswith("off: verifying costs more")
    assert own.acceptance > 0.5
    assert drive(Drafts(PIECES, FIM, DEAR), prompt, KNOWN[6:36], width=8)[0] <= 5


def test_a_source_that_is_never_right_is_left_and_taken_up_again() -> None:
    """Random text over four ids matches everywhere and predicts nothing; a text that repeats does."""
    drafts = Drafts(PIECES, FIM, costs((1, 10.0), (2, 15.0), (8, 40.0)))
    rng = random.Random(3)
    prompt = [90, *(rng.randrange(4) for _ in range(300)), 91, 50, 92]
    for n in range(8):
        drive(drafts, prompt, [rng.randrange(4) for _ in range(40)], f"r{n}")
    assert drive(drafts, prompt, [rng.randrange(4) for _ in range(40)], "late").drafted <= 6
    for n in range(12):
        repeated = [90, *KNOWN, 91, 50, 92, 3 + n, 4 + n]
        drive(drafts, repeated, KNOWN[n + 5 : n + 12], f"k{n}")
    assert drive(drafts, [90, *KNOWN, 91, 50, 92, 3, 4], KNOWN[5:35], "end")[0] <= 16


def test_half_typed_words_are_completed_from_what_is_known() -> None:
    drafts = Drafts(PIECES, FIM, CHEAP)
    prompt = [90, 1, 2, 7, 8, 9, 10, 3, 1, 2, 20, 21, 22, 91, 50, 92, 1, 2]
    job = Submit(id="r", tokens=to_bytes(prompt), must=b"H")
    drafts.begin(job)
    assert drafts.propose("r", ids(*prompt), [], 3).tokens.tolist()[:3] == [7, 8, 9]


def test_sampled_text_has_an_acceptance_of_its_own() -> None:
    drafts = Drafts(PIECES, FIM, LAPTOP)
    prompt = [90, *KNOWN, 91, 50, 92, 3, 4]
    for n in range(30):
        drive(drafts, prompt, [5, 70 + n % 9, 80], f"s{n}", sampling=Sampling(temperature=1.0))
    assert drive(drafts, prompt, KNOWN[5:25], "greedy")[0] <= 8


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Model:
    return load(tiny_model)


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    made = Context(model, cells=256, sequences=4, batch=64, threads=1, kv_type="f16", flash=False)
    yield made
    made.close()


def greedy(model: Model, text: np.ndarray, count: int) -> list[int]:
    context = Context(model, cells=256, sequences=1, batch=64, threads=1, kv_type="f16", flash=False)
    rows, out = text, []
    for at in range(count):
        assert context.decode(Part(rows, 0 if at == 0 else len(text) + at - 1, 0, 1))
        out.append(int(context.logits(1)[0].argmax()))
        rows = ids(out[-1])
    context.close()
    return out


def test_the_draft_model_writes_what_it_would_write_alone(model: Model, context: Context) -> None:
    control = np.zeros(model.n_vocab, np.bool_)
    drafter = DraftModel("tiny", context, control, sure=0.0)
    prompt = np.arange(40, dtype=np.int32) % 200
    truth = greedy(model, prompt, 24)
    generated: list[int] = []
    while len(generated) < 20:
        text = np.concatenate([prompt, ids(*generated)])
        assert drafter.propose("r", text, 4, 1000).tolist() == truth[len(generated) : len(generated) + 4]
        generated = truth[: len(generated) + 3]
    assert drafter.evaluated <= 40 + 4 * 7 + 7
    assert drafter.lag("r", np.concatenate([prompt, ids(*truth[:3], 250)])) == 1
    with pytest.raises(EngineFailed, match="do not fit"):
        drafter.lag("r", np.zeros(256, np.int32))


def test_what_is_new_is_evaluated_in_portions(model: Model, context: Context) -> None:
    drafter = DraftModel("tiny", context, np.zeros(model.n_vocab, np.bool_), sure=0.0)
    text = np.arange(100, dtype=np.int32)
    assert [len(drafter.propose("r", text, 2, 40)) for _ in range(3)] == [0, 0, 2]
    assert drafter.evaluated == 101


def test_an_unsure_model_and_a_control_token_end_a_draft(model: Model, context: Context) -> None:
    text = np.arange(30, dtype=np.int32)
    never = DraftModel("tiny", context, np.zeros(model.n_vocab, np.bool_), sure=1.1)
    assert len(never.propose("r", text, 4, 1000)) == 0
    truth = greedy(model, text, 2)
    control = np.zeros(model.n_vocab, np.bool_)
    control[truth[0]] = True
    other = Context(model, cells=256, sequences=4, batch=64, threads=1, kv_type="f16", flash=False)
    ends = DraftModel("tiny", other, control, sure=0.0)
    assert ends.propose("r", text, 4, 1000).tolist() == truth[:1]
    ends.close()


def test_only_vocabularies_that_agree_are_compatible(tmp_path: Path, model: Model) -> None:
    pieces = model.pieces()
    assert incompatible(model, pieces, model, pieces) == ""
    spm = load(tiny.write(tmp_path / "spm.gguf", sentencepiece=True))
    assert incompatible(model, pieces, spm, spm.pieces()).startswith("token 0 is")
    padded = load(tiny.write(tmp_path / "padded.gguf", padding=64))
    assert incompatible(model, pieces, padded, padded.pieces()) == ""
    assert incompatible(padded, padded.pieces(), model, pieces) == ""
    renamed = load(tiny.write(tmp_path / "renamed.gguf", control=("<|end|>", *tiny.CONTROL[1:])))
    why = incompatible(model, pieces, renamed, renamed.pieces())
    assert why.startswith("control token")
    longer = load(tiny.write(tmp_path / "longer.gguf", control=(*tiny.CONTROL, "<|more|>")))
    assert "<|more|>" in incompatible(model, pieces, longer, longer.pieces())


def test_a_draft_model_that_pays_is_asked_and_one_that_cannot_is_not(model: Model, context: Context) -> None:
    pieces = Pieces(model.pieces())
    drafter = DraftModel("tiny", context, pieces.control, sure=0.0)
    prompt = [n % 200 for n in range(40)]
    truth = greedy(model, ids(*prompt), 24)
    steady = next((n for n, token in enumerate(truth) if pieces.control[token]), len(truth))
    slow = costs((1, 1e6), (16, 1.1e6))
    drafts = Drafts(pieces, FimIds(), slow, model=drafter, only=frozenset({MODEL}))
    done = drive(drafts, prompt, truth[:steady])
    assert done.steps <= steady // 4 + 3
    assert done.accepted[MODEL] == done.drafted
    drafter.step_ms = 1e12
    assert drive(drafts, prompt, truth[:steady], "again")[:2] == (steady, 0)
    assert "its own steps cost more" in drafts.report()[0].why


def test_a_draft_model_that_is_tried_again_catches_up_in_portions(model: Model, context: Context) -> None:
    """No step of the main model waits for more than what one step takes."""
    pieces = Pieces(model.pieces())
    drafter = DraftModel("tiny", context, pieces.control, sure=0.0)
    drafts = Drafts(pieces, FimIds(), costs((1, 1e6), (16, 1.1e6)), model=drafter, only=frozenset({MODEL}))
    prompt = [n % 200 for n in range(40)]
    wrong = [(token + 1) % 200 for token in greedy(model, ids(*prompt), 12)]
    for number in range(20):
        drive(drafts, prompt, wrong, f"wrong {number}")
    drafter.step_ms, drafter.prompt_ms = 3e5, 1e5
    longer = [(7 * n) % 200 for n in range(150)]
    drafts.begin(Submit(id="r", tokens=to_bytes(longer)))
    begun = drafter.evaluated
    while drafter.evaluated - begun < len(longer):
        before = drafter.evaluated
        drafts.propose("r", ids(*longer), [5], 4)
        assert drafter.evaluated - before <= 10 + 1
    tried = drafter.evaluated
    drafts.propose("r", ids(*longer), [5, 6], 4)
    assert drafter.evaluated == tried


def test_a_draft_model_without_room_serves_the_next_request(model: Model, context: Context) -> None:
    pieces = Pieces(model.pieces())
    drafter = DraftModel("tiny", context, pieces.control, sure=0.0)
    drafts = Drafts(pieces, FimIds(), CHEAP, model=drafter, only=frozenset({MODEL}))
    for number in range(20):
        drafts.begin(Submit(id=f"{number}", tokens=b""))
        drafts.propose(f"{number}", ids(*(n % 200 for n in range(150 + number))), [1], 4)
        assert drafter.evaluated > 0
    first, second = np.arange(150, dtype=np.int32), np.arange(50, 200, dtype=np.int32)
    for number in range(20):
        drafts.end(f"{number}", [])
    drafts.begin(Submit(id="first", tokens=b"", width=5))
    drafts.begin(Submit(id="second", tokens=b"", width=5))
    assert len(drafts.propose("first", first, [1], 4).tokens)
    assert not len(drafts.propose("second", second, [1], 4).tokens)
    assert drafts.model is drafter
    drafts.pause("first")
    drafts.begin(Submit(id="third", tokens=b"", width=5))
    assert len(drafts.propose("third", second, [1], 4).tokens)


def test_a_draft_model_whose_decodes_fail_is_given_up(model: Model, context: Context) -> None:
    pieces = Pieces(model.pieces())
    drafts = Drafts(pieces, FimIds(), CHEAP, model=DraftModel("tiny", context, pieces.control, sure=0.0))
    for number in range(20):
        assert (drafts.model is None) == (number >= 16)
        drive(drafts, [*range(20), -1], [1, 2, 3], f"{number}", width=4)
    assert drafts.note.startswith("given up: llama_decode")


def test_a_text_without_room_in_the_draft_model_is_written_all_the_same(
    model: Model, context: Context
) -> None:
    pieces = Pieces(model.pieces())
    drafter = DraftModel("tiny", context, pieces.control, sure=0.0)
    drafts = Drafts(pieces, FimIds(), CHEAP, model=drafter)
    prompt = [n % 200 for n in range(300)]
    assert drive(drafts, prompt, [1, 2, 3], width=4)[0] >= 1
    assert drafts.model is drafter
