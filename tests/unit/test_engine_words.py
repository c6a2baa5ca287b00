"""Vocabularies that only llama.cpp can split: loaded without weights, and good enough to complete with."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support import tiny

from daemon.engine.binding import Model
from daemon.engine.client import EngineClient, EngineModel
from daemon.engine.device import Log
from daemon.engine.words import Words
from daemon.errors import ModelError
from daemon.nouns import CompletionRequest, Limits
from daemon.observe.metrics import Metrics
from daemon.pipeline import Pipeline
from daemon.settings import Settings
from indexer.tokens import encode_rendered, to_ids


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write(tmp_path_factory.mktemp("models") / "spm.gguf", sentencepiece=True)


def test_parts_of_a_text_split_without_a_blank_of_their_own(model: Path) -> None:
    words, whole = Words(model), Model(model, 0, Log())
    pieces = whole.pieces()
    for text in ("return self", "  return", "", "x\n\n  é", " total", "\n", "a" * 5000):
        assert b"".join(pieces[i] for i in to_ids(words.encode(text))) == text.encode()
    assert to_ids(words.encode(" total")) == whole.tokenize("total")
    words.close()


def test_text_never_becomes_a_control_id(model: Path) -> None:
    words = Words(model)
    first = len(tiny.pieces()[0])
    assert max(to_ids(words.encode("".join(tiny.CONTROL)))) < first
    words.close()


def test_markers_with_a_blank_of_their_own_are_found_in_both_spellings(tmp_path: Path) -> None:
    """CodeLlama's: the blank before a marker belongs to it, and a prompt may begin without one."""
    names = ("</s>", "\u2581<PRE>", "\u2581<MID>", "\u2581<SUF>", "<pad>", "<rep>", "<sep>")
    path = tiny.write(tmp_path / "llama.gguf", sentencepiece=True, control=names)
    control = Model(path, 0, Log()).control()
    words = Words(path, control)
    first = len(tiny.pieces()[0])
    assert control["<PRE>"] == control[" <PRE>"] == first + 1
    found = to_ids(encode_rendered(words, "<PRE> return <SUF>self <MID>"))
    here, after = to_ids(words.encode(" return")), to_ids(words.encode("self"))
    assert found == [first + 1, *here, first + 3, *after, first + 2]
    words.close()


def test_a_file_without_a_vocabulary_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(ModelError, match=r"bad\.gguf"):
        Words(bad)


async def test_completions_come_from_such_a_model(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path))
    engine = EngineClient(Settings(), EngineModel("spm", model, "spm"))
    await engine.start()
    await asyncio.wait_for(engine.ready.wait(), 30)
    pipeline = Pipeline(engine, Settings(), Metrics())
    await pipeline.planning.prepare()
    limits = Limits(lines="free", tokens=8)
    request = CompletionRequest(
        id="1", client="c", door="t", prefix="def total(items):\n    ret", limits=limits
    )
    done = await pipeline.complete(request)
    await pipeline.close()
    await engine.close()
    assert engine.vocabulary[1]
    assert done.counters.prompt == sum(segment.tokens for segment in done.segments) > 0
    assert done.counters.generated > 0
    assert done.stop != "engine"
