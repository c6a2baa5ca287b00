"""A draft model of its own: what it drafts, when it is asked, and when it is given up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import tiny
from support.driven import CHEAP, costs, drive, ids
from support.ticking import load

from daemon.engine.binding import Context, Model, Part
from daemon.engine.draftmodel import DraftModel, Sureness, incompatible
from daemon.engine.drafts import MODEL, Drafts
from daemon.engine.frames import Submit
from daemon.engine.vocabulary import Pieces
from daemon.errors import EngineFailed
from daemon.machine import FimIds
from indexer.tokens import to_bytes


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


@pytest.mark.parametrize(
    ("least", "probabilities", "taken"),
    [
        (0.7, [0.99] * 9, 5),  # the more, the less sure: 0.93 to the power of 5 is 0.696
        (0.7, [0.8, 0.8, 0.9], 2),
        (0.7, [0.4, 1.0], 1),  # known already
        (0.7, [0.29, 1.0], 0),
        (0.7, [0.9, 0.3, 1.0], 1),
        (0.1, [0.5, 0.2, 0.9, 0.9], 2),
        (0.0, [0.01] * 9, 9),
        (1.0, [1.0] * 9, 1),
    ],
)
def test_how_far_a_guess_goes(least: float, probabilities: list[float], taken: int) -> None:
    sureness, seen = Sureness(least), 0
    while seen < len(probabilities) and sureness.takes(probabilities[seen]):
        seen += 1
        if not sureness.goes_on:
            break
    assert seen == taken


def test_nothing_is_guessed_behind_the_end_of_the_text(model: Model, context: Context) -> None:
    text = np.arange(30, dtype=np.int32)
    drafter = DraftModel("tiny", context, np.zeros(model.n_vocab, np.bool_), sure=0.0)
    truth = greedy(model, text, 3)
    assert drafter.propose("r", text, 6, 1000, truth[2].__eq__).tolist() == truth
    assert drafter.evaluated == len(text) + 2, "nor evaluated"


def test_a_draft_ends_where_all_of_it_is_less_sure(model: Model, context: Context) -> None:
    text = np.arange(30, dtype=np.int32)
    first, second = greedy(model, text, 2)
    sure = [probability(context, text, first), probability(context, np.append(text, first), second)]
    assert sure[0] * sure[1] < min(sure)
    for least, length in ((0.99 * sure[0] * sure[1], 2), (1.01 * sure[0] * sure[1], 1), (1.01 * sure[0], 0)):
        drafter = DraftModel("tiny", context, np.zeros(model.n_vocab, np.bool_), sure=least)
        assert len(drafter.propose("r", text, 2, 1000)) == length
        context.cut(0, 0)


def probability(context: Context, text: np.ndarray, token: int) -> float:
    """Of `token` behind `text`."""
    context.decode(Part(text.astype(np.int32), 0, 0, 1))
    row = context.logits(1)[0].astype(np.float64)
    context.cut(0, 0)
    return float(np.exp(row[token] - row.max()) / np.exp(row - row.max()).sum())


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
