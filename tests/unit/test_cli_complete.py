"""Places in files, and the picture of ghost text."""

from pathlib import Path

import msgspec
import pytest

from daemon.cli import complete, main, report
from daemon.engine.frames import Paged
from daemon.errors import BadRequest
from daemon.settings import Settings


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a.py:10:5", ("a.py", 10, 5)),
        ("a.py:10", ("a.py", 10, None)),
        ("dir/a:b.py:1:2", ("dir/a:b.py", 1, 2)),
        ("C:/x/a.py:7:1", ("C:/x/a.py", 7, 1)),
        ("C:/x/a.py:7", ("C:/x/a.py", 7, None)),
    ],
)
def test_places(text: str, place: tuple[str, int, int | None]) -> None:
    assert complete._place(text) == (Path(place[0]), *place[1:])


@pytest.mark.parametrize("text", ["", "a.py", ":3", "a.py:x", "a.py:", "a.py:-1"])
def test_no_places(text: str) -> None:
    with pytest.raises(BadRequest, match="no place in a file"):
        complete._place(text)


def test_the_cursor_is_counted_as_editors_show_it() -> None:
    text = "é😀x\r\nsecond\r\n"
    assert complete._offset(text, 1, 3, "p") == 2
    assert complete._offset(text, 2, 1, "p") == 5
    assert complete._offset(text, 2, None, "p") == 11
    assert complete._offset(text, 2, 99, "p") == 11
    assert complete._offset(text, 3, 1, "p") == len(text)
    for line in (0, 4):
        with pytest.raises(BadRequest, match=f"no line {line}.*3 lines"):
            complete._offset(text, line, 1, "p")


def test_the_picture_shows_the_line_as_it_would_be() -> None:
    text = "one\ntwo\nthree = (\n)\n"
    offset = text.index("(\n") + 1
    shown = list(
        complete._picture(text, offset, {"text": "1,\n    2", "replace": {"start": offset, "end": offset}})
    )
    assert shown == ["    1 │ one", "    2 │ two", "    3 │ three = (1,", "      ┆     2"]


def test_the_picture_replaces_what_the_answer_replaces() -> None:
    text = "f(x)\r\n"
    (only,) = complete._picture(text, 2, {"text": "y)", "replace": {"start": 2, "end": 4}})
    assert only == "    1 │ f(y)"


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        complete._read(tmp_path / "none.py", from_stdin=False)
    with pytest.raises(BadRequest, match="cannot be read"):
        complete._read(tmp_path, from_stdin=False)


def test_numbers_for_people() -> None:
    sizes = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 491_400_064: "491.4 MB", 5_000_000_000_000: "5000.0 GB"}
    assert {count: report.size(count) for count in sizes} == sizes
    times = {1: "1 s", 119: "119 s", 120: "2 min", 7200: "2 h", 172_800: "2 d"}
    assert {count: report.duration(count) for count in times} == times


def test_status_says_what_is_kept_and_why_a_level_is_off() -> None:
    pages = msgspec.to_builtins(Paged(host_bytes=3_000_000, host_ceiling=9_000_000, disk_why="it is full"))
    [line] = [line for line in report.status({"pages": pages}) if line.startswith("pages")]
    assert "host memory 3.0 MB of 9.0 MB, 0 tokens brought back" in line
    assert "off: it is full" in line


def test_status_of_an_unknown_build_is_readable() -> None:
    assert list(report.status({}))
    assert list(report.status({"model": {}, "profile": None, "device": None, "memory": {"x_bytes": None}}))


def test_a_known_answer_is_said_to_be_one() -> None:
    answer = {"text": "x", "recall": "exact", "stop": "line"}
    assert complete._costs(answer, 12.3) == (
        "known already (exact), no model ran: 12 ms; `--no-recall` asks the model"
    )


def test_status_says_in_words_what_is_and_is_not() -> None:
    shown = report.status({"queue": {"idle": True, "stopped": False, "running": 0}})
    assert "queue      idle, not stopped, running 0" in shown


def test_what_the_running_daemon_does_not_do_is_told_with_one_command() -> None:
    arguments = main.parser("up").parse_args(["up", "--port", "1", "--also", "2", "--also", "3"])
    body = {"addresses": ["http://127.0.0.1:1", "http://127.0.0.1:3"]}
    assert list(report.differences(Settings(), arguments, body)) == [
        "note: it does not listen on port 2; `foretype restart --port 1 --also 2 --also 3` changes that"
    ]
    assert list(report.differences(Settings(), main.parser("up").parse_args(["up"]), body)) == []


def test_settings_that_are_newer_than_the_daemon_are_told(tmp_path: Path) -> None:
    arguments = main.parser("status").parse_args(["status", "--config", str(tmp_path / "c.toml")])
    assert list(report.stale(arguments, {"uptime_s": 60.0})) == []
    (tmp_path / "c.toml").write_text("")
    assert list(report.stale(arguments, {"uptime_s": 0.0})) == []
    (note,) = report.stale(arguments, {"uptime_s": 60.0})
    assert "c.toml was changed after the daemon started; `foretype restart`" in note
