"""Log files are capped, end readable, and survive a folder that cannot be written."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.observe import logs
from daemon.settings import Logs


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path))
    root = logging.getLogger()
    before, level, told = root.handlers[:], root.level, logging.raiseExceptions
    root.handlers[:] = []
    yield tmp_path
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = before
    root.setLevel(level)
    logging.raiseExceptions = told
    logging.captureWarnings(False)


def test_never_more_than_the_cap() -> None:
    assert logs.setup(Logs(max_mb=1, keep=2)) == ""
    line = "x" * 10_000
    for _ in range(600):
        logging.getLogger("t").info("%s", line)
    assert logs.total_bytes() <= 3_000_000
    assert logs.names() == ["daemon"]
    assert logs.tail(logs.log_file(), 2)[-1].endswith(line)


def test_level_and_setup_twice() -> None:
    logs.setup(Logs(level="WARNING"))
    logs.setup(Logs(level="WARNING"))
    logging.getLogger("t").info("quiet")
    logging.getLogger("t").warning("loud")
    (only,) = logs.tail(logs.log_file(), 10)
    assert only.endswith("WARNING t: loud")


def test_no_folder_is_a_reason_not_a_crash(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "state").write_text("a file stands here")
    assert "no log file" in logs.setup(Logs())
    logging.getLogger("t").warning("still told")


def test_tail_of_an_empty_and_of_a_long_file(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"")
    assert logs.tail(file, 5) == []
    file.write_bytes(b"first\n" + b"y" * 3_000_000 + b"\nlast \xff\n")
    assert logs.tail(file, 1) == ["last �"]
    assert logs.tail(file, 0) == []


def test_follow_crosses_a_rotation(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("old\n")
    seen: list[str] = []
    ready, more = threading.Event(), threading.Event()

    def read() -> None:
        for text in logs.follow(file):
            seen.append(text)
            (more if ready.is_set() else ready).set()
            if "end" in text:
                return

    reader = threading.Thread(target=read)
    reader.start()
    # The reader starts at the end of the file, at a moment we cannot see: write until it has seen something.
    while not ready.wait(0.05):
        with file.open("a") as stream:
            stream.write("one\n")
    file.rename(tmp_path / "a.log.1")
    file.write_text("two\nend\n")
    reader.join(10)
    assert not reader.is_alive()
    assert "".join(seen).endswith("two\nend\n")
    assert "old" not in "".join(seen)
