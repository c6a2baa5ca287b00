"""The engine with pages: what left the context comes back unevaluated, and changes no answer."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.ticking import PAGE, Ticking, check
from support.waiting import until

from daemon.engine.binding import Ids, Model
from daemon.engine.frames import Done, Message, Start, Submit
from daemon.engine.paging import Paging
from daemon.engine.startup import build
from daemon.nouns import Limits
from daemon.settings import Engine

FILES = 8


@pytest.fixture
def made(model: Model) -> Iterator[Ticking]:
    ticking = Ticking(model, cells=1024)
    yield ticking
    ticking.close()


def prompt(number: int, length: int = 420) -> Ids:
    return np.random.default_rng(number).integers(0, 250, length).astype(np.int32)


def quiet(paging: Paging) -> None:
    """Let everything be kept and written."""

    def done() -> bool:
        paging.ahead()
        return paging.pause is None and paging.report().writing == 0

    paging.stir()
    asyncio.run(until(done))


def test_returning_to_a_file_evaluates_next_to_nothing(made: Ticking, tmp_path: Path) -> None:
    paging = made.page(tmp_path, host=100)
    first = [made.ask(prompt(number)) for number in range(FILES)]
    assert len(made.loop.tree.residents) < FILES
    for number in range(FILES):
        again = made.ask(prompt(number))
        check(made.loop.tree, made.context)
        assert again.tokens == first[number].tokens
        assert again.tokens == made.ask(prompt(number), cache=False).tokens
        assert again.counters.evaluated <= 1
        assert again.counters.reused + again.counters.evaluated == again.counters.prompt
    assert paging.report().host_tokens > 4 * 400
    assert paging.report().host_bytes <= 100 * PAGE


def test_the_first_answer_after_a_restart_reuses_its_pages(model: Model, tmp_path: Path) -> None:
    before = Ticking(model, cells=1024)
    quiet_now = before.page(tmp_path, host=4, disk=100)
    first = [before.ask(prompt(number)) for number in range(FILES)]
    quiet(quiet_now)
    assert quiet_now.report().kept
    before.close()
    after = Ticking(model, cells=1024)
    paging = after.page(tmp_path, host=4, disk=100)
    for number in range(FILES):
        again = after.ask(prompt(number))
        assert (again.tokens, again.counters.evaluated) == (first[number].tokens, 1)
    assert paging.report().damaged == 0
    after.close()


def test_a_damaged_page_costs_its_evaluation_and_no_more(model: Model, tmp_path: Path) -> None:
    before = Ticking(model, cells=1024)
    paging = before.page(tmp_path, host=0, disk=100)
    first = before.ask(prompt(1))
    quiet(paging)
    before.close()
    [second] = tmp_path.glob("*-00000256-*.page")
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(data)
    after = Ticking(model, cells=1024)
    paging = after.page(tmp_path, host=0, disk=100)
    again = after.ask(prompt(1))
    assert again.tokens == first.tokens
    assert again.counters.reused == 256
    assert paging.report().damaged == 1
    after.close()


def test_pages_join_what_is_resident(made: Ticking, tmp_path: Path) -> None:
    paging = made.page(tmp_path, host=100)
    whole = prompt(1, 700)
    made.ask(whole)
    quiet(paging)
    for resident in list(made.loop.tree.residents):
        made.loop.tree.drop(resident)
    made.ask(whole[:100])
    answer = made.ask(whole)
    check(made.loop.tree, made.context)
    assert answer.counters.evaluated <= 1
    assert answer.tokens == made.ask(whole, cache=False).tokens


def test_a_fork_that_is_paged_in_does_not_speak_for_the_text_it_left(made: Ticking, tmp_path: Path) -> None:
    """Equal lengths: the logits behind the one must not be taken for those behind the other."""
    paging = made.page(tmp_path, host=100)
    one = prompt(1, 400)
    other = np.concatenate([one[:100], prompt(2, 300)])
    first = made.ask(one, limits=Limits(lines="free", tokens=1))
    quiet(paging)
    for resident in list(made.loop.tree.residents):
        made.loop.tree.drop(resident)
    made.ask(other, limits=Limits(lines="free", tokens=1))
    again = made.ask(one, limits=Limits(lines="free", tokens=1))
    assert (again.tokens, again.counters.evaluated) == (first.tokens, 1)


def test_what_is_displaced_comes_back(model: Model, tmp_path: Path) -> None:
    """A long answer gives its cells to keystrokes, and goes on from its pages."""
    made = Ticking(model, cells=768)
    paging = made.page(tmp_path, host=100)
    long = made.submit(prompt(1, 300), lane="long")
    made.tick(24)
    for number in range(2, 6):
        made.ask(prompt(number, 500))
    [answer] = made.finish(long)
    assert answer.tokens == made.ask(prompt(1, 300), cache=False).tokens
    assert paging.report().host_tokens > 0
    check(made.loop.tree, made.context)
    made.close()


def test_quiet_engines_keep_whole_pages_first(made: Ticking, tmp_path: Path) -> None:
    made.page(tmp_path, host=100)
    paging = made.paging
    assert paging is not None
    assert paging.pause is None
    made.ask(prompt(1))
    paging.stir()
    assert not paging.report().kept
    assert paging.pause == 0.0
    quiet(paging)
    assert paging.report().kept
    assert paging.report().host_pages == 2


def test_an_engine_that_ends_keeps_the_rests_too(model: Model, tmp_path: Path) -> None:
    before = Ticking(model, cells=1024)
    before.page(tmp_path, host=100, disk=100)
    before.ask(prompt(1))
    before.loop.leave(20)
    before.close()
    after = Ticking(model, cells=1024)
    after.page(tmp_path, host=100, disk=100)
    assert after.ask(prompt(1)).counters.evaluated == 1
    after.close()


def test_the_thread_of_the_engine_keeps_pages_by_itself(model: Model, tmp_path: Path) -> None:
    made = Ticking(model, cells=1024)
    paging = made.page(tmp_path, host=100, disk=100)
    thread = threading.Thread(target=made.loop.run)
    thread.start()
    job = made.submit(prompt(1))
    asyncio.run(until(lambda: job in made.done and paging.report().kept))
    asyncio.run(until(lambda: made.loop.report(0).pages == paging.report()))
    made.loop.lanes.close()
    thread.join(10)
    assert paging.report().host_pages == 2
    made.close()


def test_who_goes_from_file_to_file_without_a_pause_finds_whole_pages(
    made: Ticking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page takes no longer beside the prompts of so small a model than these do."""
    monkeypatch.setattr("daemon.engine.paging._BESIDE", 50.0)
    paging = made.page(tmp_path, host=100, leaving_s=0.0)
    for number in range(FILES):
        job = made.submit(prompt(number))
        while job not in made.done:
            made.tick()
            paging.stir()
    assert len(made.loop.tree.residents) < FILES
    for number in range(FILES - 1):
        assert made.ask(prompt(number)).counters.reused >= 256


