"""A project's file narrows what concerns its files; a hostile one gains nothing and breaks nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from support.house import standing

from daemon import narrowing, projectfile
from daemon.cli import doctor
from daemon.errors import SettingsError
from daemon.nouns import CompletionRequest, Extra, Limits
from daemon.projectfile import MOST_BYTES, NAME
from daemon.projects import Projects
from daemon.settings import Complete, Context, Index, Settings
from indexer.frames import RootSpec

HOSTILE = {
    "unknown key": ("[complete]\nmodle = 1\n", "complete.modle"),
    "unknown section": ("[hooks]\nrun = 'sh'\n", "hooks"),
    "empty section": ("[hooks]\n", "hooks"),
    "quoted key": ('"complete.on" = false\n', "complete.on"),
    "list of sections": ("[[complete]]\non = false\n", "complete"),
    "no section": ("max_tokens = 1\n", "max_tokens"),
    "model": ("[engine]\nmodel = '/tmp/evil.gguf'\n", "engine.model"),
    "port": ("[server]\nport = 1\n", "server.port"),
    "token": ("[server]\ntoken = 'x'\n", "server.token"),
    "roots": ("[index]\nroots = ['/']\n", "index.roots"),
    "more tokens": ("[complete]\nmax_tokens = 65\n", "complete.max_tokens is 65"),
    "more time": ("[complete]\ntime_ms = 600000\n", "complete.time_ms"),
    "longer": ("[complete]\nlines = 'free'\n", "complete.lines"),
    "wrong type": ("[complete]\nmax_tokens = true\n", "complete.max_tokens"),
    "no number": ("[complete]\nmax_tokens = nan\n", "complete.max_tokens"),
    "too low": ("[complete]\nmax_tokens = 0\n", "complete.max_tokens"),
    "below nothing": ("[context]\nextra_tokens = -1\n", "context.extra_tokens"),
    "un-ignoring": ("[complete]\nignore = ['!a']\n", "complete.ignore"),
    "un-ignoring the index": ("[index]\nignore = ['!.env']\n", "index.ignore"),
    "no TOML": ("[complete\n", "no TOML"),
    "no UTF-8": (b"\xff\xfe[", "no TOML"),
    "nested": ("a = [" + "[\n" * 4000, "nested"),
    "a long line": ("a." * 800 + "a = 1", "line"),
    "a slow key": (("a." * 490 + "a = 1\n") * 8, "no TOML"),
    "huge": ("#" * (MOST_BYTES + 1), "larger"),
    "for the terminal": ('"\\u001b[31m\\u202e" = 1\n', "�[31m�"),
}


def project(folder: Path, text: str | bytes, name: str = "repo") -> Path:
    """A checkout with a project file."""
    top = folder / name
    (top / ".git").mkdir(parents=True, exist_ok=True)
    (top / NAME).write_bytes(text if isinstance(text, bytes) else text.encode())
    return top


def narrowed(projects: Projects, file: Path | str, **more: Any) -> CompletionRequest:
    request = CompletionRequest(id="i", client="c", door="d", prefix="x", path=str(file), **more)
    return projects.of(request.path).apply(request)


def test_every_narrowable_key_narrows(tmp_path: Path) -> None:
    top = project(
        tmp_path,
        "[complete]\nmax_tokens = 8\ntime_ms = 50\nlines = 'line'\n"
        "[context]\nprefix_tokens = 100\nsuffix_tokens = 0\nmiddle_tokens = 50\nextra_tokens = 0\n"
        "[index]\nmax_files = 9\nignore = ['gen/']\n",
    )
    asked = Limits(lines="free", tokens=500, milliseconds=None, milliseconds_after_line=900)
    found = narrowed(Projects(Settings()), top / "src/a.py", limits=asked)
    assert (found.limits.tokens, found.limits.milliseconds, found.limits.lines) == (8, 50, "line")
    assert found.limits.milliseconds_after_line == 50
    allowed = found.allowance
    assert (allowed.prefix, allowed.suffix, allowed.middle, allowed.extras) == (100, 0, 50, 0)
    spec = Projects(Settings()).spec(RootSpec(path=str(top), folder="x"))
    assert (spec.max_files, spec.ignore) == (9, (("", ("gen/",)),))
    low = Limits(tokens=3, milliseconds=7)
    assert narrowed(Projects(Settings()), top / "a.py", limits=low).limits.tokens == 3


def test_only_marked_keys_exist_and_none_names_a_thing() -> None:
    known = narrowing.allowed()
    assert {"complete.on", "complete.ignore", "complete.max_tokens", "index.ignore"} <= known.keys()
    assert not [k for k in known if k.startswith(("server.", "engine.", "logs.")) or k == "index.roots"]
    documented = (Path(__file__).resolve().parents[2] / "config/default.toml").read_text("utf-8")
    sections, marked = "", set()
    for line in documented.splitlines():
        sections = line.strip("[]") if line.startswith("[") else sections
        marked |= {f"{sections}.{line.split()[0]}"} if "# [project]" in line else set()
    assert marked == known.keys()


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_counts_as_absent_and_says_why(tmp_path: Path, case: str) -> None:
    text, reason = HOSTILE[case]
    top = project(tmp_path, text)
    projects, limits = Projects(Settings()), Limits(tokens=99, milliseconds=9999, lines="block")
    request = narrowed(projects, top / "a.py", limits=limits)
    assert request == CompletionRequest(
        id="i", client="c", door="d", prefix="x", path=str(top / "a.py"), limits=limits
    )
    spec = RootSpec(path=str(top), folder="x")
    assert projects.spec(spec) == spec
    (refused,) = projects.refused()
    assert refused["file"] == str(top / NAME)
    assert reason in refused["reason"]
    assert refused["reason"].isprintable()
    check = doctor.project_files(Settings(index=Index(roots=(str(top),))), {})
    assert (check.level, f"{refused['file']} is not used: {refused['reason']}" in check.text) == (
        "warn",
        True,
    )
    assert len(refused["reason"]) <= 400


def test_one_wrong_key_refuses_the_whole_file(tmp_path: Path) -> None:
    top = project(tmp_path, "[complete]\non = false\nmax_tokens = 9999\n")
    assert not Projects(Settings()).of(str(top / "a.py")).off


def test_links_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.toml"
    elsewhere.write_text("[complete]\non = false\n")
    for name in ("link", "fifo", "folder"):
        top = tmp_path / name
        (top / ".git").mkdir(parents=True)
        if name == "link":
            (top / NAME).symlink_to(elsewhere)
        elif name == "fifo":
            os.mkfifo(top / NAME)
        else:
            (top / NAME).mkdir()
        projects = Projects(Settings())
        assert not projects.of(str(top / "a.py")).off
        assert "not a regular file" in projects.refused()[0]["reason"]


def test_the_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / NAME
    file.write_text("[complete]\non = false\n")
    assert projectfile.read(file)
    with pytest.raises(OSError, match="another user"):
        projectfile.read(file, owner=os.geteuid() + 1)


def test_changes_are_seen_at_once(tmp_path: Path) -> None:
    top, projects = project(tmp_path, "[complete]\non = false\n"), Projects(Settings())
    asked = str(top / "a.py")
    assert str(top / NAME) in projects.of(asked).off
    (top / NAME).write_text("[complete]\non = maybe\n")
    assert not projects.of(asked).off
    assert projects.refused()
    (top / NAME).write_text("[complete]\nmax_tokens = 4\n")
    assert narrowed(projects, asked).limits.tokens == 4
    (top / NAME).unlink()
    assert narrowed(projects, asked).limits.tokens == 64
    assert not projects.refused()


def test_several_files_narrow_one_after_the_other(tmp_path: Path) -> None:
    outer = project(tmp_path, "[complete]\nmax_tokens = 8\nignore = ['inner/*.sql']\n", "outer")
    inner = project(outer, "[complete]\nmax_tokens = 20\nlines = 'line'\n", "inner")
    projects = Projects(Settings())
    found = narrowed(projects, inner / "a.py").limits
    assert (found.tokens, found.lines) == (8, "line")
    assert projects.of(str(inner / "a.sql")).off
    spec = projects.spec(RootSpec(path=str(inner), folder="x"))
    assert spec.ignore == (("inner/", ("inner/*.sql",)),)


def test_only_tops_of_checkouts_and_indexed_folders_are_looked_at(tmp_path: Path) -> None:
    top = project(tmp_path, "")
    (top / "sub").mkdir()
    (top / "sub" / NAME).write_text("[complete]\non = false\n")
    assert not Projects(Settings()).of(str(top / "sub/a.py")).off
    chosen = Settings(index=Index(roots=(str(top / "sub"),)))
    assert Projects(chosen).of(str(top / "sub/a.py")).off


def test_nothing_above_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = project(tmp_path, "[complete]\non = false\n")
    (top / "home/me").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(top / "home"))
    monkeypatch.setenv("USERPROFILE", str(top / "home"))
    assert not Projects(Settings()).of(str(top / "home/me/a.py")).off
    assert Projects(Settings()).of(str(top / "a.py")).off


def test_a_link_does_not_lead_around_it(tmp_path: Path) -> None:
    top = project(tmp_path, "[complete]\nignore = ['secrets/', '*.key.py']\n")
    (top / "secrets").mkdir()
    (top / "secrets/s.py").write_text("x")
    (top / "a.py").symlink_to("secrets/s.py")
    (tmp_path / "way").symlink_to(top)
    projects = Projects(Settings())
    for name in ("repo/a.py", "way/a.py", "way/secrets/new.py", "way/x/../secrets/s.py", "repo/q.key.py"):
        assert projects.of(str(tmp_path / name)).off, name
    assert projects.of((top / "secrets/s.py").as_uri()).off
    assert not projects.of(str(top / "b.py")).off


def test_text_of_files_left_out_is_no_context(tmp_path: Path) -> None:
    top = project(tmp_path, "[complete]\nignore = ['secrets/']\n")
    names = (str(top / "secrets/s.py"), "secrets/s.py", "ok.py", "", str(tmp_path / "other/own.sql"))
    extras = tuple(Extra(text="x", filename=name) for name in names)
    chosen = Settings(complete=Complete(ignore=("*.sql",)))
    found = narrowed(Projects(chosen), top / "a.py", extras=extras)
    assert [extra.filename for extra in found.extras] == ["ok.py", ""]


@pytest.mark.parametrize(
    "path", [None, "a.py", "~/a.py", "/nowhere/at/all.py", "/nul\0.py", "/" + "x/" * 5000]
)
def test_a_path_that_says_nothing(path: str | None) -> None:
    found = Projects(Settings()).of(path)
    assert (found.off, found.values) == ("", ())


def test_the_users_own_patterns_and_switch() -> None:
    chosen = Settings(complete=Complete(ignore=("private/",)), index=Index(ignore=("gen/",)))
    projects = Projects(chosen)
    assert projects.of("/any/private/x.py").off
    assert projects.of("private/x.py").off
    assert not projects.of("/any/x.py").off
    spec = projects.spec(RootSpec(path="/nowhere", folder="x"))
    assert spec.ignore == (("", ("private/",)), ("", ("gen/",)))
    assert Projects(Settings(complete=Complete(on=False))).of("/any/x.py").off
    with pytest.raises(SettingsError, match=r"complete\.ignore"):
        Projects(Settings(complete=Complete(ignore=("!x",))))


def test_what_is_narrower_already_stays_so(tmp_path: Path) -> None:
    chosen = Settings(complete=Complete(on=False, max_tokens=4), context=Context(extra_tokens=0))
    top = project(tmp_path, "[complete]\non = true\n")
    projects = Projects(chosen)
    assert projects.of(str(top / "a.py")).off
    projects.spec(RootSpec(path=str(top), folder="x"))
    assert "complete.on" in projects.refused()[0]["reason"]


def test_a_key_costs_little(tmp_path: Path) -> None:
    top, projects = project(tmp_path, "[complete]\nmax_tokens = 8\n"), Projects(Settings())
    asked = str(top / "a.py")
    projects.of(asked)
    began = time.process_time()
    for _ in range(1000):
        projects.of(asked)
    assert time.process_time() - began < 0.5


async def test_through_the_door(tmp_path: Path) -> None:
    top = project(
        tmp_path, "[complete]\nignore = ['secrets/']\nmax_tokens = 3\n[context]\nextra_tokens = 0\n"
    )
    async with standing("one two three four five six") as house:
        body = {"prefix": "x = ", "extras": [{"text": "left out"}], "lines": "free", "max_tokens": 40}
        free = (await house.ask("POST", "/v1/complete", {**body, "path": "a.py"})).json
        held = (await house.ask("POST", "/v1/complete", {**body, "path": str(top / "a.py")})).json
        off = (await house.ask("POST", "/v1/complete", {**body, "path": str(top / "secrets/a.py")})).json
        row = (await house.ask("GET", f"/v1/ledger/{off['id']}")).json
        llama = {"input_prefix": "x = ", "path": str(top / "secrets/a.py"), "n_cmpl": 3}
        other = (await house.ask("POST", "/infill", llama)).json
        assert house.engine.jobs[-1].limits.tokens == 3
        assert len(house.engine.jobs) == 2
    assert "extra" in {segment["kind"] for segment in free["segments"]}
    assert "extra" not in {segment["kind"] for segment in held["segments"]}
    assert (held["stop"], len(held["text"]) < len(free["text"])) == ("limit", True)
    assert (off["text"], off["stop"], str(top / NAME) in off["note"]) == ("", "off", True)
    assert (row["id"], row["stop"], row["note"]) == (off["id"], "off", off["note"])
    assert (row["segments"], row["prompt"], row["window"]) == ([], None, None)
    assert [(one["content"], one["stop_type"]) for one in other] == [("", "none")]
