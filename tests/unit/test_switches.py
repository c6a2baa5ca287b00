"""Lines by language and path, and nothing inside comments and strings unless somebody asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.house import Standing, standing

from daemon import loading
from daemon.errors import SettingsError
from daemon.nouns import CompletionRequest, Limits
from daemon.projectfile import NAME
from daemon.projects import Projects
from daemon.settings import Complete, Settings, Switch

BY_LANGUAGE = Complete(languages={"python": "line", "markdown": "off", "TypeScriptReact": "block"})
BY_PATH = Complete(
    lines="line",
    languages={"python": "block"},
    paths=(Switch(pattern="tests/", lines="free"), Switch(pattern="gen_*.py", lines="off")),
)


def lines(complete: Complete, path: str, asked: Any = None, language: str | None = None) -> str:
    limits = Limits(lines=asked or complete.lines)
    request = CompletionRequest(
        id="1", client="c", door="d", prefix="x", path=path, language=language, limits=limits
    )
    return Projects(Settings(complete=complete)).of(path).apply(request).limits.lines


@pytest.mark.parametrize(
    ("complete", "path", "asked", "language", "found"),
    [
        (Complete(), "/src/a.py", None, None, "auto"),
        (Complete(lines="block"), "/src/a.py", None, None, "block"),
        (Complete(lines="off"), "/src/a.py", None, None, "off"),
        (BY_LANGUAGE, "/src/a.py", None, None, "line"),
        (BY_LANGUAGE, "/src/a.go", None, None, "auto"),
        (BY_LANGUAGE, "/src/a.py", "block", None, "block"),
        (BY_LANGUAGE, "/src/a.py", "auto", None, "line"),
        (BY_LANGUAGE, "/src/README.md", None, "markdown", "off"),
        (BY_LANGUAGE, "/src/README.md", "block", "markdown", "off"),
        (BY_LANGUAGE, "README.MD", None, None, "off"),
        (BY_LANGUAGE, "/src/.md", None, None, "auto"),
        (Complete(languages={"sql": "off"}), "/src/a.sql", None, None, "off"),
        (BY_LANGUAGE, "untitled:1", None, "Python", "line"),
        (BY_LANGUAGE, "/src/a", None, "typescriptreact", "block"),
        (BY_PATH, "/src/a.py", None, None, "block"),
        (BY_PATH, "/src/tests/a.py", None, None, "free"),
        (BY_PATH, "/src/tests/gen_a.py", None, None, "off"),
        (BY_PATH, "/src/tests/gen_a.py", "line", None, "off"),
        (BY_PATH, "/src/a.go", None, None, "line"),
    ],
)
def test_paths_win_over_languages_and_off_over_all(
    complete: Complete, path: str, asked: Any, language: str | None, found: str
) -> None:
    assert lines(complete, path, asked, language) == found


def checkout(folder: Path, text: str) -> Path:
    (folder / ".git").mkdir(exist_ok=True)
    (folder / NAME).write_text(text)
    return folder


def test_a_project_only_shortens(tmp_path: Path) -> None:
    top = checkout(
        tmp_path,
        "[complete]\nlanguages = {python = 'line', go = 'auto'}\n"
        "paths = [{pattern = 'gen/', lines = 'off'}]\n",
    )
    users = Complete(lines="block", languages={"go": "line"})
    assert lines(users, str(top / "a.py")) == "line"
    assert lines(users, str(top / "a.py"), "free") == "line"
    assert lines(users, str(top / "a.go")) == "line"
    assert lines(users, str(top / "a.rs")) == "block"
    assert lines(users, str(top / "gen/a.rs")) == "off"
    assert lines(users, str(tmp_path.parent / "gen/a.rs")) == "block"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[complete.languages]\npython = 'free'\n", "shorten each"),
        ("[[complete.paths]]\npattern = '*'\nlines = 'block'\n", "shorten each"),
        ("[complete.languages]\npython = 'all'\n", "complete.languages"),
        ("[[complete.paths]]\npattern = '!a'\nlines = 'off'\n", "complete.paths"),
        ("[[complete.paths]]\npatern = 'a'\nlines = 'off'\n", "patern"),
        ("[complete]\ncomments = true\n", "complete.comments"),
    ],
)
def test_a_project_that_widens_or_errs_is_not_used(tmp_path: Path, text: str, said: str) -> None:
    top = checkout(tmp_path, text)
    projects = Projects(Settings())
    request = CompletionRequest(id="1", client="c", door="d", prefix="x", path=str(top / "a.py"))
    assert projects.of(request.path).apply(request) == request
    assert said in projects.refused()[0]["reason"]


@pytest.mark.parametrize(
    "text",
    [
        "[complete]\nlines = 'some'\n",
        "[complete.languages]\npython = 1\n",
        "[[complete.paths]]\npattern = 'a'\n",
        "[[complete.paths]]\npattern = '!a'\nlines = 'off'\n",
    ],
)
def test_the_users_own_mistakes_are_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match="complete"):
        Projects(loading.load(file))


INSIDE = {"a comment": "# the sum of ", "a string": 'name = "the sum of '}


async def said(house: Standing, line: str, **fields: Any) -> dict[str, Any]:
    body = {"text": f"import os\n{line}\n", "cursor": {"line": 1, "character": len(line)}, **fields}
    found: dict[str, Any] = (await house.ask("POST", "/v1/complete", {"path": "/src/a.py", **body})).json
    return found


@pytest.mark.parametrize("where", INSIDE)
async def test_inside_comments_and_strings_only_who_asks_is_answered(where: str) -> None:
    line, field = INSIDE[where], f"{where.split()[1]}s"
    async with standing("all prices") as house:
        quiet = await said(house, line)
        assert (quiet["stop"], quiet["text"]) == ("off", "")
        assert quiet["note"].startswith(f"inside {where}: complete.{field} is off")
        assert not house.engine.jobs
        for asked in ({"trigger": "manual"}, {field: True}):
            assert (await said(house, line, **asked))["text"] == "all prices"
        assert (await said(house, "name = "))["text"] == "all prices"
        assert (await said(house, line, path="/src/a.unknown"))["text"] == "all prices"
        await house.ask("POST", "/v1/complete", {"prefix": line, "path": "/a.py", "max_tokens": 0})
        assert house.engine.jobs[-1].warm


async def test_a_silent_request_leaves_a_row_that_says_why() -> None:
    async with standing() as house:
        done = await said(house, INSIDE["a comment"])
        row = (await house.ask("GET", f"/v1/ledger/{done['id']}")).json
        assert (row["stop"], row["note"]) == ("off", done["note"])
