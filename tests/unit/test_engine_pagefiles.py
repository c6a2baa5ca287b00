"""Page files that are damaged, foreign, shared or gone: that costs an evaluation and never an answer."""

from __future__ import annotations

import contextlib
import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.paged import PAGE, context, evaluate, kept, made, page_in, page_out, text, written

from daemon.engine import pagefile
from daemon.engine.binding import Context
from daemon.engine.pagefile import CHUNK, MAGIC

__all__ = ["context"]


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
