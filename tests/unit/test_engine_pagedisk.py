"""Pages on disk: they survive a restart, keep their ceiling, grow old, and a disk may refuse them."""

from __future__ import annotations

import os
import resource
import stat
import time
from pathlib import Path

import numpy as np
import pytest
from support.paged import PAGE, context, evaluate, kept, made, page_in, page_out, text, usage, written

from daemon.engine.binding import Context
from daemon.engine.pagefile import CHUNK

__all__ = ["context"]


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