def test_keeping_beside_prompts_takes_a_small_share_of_their_time(
    made: Ticking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock is 10 ms after the one before: a page takes 30 ms with all that belongs to it,
    and 600 ms of prompts pay for that."""
    paging = made.page(tmp_path, host=100)
    made.ask(prompt(1, 900))
    clock = iter(np.arange(1e6, 2e6, 0.01).tolist())
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    paging.stir()
    kept = [paging.report().host_pages]
    for _ in range(20):
        paging.evaluated(64, 100.0)
        paging.evaluated(1, 1e6)
        paging.stir()
        kept.append(paging.report().host_pages)
    assert [kept.index(pages) for pages in (1, 2, 3)] == [0, 8, 14]


def test_what_makes_room_is_kept_for_a_moment_only(
    made: Ticking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock is 6 ms after the one before."""
    paging = made.page(tmp_path, host=100, leaving_s=0.01)
    for number in (1, 2):
        made.ask(prompt(number, 480))
    seconds = iter(np.arange(1e6, 2e6, 0.006).tolist())
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    for resident in list(made.loop.tree.residents):
        made.loop.tree.evict(resident)
    assert paging.report().host_pages == 1
    made.ask(prompt(3, 480))
    made.loop.tree.evict(made.loop.tree.residents[0])
    assert paging.report().host_pages == 2


def test_requests_that_come_back_share_a_ticks_time(
    made: Ticking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock is 20 ms after the one before: two pages are brought back in a tick. What is
    measured to choose between them and evaluation takes one look each."""
    looks = itertools.count(1e6, 1e-5)
    monkeypatch.setattr(time, "perf_counter", lambda: next(looks))
    paging = made.page(tmp_path, host=100)
    first = [made.ask(prompt(number, 100)).tokens for number in range(3)]
    for resident in list(made.loop.tree.residents):
        made.loop.tree.evict(resident)
    seconds = iter(np.arange(1e6, 2e6, 0.02).tolist())
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    jobs = [made.submit(prompt(number, 100)) for number in range(3)]
    made.tick()
    assert 200 <= paging.report().host_tokens < 300
    made.tick()
    assert paging.report().host_tokens >= 300
    assert [answer.tokens for answer in made.finish(*jobs)] == first


def test_what_is_not_to_be_kept_reaches_no_page(made: Ticking, tmp_path: Path) -> None:
    paging = made.page(tmp_path, host=100, disk=100)
    made.ask(prompt(1), keep=False)
    longer = np.append(prompt(1), prompt(2))
    made.ask(longer)  # goes on from the same sequence
    quiet(paging)
    made.loop.leave(1)
    for resident in list(made.loop.tree.residents):
        made.loop.tree.evict(resident)
    report = paging.report()
    assert report.kept
    assert (report.host_pages, report.disk_pages, report.out_tokens) == (0, 0, 0)
    made.ask(longer)
    quiet(paging)
    assert paging.report().host_pages > 0


def reused(model: Path, cells: int) -> int:
    """Tokens that an engine with so many cells finds evaluated by those before it."""
    said: list[Message] = []
    start = Start(path=str(model), name="tiny", sha256="rope", context=cells, settings=Engine(threads=1))
    loop, _ = build(start, said.append)
    assert loop.paging is not None
    loop.lanes.submit(Submit(id="a", tokens=prompt(1).tobytes(), warm=True))
    while not (done := [message.generation for message in said if isinstance(message, Done)]):
        loop.tick()
    loop.leave(20)
    loop.paging.close()
    return done[0].counters.reused


def test_pages_of_another_size_of_the_context_are_not_used(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some models choose their rope factors by it."""
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path))
    assert [reused(tiny_model, cells) for cells in (1024, 2048, 1024)] == [0, 0, 420]
