"""Pages over a real context: what comes back is what was computed, ceilings hold, damage costs no answer."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import mmap
import os
import random
import resource
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.ticking import load
from support.waiting import until

from daemon.engine import pagefile
from daemon.engine.binding import Context, Ids, Model, Part
from daemon.engine.pagefile import CHUNK, MAGIC
from daemon.engine.pages import Pages

SCRATCH = 5
PAGE = 96 * 1024
"""More than a whole page of the tiny model takes."""
NAME = b"i" * 32


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Model:
    return load(tiny_model)


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    made = Context(model, cells=4096, sequences=6, batch=64, threads=1, kv_type="f16", flash=False)
    yield made
    made.close()


def text(seed: int, length: int) -> Ids:
    return np.random.default_rng(seed).integers(0, 250, length).astype(np.int32)


def made(context: Context, host: int, disk: int = 0, folder: Path | None = None, name: bytes = NAME) -> Pages:
    return Pages(context, SCRATCH, name, host_bytes=host, disk_bytes=disk, folder=folder)


def evaluate(context: Context, tokens: Ids, start: int, sequence: int) -> np.ndarray:
    """Logits behind `tokens`, of which the first `start` are evaluated."""
    for at in range(start, len(tokens), 64):
        rows = tokens[at : at + 64]
        assert context.decode(Part(rows, at, sequence, 1))
    return context.logits(1)[0].copy()


def page_out(pages: Pages, sequence: int, tokens: Ids, holds: Callable[[], bool] = lambda: True) -> None:
    at = 0
    while at < len(tokens):
        assert holds()
        before, at = at, pages.put(sequence, tokens, np.ones(len(tokens), np.int32), at)
        if at == before:
            written(pages)


def page_in(pages: Pages, sequence: int, tokens: Ids, start: int = 0) -> int:
    known = pages.known(tokens, start)
    while start < known and (restored := pages.get(sequence, tokens, start)) is not None:
        assert len(restored.widths) == restored.end - start > 0
        start = restored.end
    return start


def written(pages: Pages) -> None:
    asyncio.run(until(lambda: pages.report().writing == 0))


def kept(context: Context, folder: Path, tokens: Ids, disk: int = 100 * PAGE) -> None:
    """Pages of `tokens` on disk, from a process that has ended."""
    pages = made(context, 0, disk, folder)
    evaluate(context, tokens, 0, 0)
    page_out(pages, 0, tokens)
    written(pages)
    context.cut(0, 0)
    pages.close()


def usage(folder: Path) -> int:
    held = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # removed since it was listed: it takes nothing
                held += entry.stat().st_blocks * 512
    return held


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
    assert page_in(pages, 1, tokens) == CHUNK
    pages.evaluated(64, 1e-6)
    assert [pages.known(tokens) for _ in range(64)].count(CHUNK) == 4, "tried again now and then"
    assert pages.report().declined == 64
    for _ in range(9):
        pages.evaluated(64, 1e6)
    assert pages.known(tokens) == CHUNK


@pytest.mark.parametrize("host", [0, 100 * PAGE])
def test_pages_survive_a_restart(context: Context, tmp_path: Path, host: int) -> None:
    folder = tmp_path / "pages"
    tokens = text(11, 700)
    kept(context, folder, tokens)
    wanted = evaluate(context, tokens, 0, 0)
    context.cut(0, 0)
    pages = made(context, host, 100 * PAGE, folder)
    assert pages.known(tokens) == 700
    assert page_in(pages, 0, tokens) == 700
    assert page_in(pages, 1, tokens) == 700
    report = pages.report()
    assert (report.disk_tokens, report.host_tokens) == ((1400, 0) if host == 0 else (700, 700))
    context.cut(0, 699)
    assert np.abs(evaluate(context, tokens, 699, 0) - wanted).max() < 1e-3
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(f.stat().st_mode) for f in folder.glob("*.page")} == {0o600}
    pages.close()


def test_pages_of_another_identity_are_not_used(context: Context, tmp_path: Path) -> None:
    tokens = text(12, 300)
    kept(context, tmp_path, tokens)
    pages = made(context, 0, 100 * PAGE, tmp_path, b"j" * 32)
    assert pages.known(tokens) == 0
    assert pages.report().disk_pages == 2, "they count for the ceiling"
    pages.close()


def test_the_disk_level_keeps_its_ceiling(context: Context, tmp_path: Path) -> None:
    ceiling = 5 * PAGE
    pages = made(context, 2 * PAGE, ceiling, tmp_path)
    for seed in range(6):
        tokens = text(200 + seed, 2 * CHUNK)
        evaluate(context, tokens, 0, 0)
        page_out(pages, 0, tokens, lambda: usage(tmp_path) <= ceiling)
        written(pages)
        assert usage(tmp_path) <= pages.report().disk_bytes <= ceiling
        context.cut(0, 0)
    assert pages.known(text(205, 2 * CHUNK)) == 2 * CHUNK
    pages.close()
    smaller = made(context, 0, 2 * PAGE, tmp_path)
    assert 0 < usage(tmp_path) <= 2 * PAGE
    assert smaller.known(text(205, 2 * CHUNK)) >= CHUNK
    smaller.close()
    assert made(context, 0, 0, tmp_path).report().disk_why == "engine.disk_mb is 0"
    assert not list(tmp_path.glob("*.page")), "a level that is off keeps nothing"


def damaged(data: bytes, chance: random.Random, number: int) -> bytes:
    """One byte changed, each of the first 128 in turn, then random ones; or cut, or grown."""
    if number % 8 == 7:
        return chance.choice([data[: chance.randrange(len(data))], data + b"x", b""])
    place = number if number < 128 else chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ chance.randrange(1, 256)]) + data[place + 1 :]


def test_a_damaged_byte_costs_an_evaluation_and_never_an_answer(context: Context, tmp_path: Path) -> None:
    tokens, chance = text(13, 400), random.Random(5)
    kept(context, tmp_path, tokens)
    wanted = evaluate(context, tokens, 0, 0)
    context.cut(0, 0)
    files = {path: path.read_bytes() for path in sorted(tmp_path.glob("*.page"))}
    for number in range(256):
        for path, data in files.items():
            path.write_bytes(data)
        early = number % 2 == 0
        late = made(context, 0, 100 * PAGE, tmp_path)
        victim = list(files)[number // 2 % 2]
        victim.write_bytes(damaged(files[victim], chance, number))
        if early:
            late.close()
            late = made(context, 0, 100 * PAGE, tmp_path)
        end = page_in(late, 0, tokens)
        assert end == (0 if "-00000000-" in victim.name else CHUNK), number
        assert late.report().damaged == 1
        assert not victim.exists()
        late.close()
        if number % 32 == 0:
            assert np.abs(evaluate(context, tokens, end, 0) - wanted).max() < 1e-3
        context.cut(0, 0)


def test_a_page_under_another_name_is_not_taken(context: Context, tmp_path: Path) -> None:
    tokens, other = text(14, CHUNK), text(15, CHUNK)
    kept(context, tmp_path, tokens)
    [first] = tmp_path.glob("*.page")
    data = first.read_bytes()
    kept(context, tmp_path, other)
    [second] = [path for path in tmp_path.glob("*.page") if path != first]
    second.write_bytes(data)
    pages = made(context, 0, 100 * PAGE, tmp_path)
    assert (pages.known(tokens), pages.known(other)) == (CHUNK, 0)
    assert not second.exists()
    pages.close()


def test_a_file_of_another_version_is_removed(context: Context, tmp_path: Path) -> None:
    tokens = text(16, CHUNK)
    kept(context, tmp_path, tokens)
    [path] = tmp_path.glob("*.page")
    path.write_bytes(MAGIC[:-1] + b"\x7f" + path.read_bytes()[len(MAGIC) :])
    pages = made(context, 0, 100 * PAGE, tmp_path)
    assert (pages.known(tokens), path.exists()) == (0, False)
    pages.close()


def test_stale_temporary_files_go_and_foreign_files_stay(context: Context, tmp_path: Path) -> None:
    (tmp_path / f"x{pagefile.PART}").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    made(context, 0, 100 * PAGE, tmp_path).close()
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "notes.txt"}


def test_a_second_process_reads_and_does_not_write(context: Context, tmp_path: Path) -> None:
    tokens = text(17, 300)
    first = made(context, 0, 100 * PAGE, tmp_path)
    evaluate(context, tokens, 0, 0)
    page_out(first, 0, tokens)
    written(first)
    second = made(context, 0, 100 * PAGE, tmp_path)
    assert "another process" in second.report().disk_why
    assert page_in(second, 1, tokens) == 300
    for path in tmp_path.glob("*.page"):
        path.unlink()
    assert first.known(tokens) == 300, "nobody told it"
    assert page_in(first, 2, tokens) == 0
    assert first.known(tokens) == 0
    assert first.report().damaged == 0
    first.close()
    second.close()


def test_what_cannot_be_read_for_a_moment_is_there_later(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    tokens = text(330, CHUNK)
    kept(context, tmp_path, tokens)
    pages = made(context, 0, 100 * PAGE, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(pagefile, "read", refused)
        assert page_in(pages, 0, tokens) == 0
    assert page_in(pages, 0, tokens) == CHUNK
    pages.close()


def test_a_process_that_does_not_own_the_folder_removes_nothing(context: Context, tmp_path: Path) -> None:
    tokens = text(331, 200)
    first = made(context, 100 * PAGE, 100 * PAGE, tmp_path)
    evaluate(context, tokens, 0, 0)
    page_out(first, 0, tokens[:100])
    written(first)
    files = list(tmp_path.glob("*.page"))
    second = made(context, 100 * PAGE, 100 * PAGE, tmp_path)
    page_out(second, 0, tokens)  # takes the place of the shorter one
    assert list(tmp_path.glob("*.page")) == files
    second.close()
    first.close()


def test_a_file_that_goes_while_the_folder_is_read_is_not_there(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(context, tmp_path, text(332, 2 * CHUNK))
    gone = min(tmp_path.glob("*.page"))
    real = os.scandir

    @contextlib.contextmanager
    def overtaken(folder: Path) -> Iterator[list[os.DirEntry[str]]]:
        with real(folder) as entries:
            found = list(entries)
        gone.unlink()
        yield found

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", overtaken)
        pages = made(context, 0, 100 * PAGE, tmp_path)
    assert (pages.report().disk_why, pages.report().disk_pages) == ("", 1)
    pages.close()


def test_a_folder_that_cannot_be_made_switches_the_level_off(context: Context, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    pages = made(context, 100 * PAGE, 100 * PAGE, tmp_path / "file" / "pages")
    tokens = text(18, 300)
    evaluate(context, tokens, 0, 0)
    page_out(pages, 0, tokens)
    report = pages.report()
    assert (report.disk_pages, report.disk_why) == (0, "Not a directory")
    assert pages.known(tokens) == 300, "host memory goes on"


def test_a_disk_that_refuses_a_write_switches_the_level_off(context: Context, tmp_path: Path) -> None:
    pages = made(context, 100 * PAGE, 100 * PAGE, tmp_path)
    tokens = text(19, 300)
    evaluate(context, tokens, 0, 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        page_out(pages, 0, tokens)
        written(pages)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert pages.report().disk_why == "File too large"
    assert {path.name for path in tmp_path.iterdir()} == {"lock"}
    assert page_in(pages, 1, tokens) == 300
    pages.close()


def test_a_folder_of_somebody_else_is_not_used(context: Context, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "pages").symlink_to(tmp_path / "there")
    pages = made(context, 0, 100 * PAGE, tmp_path / "pages")
    assert "not a folder of this user" in pages.report().disk_why
    assert list((tmp_path / "there").iterdir()) == []


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


def test_the_next_process_knows_what_was_used_last(context: Context, tmp_path: Path) -> None:
    texts = [text(300 + n, CHUNK) for n in range(3)]
    pages = made(context, 0, 100 * PAGE, tmp_path)
    for tokens in texts:
        evaluate(context, tokens, 0, 0)
        page_out(pages, 0, tokens)
        written(pages)
        context.cut(0, 0)
    assert page_in(pages, 0, texts[0]) == CHUNK
    context.cut(0, 0)
    pages.trim()
    pages.close()
    smaller = made(context, 0, PAGE, tmp_path)
    assert [smaller.known(tokens) for tokens in texts] == [CHUNK, 0, 0]
    smaller.close()


def test_a_page_that_nobody_used_for_a_month_is_removed(context: Context, tmp_path: Path) -> None:
    old = time.time() - 31 * 24 * 3600
    kept(context, tmp_path, text(320, 2 * CHUNK))
    other = tmp_path / "0123456789abcdef-00000000-00.page"
    other.write_bytes(b"of another model")
    first, second = sorted(path for path in tmp_path.glob("*.page") if path != other)
    for path in (other, second):
        os.utime(path, (old, old))
    pages = made(context, 100 * PAGE, 100 * PAGE, tmp_path)
    assert list(tmp_path.glob("*.page")) == [first]
    os.utime(first, (old, old))
    pages.close()
    pages = made(context, 100 * PAGE, 100 * PAGE, tmp_path)
    assert list(tmp_path.glob("*.page")) == []
    assert pages.known(text(320, 2 * CHUNK)) == 0
    pages.close()


def test_a_page_that_grows_old_while_the_engine_runs_goes_too(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = made(context, 100 * PAGE, 100 * PAGE, tmp_path)
    tokens = text(321, CHUNK)
    evaluate(context, tokens, 0, 0)
    page_out(pages, 0, tokens)
    written(pages)
    context.cut(0, 0)
    later = time.time() + 31 * 24 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    pages.trim()
    report = pages.report()
    assert (report.host_pages, report.disk_pages, list(tmp_path.glob("*.page"))) == (0, 0, [])
    pages.close()
