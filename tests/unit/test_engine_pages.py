"""Pages over a real context: what comes back is what was computed, and the ceiling in memory holds."""

from __future__ import annotations

import errno
import mmap
import random
from pathlib import Path

import numpy as np
import pytest
from support.paged import PAGE, SCRATCH, context, evaluate, made, page_in, page_out, text, usage, written

from daemon.engine.binding import Context
from daemon.engine.pagefile import CHUNK

__all__ = ["context"]


def test_what_comes_back_is_what_was_evaluated(context: Context) -> None:
    pages = made(context, 100 * PAGE)
    tokens = text(1, 700)
    wanted = evaluate(context, tokens, 0, 0)
    page_out(pages, 0, tokens)
    assert context.last_position(0) == 699
    assert context.last_position(SCRATCH) == -1
    assert pages.missing(tokens) == 700
    context.cut(0, 0)
    assert page_in(pages, 1, tokens) == 700
    assert context.last_position(1) == 699
    context.cut(1, 699)
    again = evaluate(context, tokens, 699, 1)
    context.cut(1, 0)
    evaluate(context, tokens[:640], 0, 1)
    evaluate(context, tokens[:699], 640, 1)
    assert np.array_equal(again, evaluate(context, tokens, 699, 1))
    assert np.abs(again - wanted).max() < 1e-3


def test_a_page_helps_as_far_as_its_tokens_agree(context: Context) -> None:
    pages = made(context, 100 * PAGE)
    tokens = text(2, 700)
    evaluate(context, tokens, 0, 0)
    page_out(pages, 0, tokens)
    other = np.concatenate([tokens[:300], text(3, 200)])
    assert pages.known(other) == 300
    assert page_in(pages, 1, other) == 300
    assert np.abs(evaluate(context, other, 300, 1) - evaluate(context, other, 0, 2)).max() < 1e-3
    assert pages.known(text(4, 100)) == 0


def test_pages_go_on_behind_what_is_resident(context: Context) -> None:
    pages = made(context, 100 * PAGE)
    tokens = text(5, 800)
    wanted = evaluate(context, tokens, 0, 0)
    page_out(pages, 0, tokens)
    context.copy(0, 1, 100)
    context.cut(0, 0)
    assert page_in(pages, 1, tokens, 100) == 800
    context.cut(1, 799)
    assert np.abs(evaluate(context, tokens, 799, 1) - wanted).max() < 1e-3


def test_a_longer_rest_takes_the_place_of_the_shorter(context: Context) -> None:
    pages = made(context, 100 * PAGE)
    tokens = text(6, 600)
    evaluate(context, tokens, 0, 0)
    for length, count in ((300, 2), (310, 2), (400, 2), (520, 2), (600, 3)):
        page_out(pages, 0, tokens[:length])
        assert pages.report().host_pages == count
        assert pages.missing(tokens[:length]) == length
    assert pages.known(tokens) == 600


def test_the_host_level_keeps_its_ceiling_and_the_newest(context: Context) -> None:
    pages = made(context, 6 * PAGE)
    for seed in range(8):
        tokens = text(100 + seed, 2 * CHUNK)
        evaluate(context, tokens, 0, 0)
        page_out(pages, 0, tokens)
        context.cut(0, 0)
        assert 0 < pages.report().host_bytes <= 6 * PAGE
    assert pages.known(text(107, 2 * CHUNK)) == 2 * CHUNK
    assert pages.known(text(100, 2 * CHUNK)) == 0


def test_the_end_of_a_long_sequence_goes_before_its_beginning(context: Context) -> None:
    pages = made(context, 2 * PAGE)
    tokens = text(8, 1000)
    evaluate(context, tokens, 0, 0)
    page_out(pages, 0, tokens)
    assert pages.known(tokens) in (2 * CHUNK, 3 * CHUNK)


def test_without_levels_nothing_is_kept(context: Context) -> None:
    pages = made(context, 0)
    tokens = text(9, 300)
    evaluate(context, tokens, 0, 0)
    assert pages.put(0, tokens, np.ones(300, np.int32), 0) == 300
    report = pages.report()
    assert (pages.known(tokens), report.host_bytes, report.host_why) == (0, 0, "engine.page_mb is 0")


def test_a_machine_without_memory_keeps_no_page(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOMEM, "no memory")

    pages, tokens = made(context, 100 * PAGE), text(10, CHUNK)
    evaluate(context, tokens, 0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(mmap, "mmap", refused)
        page_out(pages, 0, tokens)
    assert pages.report().host_pages == 0
    page_out(pages, 0, tokens)
    assert pages.report().host_pages == 1


def test_what_costs_more_than_its_evaluation_stays_where_it_is(context: Context) -> None:
    pages = made(context, 100 * PAGE)
    tokens = text(10, CHUNK)
    evaluate(context, tokens, 0, 0)
    page_out(pages, 0, tokens)
    pages.evaluated(64, 1e-6)
    for sequence in (1, 2, 3):
        assert page_in(pages, sequence, tokens) == CHUNK, "a moment or two decide nothing"
    assert [pages.known(tokens) for _ in range(64)].count(CHUNK) == 4, "tried again now and then"
    assert pages.report().declined == 64
    for _ in range(9):
        pages.evaluated(64, 1e6)
    assert pages.known(tokens) == CHUNK


def test_random_sequences_come_back_as_they_were(context: Context, tmp_path: Path) -> None:
    """200 steps over 12 texts that share beginnings: page out, drop, page in, restart."""
    chance = random.Random(7)
    texts = [np.concatenate([text(n % 3, chance.randrange(100, 700)), text(50 + n, 300)]) for n in range(12)]
    pages = made(context, 9 * PAGE, 14 * PAGE, tmp_path)
    for step in range(200):
        tokens = texts[chance.randrange(len(texts))][: chance.randrange(200, 1000)]
        end = page_in(pages, 0, tokens)
        assert context.last_position(0) == end - 1, step
        last = evaluate(context, tokens, end, 0) if end < len(tokens) else None
        page_out(pages, 0, tokens)
        report = pages.report()
        assert report.host_bytes <= 9 * PAGE
        if last is not None and step % 20 == 0:
            assert np.abs(last - evaluate(context, tokens, 0, 1)).max() < 1e-3
            context.cut(1, 0)
        context.cut(0, 0)
        if step % 25 == 24:
            written(pages)
            assert usage(tmp_path) <= 14 * PAGE
            pages.close()
            pages = made(context, 9 * PAGE, 14 * PAGE, tmp_path)
    assert pages.report().damaged == 0
    pages.close()
