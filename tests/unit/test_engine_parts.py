"""The engine's parts over a real llama.cpp context with a tiny random-weight model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_cpp import llama_cpp as lib

from daemon.engine import costs, frames, vocabulary
from daemon.engine.binding import Context, Model, Part
from daemon.engine.device import Log
from daemon.engine.frames import Cancel, Piece, Start, Submit, Unpacker, pack
from daemon.engine.tree import Tree
from daemon.errors import EngineFailed, ModelError
from daemon.settings import Engine
from indexer import tokens
from indexer.errors import VocabularyUnusable
from indexer.vocabulary import FORMAT, Vocabulary, load


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    made = Context(model, cells=512, sequences=6, batch=64, threads=1, kv_type="f16", flash=False)
    yield made
    made.close()


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def feed(context: Context, tree: Tree, tokens_: np.ndarray) -> tuple[int, np.ndarray]:
    """Evaluate through the tree; (reused, logits of the last token)."""
    resident = tree.acquire(tokens_)
    tree.cut(resident, len(tokens_) - 1)
    reused = resident.n
    while resident.n < len(tokens_):
        rows = tokens_[resident.n : resident.n + 16]
        if not tree.make_room(len(rows)):
            raise EngineFailed(f"{len(tokens_)} tokens do not fit {context.cells} cells")
        assert context.decode(Part(rows, resident.n, resident.sequence, 1))
        tree.extend(resident, rows)
    tree.release(resident)
    return reused, context.logits(1)[0].copy()


def test_model_facts(model: Model) -> None:
    facts = model.facts("tiny", "x")
    assert facts.fim.usable
    assert facts.architecture == "qwen2"
    assert facts.trained_context == 4096


def test_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)
    log = Log()
    with pytest.raises(ModelError, match=r"bad\.gguf"):
        Model(path, 0, log)
    log.close()


def test_exported_vocabulary_equals_llama_cpp(model: Model) -> None:
    exported, _ = vocabulary.export(model, "unit-test-vocabulary")
    assert exported.note == ""
    ours = tokens.TiktokenTokenizer(exported)
    for text in (
        "def total(items):\n    return None\n",
        "é你👨‍👩‍👧 \t\r\n\n\n  x",
        "",
        "<|fim_prefix|>a<|endoftext|>",
    ):
        assert tokens.to_ids(ours.encode(text)) == model.tokenize(text)


def test_text_never_becomes_a_control_token(model: Model) -> None:
    exported, _ = vocabulary.export(model, "unit-test-vocabulary")
    control = {i for i, piece in enumerate(exported.pieces) if not piece}
    assert len(control) == 7
    text = "".join(f"<|{n}|>" for n in ("endoftext", "fim_prefix", "fim_middle", "fim_suffix", "fim_pad"))
    assert not control & set(tokens.to_ids(tokens.TiktokenTokenizer(exported).encode(text)))


def test_a_rendered_prompt_has_the_ids_that_llama_cpp_gives_it(model: Model) -> None:
    exported, _ = vocabulary.export(model, "unit-test-vocabulary")
    assert sorted(exported.control.values()) == [i for i, piece in enumerate(exported.pieces) if not piece]
    ours = tokens.TiktokenTokenizer(exported)
    for text in (
        "<|fim_prefix|>def total(\r\n<|fim_suffix|>)\n\n  é<|fim_middle|>",
        "<|repo_name|>shop\n<|file_sep|>a.py\nx = 1\n<|endoftext|><|fim_none|> <|fim_prefix|",
        "return self",
        "",
    ):
        raw, out = text.encode(), (lib.llama_token * 200)()
        n = lib.llama_tokenize(model.vocab, raw, len(raw), out, len(out), False, True)
        assert tokens.to_ids(tokens.encode_rendered(ours, text)) == list(out[:n])


def test_damaged_vocabulary_is_exported_anew(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "v"
    path.write_bytes(b"\xc1 not msgpack")
    with pytest.raises(VocabularyUnusable, match="damaged"):
        load(path)
    with pytest.raises(VocabularyUnusable, match="no vocabulary"):
        load(tmp_path / "absent")


def test_unknown_pre_tokenizer_is_named() -> None:
    made = Vocabulary(format=FORMAT, sha256="x", kind="bpe", pre="martian", pieces=[])
    with pytest.raises(VocabularyUnusable, match="martian"):
        tokens.TiktokenTokenizer(made)


def test_the_longest_match_is_reused(context: Context) -> None:
    tree = Tree(context)
    base = np.arange(100, 200, dtype=np.int32)
    assert feed(context, tree, base)[0] == 0
    assert feed(context, tree, base)[0] == 99
    assert feed(context, tree, np.append(base, ids(5, 6, 7)))[0] == 100
    assert len(tree.residents) == 1
    other = np.append(base[:20], np.arange(10, 60, dtype=np.int32))
    assert feed(context, tree, other)[0] == 20
    assert len(tree.residents) == 2
    assert feed(context, tree, np.append(base, ids(9)))[0] == 100, "the first sequence is still there"


def test_cached_logits_equal_fresh_ones(context: Context, model: Model) -> None:
    tree = Tree(context)
    base = np.arange(50, 130, dtype=np.int32)
    feed(context, tree, base)
    feed(context, tree, np.append(base[:40], ids(*range(1, 30))))
    cached = feed(context, tree, np.append(base, ids(3, 1, 4)))[1]
    alone = Context(model, cells=512, sequences=6, batch=64, threads=1, kv_type="f16", flash=False)
    fresh = feed(alone, Tree(alone), np.append(base, ids(3, 1, 4)))[1]
    alone.close()
    assert np.abs(cached - fresh).max() < 1e-3
    assert cached.argmax() == fresh.argmax()


def test_full_cache_evicts_the_oldest(context: Context) -> None:
    tree = Tree(context)
    for seed in range(8):
        feed(context, tree, (np.arange(150, dtype=np.int32) * 7 + seed * 31) % 250)
        assert tree.cells_used <= context.cells
    assert len(tree.residents) <= 3


def test_a_prompt_beyond_all_cells_is_refused(context: Context) -> None:
    tree = Tree(context)
    with pytest.raises(EngineFailed, match="do not fit"):
        feed(context, tree, np.arange(600, dtype=np.int32) % 250)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 90), st.integers(0, 4)), max_size=12))
def test_cells_are_counted_exactly(model: Model, steps: list[tuple[int, int, int]]) -> None:
    """Against a plain model: every resident's tokens are what was fed, and llama.cpp agrees on its length."""
    context = Context(model, cells=256, sequences=4, batch=64, threads=1, kv_type="f16", flash=False)
    tree = Tree(context)
    for family, length, tail in steps:
        wanted = np.append((np.arange(length) * (family + 3)) % 200, ids(*[200 + family] * tail)).astype(
            np.int32
        )
        feed(context, tree, wanted)
        assert any(np.array_equal(r.tokens[: r.n], wanted) for r in tree.residents)
        assert tree.cells_used <= context.cells
        for resident in tree.residents:
            assert context.last_position(resident.sequence) == resident.n - 1
    context.close()


