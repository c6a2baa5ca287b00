"""Log files are capped, end readable, and survive a folder that cannot be written."""

import ast
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.observe import logs
from daemon.redaction import redact
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


def test_an_entry_is_cleaned_with_its_traceback(home: Path) -> None:
    secret = "hunter2" + "Zq9"
    logs.setup(Logs(), clean=lambda entry: redact(entry).text)
    try:
        raise ValueError(f"password = '{secret}'")
    except ValueError:
        logging.getLogger("t").exception("postgres://app:%s@db", secret)
    text = logs.log_file().read_text("utf-8")
    assert "Traceback" in text
    assert text.count("REDACTED") == 2
    assert secret not in text


TEXTS = {
    "above", "after", "before", "body", "extra", "extras", "generation", "line", "lines", "middle", "piece",
    "prefix", "prompt", "raw", "request", "snippet", "source", "suffix", "text", "texts", "tokens", "value",
}  # fmt: skip
"""What holds source text is called so in this project."""


def test_no_log_call_is_given_source_text() -> None:
    root = Path(logs.__file__).resolve().parents[2]
    calls = 0
    for file in [f for top in ("daemon", "indexer") for f in (root / top).rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if not (isinstance(called, ast.Attribute) and ast.unparse(called.value) in ("_log", "logging")):
                continue
            if called.attr not in ("debug", "info", "warning", "error", "exception", "critical", "log"):
                continue
            assert isinstance(node, ast.Call)
            calls += 1
            where = f"{file.name}:{node.lineno}"
            assert isinstance(node.args[0], ast.Constant), f"{where} builds its message"
            for part in (inner for argument in node.args[1:] for inner in ast.walk(argument)):
                name = part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "")
                assert name not in TEXTS, f"{where} logs {name}"
    assert calls >= 15
