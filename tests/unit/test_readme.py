"""The README speaks of commands, options, files and fields that exist."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from daemon.cli import main
from daemon.doors import native

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")


def commands() -> Iterator[list[str]]:
    """The words of every line that starts with `foretype`: blocks of shell text and inline code."""
    lines = [ln for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for ln in block.splitlines()]
    for line in [*lines, *re.findall(r"`(foretype [^`]+)`", TEXT)]:
        if line.startswith("foretype "):
            yield shlex.split(line, comments=True)[1:]


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_is_understood(words: list[str]) -> None:
    named = words[0] if words[0] in main.COMMANDS else None
    assert named, f"there is no command {words[0]}"
    parser = main.parser(named)
    if words[-1] == "--help":
        with pytest.raises(SystemExit) as ended:
            parser.parse_args(words)
        assert ended.value.code == 0
    else:
        assert isinstance(parser.parse_args(words), argparse.Namespace)


def test_every_command_is_told_somewhere_in_the_readme_or_its_help() -> None:
    told = {words[0] for words in commands()} | set(
        re.findall(r"foretype (\w+)", main.parser().format_help())
    )
    assert set(main.COMMANDS) - {"serve"} <= told


def test_every_script_and_link_exists() -> None:
    scripts = re.findall(r"(?:sh |-File )((?:installers|tests)[/\\][\w.]+)", TEXT)
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert scripts
    assert links
    assert [name for name in scripts + links if not (ROOT / name.replace("\\", "/")).is_file()] == []


def test_every_field_in_the_table_is_read_by_the_native_door() -> None:
    cells = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    fields = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    known = {field.name for field in msgspec.structs.fields(native.Ask)}
    assert fields
    assert fields <= known
