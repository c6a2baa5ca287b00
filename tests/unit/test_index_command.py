"""`foretype index` end to end without a daemon, the list of roots, and the daemon's hold on its indexer."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.waiting import until

from daemon import indexing, roots
from daemon.bench import context as bench_context
from daemon.bench import index as bench_index
from daemon.bench import outline as bench_outline
from daemon.bench import repo
from daemon.bench import soak as bench_soak
from daemon.cli import main
from daemon.errors import SettingsError
from daemon.indexing import IndexingClient
from daemon.settings import Index, Settings
from indexer.frames import Plan
from indexer.languages import registry
from indexer.parse import parse_file

DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "orders.py").write_text(
        'class Order:\n    """One order."""\n\n    total: int = 0\n\n'
        "    def price(self) -> int:\n        return 1\n\n\n"
        "def cost(order: Order) -> int:\n    return order.price()\n"
    )
    (folder / ".env").write_text("TOKEN=1\n")
    return folder


Say = Callable[..., tuple[int, Any]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*words: str) -> tuple[int, Any]:
        code = main.main(["index", *words, "--json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out.strip() else None

    return run


def test_every_command_on_a_small_project(
    project: Path, say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    code, state = say("add", str(project))
    assert (code, state["complete"], state["files"], state["phase"]) == (0, True, 1, "ready")
    assert state["skipped"]["denied"] == {"count": 1, "paths": [".env"]}
    assert [root["path"] for root in say("list")[1]] == [str(project)]
    assert say("status", str(project))[1]["languages"] == {"python": 1}
    root = ("--root", str(project))
    assert [row["path"] for row in say("files", *root)[1]] == ["orders.py"]
    assert [row["reason"] for row in say("files", *root, "--skipped")[1]] == ["denied"]
    assert say("search", "order price", *root)[1][0]["path"] == "orders.py"
    refs = say("refs", "price", *root)[1]
    assert refs["definitions"][0]["symbol"]["qualified"] == "Order.price"
    assert [use["reference"]["role"] for use in refs["uses"]] == ["call"]
    assert "price" in say("outline", str(project / "orders.py"))[1][0]["text"]
    assert say("explain", str(project / "orders.py"))[1]["indexed"]
    code, told = say("explain", str(project / ".env"))
    assert (code, told["reason"]) == (1, "denied")
    code, state = say("rebuild", str(project))
    assert (code, state["generation"], state["complete"]) == (0, 1, True)
    for words in (("list",), ("status", str(project)), ("refs", "price", *root), ("files", *root)):
        assert main.main(["index", *words]) == 0
    assert "orders.py:6" in capsys.readouterr().out
    assert say("rm", str(project))[1] == {"path": str(project), "removed": True}
    assert not roots.folder(project).exists()
    assert say("list")[1] == []


def test_what_is_not_indexed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["index", "status", str(tmp_path)]) != 0
    assert "foretype index add" in capsys.readouterr().err
    assert main.main(["index", "add", str(tmp_path / "absent")]) != 0
    (project := tmp_path / "one").mkdir()
    roots.add(roots.normal(project))
    assert main.main(["index", "status", str(tmp_path)]) == 2
    assert f"go into one that is, or name it: {roots.normal(project)}" in capsys.readouterr().err


def test_roots_of_both_kinds_and_odd_names(tmp_path: Path) -> None:
    odd, other = tmp_path / 'a "quoted" größe', tmp_path / "b"
    odd.mkdir()
    other.mkdir()
    assert roots.add(odd)
    assert not roots.add(odd)
    found = roots.specs(Index(roots=(str(other), str(odd))))
    assert [spec.path for spec in found] == [str(odd), str(other)]
    assert len({spec.folder for spec in found}) == 2
    roots.file().write_text("nonsense")
    with pytest.raises(SettingsError, match=r"roots\.toml"):
        roots.specs(Index())


def phase(client: IndexingClient) -> str:
    return str(client.facts()["phase"])


async def test_the_daemon_keeps_one_indexer(project: Path) -> None:
    client = IndexingClient(Settings())
    client.start()
    try:
        roots.add(roots.normal(project))
        await until(lambda: phase(client) == "ready")
        facts = client.facts()
        assert facts["roots"][0]["files"] == 1
        client.working()
        await until(lambda: "completions run" in client.facts()["throttled"])
        first = client.pid
        assert first is not None
        os.kill(first, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
        await until(lambda: client.pid not in (None, first) and phase(client) == "ready")
        assert client.facts()["restarts"] == 1
        roots.remove(roots.normal(project))
        await until(lambda: client.facts()["roots"] == [])
    finally:
        await client.close()
    assert client.pid is None


async def test_off_means_that_nothing_runs(project: Path) -> None:
    roots.add(roots.normal(project))
    client = IndexingClient(Settings(index=Index(on=False)))
    client.start()
    assert client.facts()["phase"] == "stopped"
    await client.close()


def test_settings_reach_the_indexer() -> None:
    plan = indexing.plan(Settings(index=Index(max_file_kb=7, ngram_mb=0, battery="run")), "/v")
    assert (plan.max_file_kb, plan.ngram_mb, plan.battery, plan.vocabulary) == (7, 0, "run", "/v")


def test_a_generated_repository_is_the_same_again_and_parses(tmp_path: Path) -> None:
    assert repo.generate(tmp_path / "a", 3000, 5) == repo.generate(tmp_path / "b", 3000, 5) >= 3000
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    languages = set()
    for file in files:
        source = (tmp_path / "a" / file).read_bytes()
        assert source == (tmp_path / "b" / file).read_bytes()
        language = registry.language_for(str(file), b"")
        assert language is not None
        parsed, _ = parse_file(source, language, 10.0)
        assert parsed.errors == 0, file
        languages.add(language.name)
    assert languages == set(repo.LANGUAGES)


async def test_the_measurements_give_their_figures(project: Path) -> None:
    target = bench_index.Target(None, 2000, 1, 5, "")
    outcome = await bench_index.run(target, lambda done, total: None)
    wanted = ("lines_per_s", "peak_rss_mb", "db_ratio", "restart_s")
    wanted += ("change_ms_p50", "change_ms_p99", "query_ms_p99")
    assert all(outcome.figures[name] > 0 for name in wanted)
    built = await bench_context.run(bench_context.Target(None, 2000, 1, 5, ""), lambda done, total: None)
    for kind in ("pause_ms", "build_ms", "build_cpu_ms", "classify_ms", "classify_alone_ms"):
        for ending in ("", "_cold"):
            figures = [built.figures[f"{kind}_p{percent}{ending}"] for percent in (50, 99)]
            assert figures[1] >= figures[0] > 0
    assert built.figures["pieces_mean"] > 0
    shown = await bench_outline.run(project, 5, "", lambda done, total: None)
    assert shown.figures["parse_errors"] == 0
    assert 0 < shown.figures["saved_median"] < 1


async def test_a_change_that_is_never_found_is_counted_and_said(tmp_path: Path) -> None:
    """The change makes the file too large, so that it is skipped."""
    head, line = "def seen():\n    return 1\n", f'known = "{"x" * 89}"\n'
    fitting = (Plan().max_file_kb * 1024 - len(head)) // len(line)
    (tmp_path / "large.py").write_text(head + line * fitting)
    outcome = await bench_index.run(bench_index.Target(tmp_path, 0, 1, 1, "", 1.5), lambda done, total: None)
    assert outcome.figures["changes_lost"] == 1
    assert outcome.figures["change_ms_p99"] > 1500
    assert any("large.py" in note for note in outcome.notes)


async def test_a_long_life_leaks_nothing() -> None:
    outcome = await bench_soak.run(300, 4, "", lambda done, total: None)
    figures = outcome.figures
    assert figures["soak_changes"] == 300
    assert figures["equal"] == 1
    assert figures["descriptors_last"] <= figures["descriptors_first"] + 2
    assert figures["wal_mb"] <= 64
    assert figures["rss_first_mb"] > 0
