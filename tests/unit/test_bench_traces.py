"""Traces: the replay reaches the recorded end, windows are whole lines, typed text is followed."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from daemon.bench import traces
from daemon.bench.traces import Edit, Trace
from daemon.errors import BadRequest


def write(folder: Path, data: dict[str, Any]) -> Path:
    path = folder / "small.json.gz"
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    return path


def random_trace(seed: int, count: int) -> dict[str, Any]:
    """Random edits of a text with wide characters, kept as a list as an independent oracle of the end."""
    chance = random.Random(seed)
    start = "fn main() {\n    let é = '😀';\n}\n"
    text, txns = list(start), []
    for number in range(count):
        patches = []
        for _ in range(chance.choice([1, 1, 1, 2])):
            position = chance.randint(0, len(text))
            deleted = chance.randint(0, min(3, len(text) - position))
            inserted = "".join(chance.choice("abc \n😀é") for _ in range(chance.randint(0, 4)))
            text[position : position + deleted] = inserted
            patches.append([position, deleted, inserted])
        txns.append({"time": f"2024-01-01T00:{number // 60:02}:{number % 60:02}.250Z", "patches": patches})
    return {"startContent": start, "endContent": "".join(text), "txns": txns}


@pytest.mark.parametrize("seed", range(5))
def test_replay_ends_with_the_recorded_text(tmp_path: Path, seed: int) -> None:
    trace = traces.load(write(tmp_path, random_trace(seed, 120)))
    text = trace.start
    for edit, key in zip(trace.edits, traces.replay(trace), strict=True):
        text = traces.apply(text, edit.patches)
        assert key.prefix + key.suffix == text  # shorter than the window, so nothing is cut
        assert len(key.prefix) == edit.cursor
    assert text == trace.end
    assert trace.edits[-1].time == 119.0


def test_replay_of_a_part_equals_that_part_of_the_whole(tmp_path: Path) -> None:
    trace = traces.load(write(tmp_path, random_trace(9, 60)))
    assert list(traces.replay(trace, 20, 15)) == list(traces.replay(trace))[20:35]
    assert list(traces.replay(trace, 1000, 5)) == []


@pytest.mark.parametrize("cursor_line", [0, 5, 255, 256, 257, 500, 999])
@pytest.mark.parametrize("ended", ["", "\n"])
def test_window_is_256_lines_above_and_64_below(cursor_line: int, ended: str) -> None:
    lines = [f"line {n}" for n in range(1000)]
    text = "\n".join(lines) + ended
    cursor = sum(len(line) + 1 for line in lines[:cursor_line]) + 3
    above, head, suffix = traces.window(text, cursor)
    assert above == "".join(f"{line}\n" for line in lines[max(0, cursor_line - 256) : cursor_line])
    assert head == "lin"
    below = lines[cursor_line + 1 : cursor_line + 65]
    assert suffix.rstrip("\n").split("\n") == ["e " + str(cursor_line), *below]
    assert suffix.endswith("\n") == (cursor_line + 64 < 999 or bool(ended))


def test_window_of_an_empty_text() -> None:
    assert traces.window("", 0) == ("", "", "")
    assert traces.window("\n\n", 1) == ("\n", "", "\n")


def test_typing_and_deleting_at_the_cursor_continue() -> None:
    assert traces.continues(5, Edit(0, ((5, 0, "a"),)))
    assert traces.continues(5, Edit(0, ((4, 1, ""),)))
    assert not traces.continues(5, Edit(0, ((5, 2, "xy"),)))  # what follows the cursor has changed
    assert not traces.continues(5, Edit(0, ((5, 1, ""),)))
    assert not traces.continues(5, Edit(0, ((9, 0, "a"),)))
    assert not traces.continues(5, Edit(0, ((5, 0, "a"), (6, 0, "b"))))


def edits(*patches: tuple[int, int, str]) -> tuple[Edit, ...]:
    return tuple(Edit(float(n), (patch,)) for n, patch in enumerate(patches))


def test_typed_after_follows_a_burst_and_its_corrections() -> None:
    burst = edits((10, 0, "r"), (11, 0, "e"), (12, 0, "x"), (12, 1, ""), (12, 0, "turn"), (40, 0, "z"))
    assert traces.typed_after(burst, 0) == "eturn"
    assert traces.typed_after(burst, 1) == "turn"
    assert traces.typed_after(burst, 4) == ""
    assert traces.typed_after(burst, 5) == ""


def test_typed_after_ends_where_the_person_deletes_before_the_cursor() -> None:
    assert traces.typed_after(edits((10, 0, "a"), (11, 0, "b"), (10, 2, ""), (10, 0, "c")), 0) == "b"


def test_typed_after_is_bounded() -> None:
    assert traces.typed_after(edits((0, 0, "a"), (1, 0, "b" * 1000)), 0, most=50) == "b" * 50


def test_patches_outside_the_text_are_refused() -> None:
    with pytest.raises(BadRequest, match="outside"):
        traces.apply("abc", ((2, 5, ""),))


@pytest.mark.parametrize("raw", [b"not json", b"[]", b'{"startContent": ""}', b"\x1f\x8bbroken"])
def test_files_of_another_shape_are_named(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "odd.json.gz"
    path.write_bytes(raw)
    with pytest.raises(BadRequest, match=r"odd\.json\.gz"):
        traces.load(path)


def test_a_missing_trace_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="--trace"):
        traces.load(tmp_path / "none.json.gz")


def test_transactions_without_patches_are_left_out(tmp_path: Path) -> None:
    stamp = "2024-01-01T00:00:00.000Z"
    txns = [{"time": stamp, "patches": []}, {"time": stamp, "patches": [[0, 0, "x"]]}]
    trace = traces.load(write(tmp_path, {"startContent": "", "endContent": "x", "txns": txns}))
    assert trace == Trace("small", "", "x", (Edit(0.0, ((0, 0, "x"),)),))