def test_abort_stops_a_decode_and_the_context_goes_on(context: Context) -> None:
    context.abort()
    assert context.decode(Part(ids(*range(60)), 0, 1, 1)) is False
    context.arm()
    assert context.last_position(1) == -1
    assert context.decode(Part(ids(*range(60)), 0, 1, 1)) is True


def test_oversized_batch_is_an_error_not_a_crash(context: Context) -> None:
    with pytest.raises(EngineFailed):
        context.decode(Part(ids(*range(65)), 0, 0, 1))
    with pytest.raises(EngineFailed):
        context.decode(Part(ids(1, 2), 0, 0, 3))


def test_frames_survive_any_portions() -> None:
    sent = [
        Start(path="p", name="n", sha256="s", context=1, settings=Engine()),
        Submit(id="a", tokens=b"\1\0\0\0", must=b"\xff"),
        Piece(id="a", text="é"),
        Cancel(id="a"),
    ]
    data = b"".join(pack(m) for m in sent)
    for size in (1, 3, 1000):
        unpacker, got = Unpacker(), []
        for at in range(0, len(data), size):
            got += unpacker.feed(data[at : at + size])
        assert got == sent


def test_an_oversized_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="beyond"):
        list(Unpacker().feed((frames.MAX_FRAME + 1).to_bytes(4, "big")))


def test_costs(context: Context) -> None:
    prefill, verify = costs.measure(context)
    assert prefill[0][0] == verify[0][0] == 1
    assert all(ms > 0 for _, ms in (*prefill, *verify))
    assert context.last_position(0) == -1


@pytest.mark.parametrize(
    ("prefill", "target", "rows"),
    [
        (((1, 20.0), (16, 90.0), (32, 150.0), (64, 270.0)), 150, 32),
        (((1, 20.0), (16, 400.0)), 100, 16),
        (((1, 0.1), (128, 2.0)), 100, 256),
        ((), 100, 16),
    ],
)
def test_slice_size(prefill: tuple, target: float, rows: int) -> None:
    assert costs.slice_for(prefill, target, 256) == rows
