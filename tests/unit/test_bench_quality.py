"""Quality: what counts as a match, what is drawn, and that a stopped run goes on where it was."""

import gzip
import json
from pathlib import Path

import pytest

from daemon.bench import ours, quality
from daemon.bench.journal import Journal
from daemon.bench.quality import Task
from daemon.errors import BadRequest, ForetypeError

TASK = Task("t/0", "def f(x):\n", "    return y\n", "    y = x + 1\n")


def answer(text: str, raw: str | None = None) -> ours.Answer:
    return ours.Answer(text, 5, 20, prompt=50, evaluated=40, stop="line", raw=text if raw is None else raw)


@pytest.mark.parametrize(
    ("text", "exact"),
    [("    y = x + 1", True), ("\n    y = x + 1  \n    z", True), ("y = x + 1", False), ("", False)],
)
def test_the_first_line_that_is_not_blank_must_match_with_its_indentation(text: str, exact: bool) -> None:
    row = quality.judge(TASK, [answer(text)])
    assert row["exact"] is exact
    assert (row["similarity"] == 1.0) is exact


def test_a_second_question_is_paid_for() -> None:
    row = quality.judge(TASK, [answer(""), answer("", raw="    y = x + 1")])
    assert (row["exact"], row["exact_raw"], row["tokens"], row["ms"]) == (False, True, 80, 40)


def test_figures_have_the_names_that_acceptance_reads() -> None:
    rows = [quality.judge(TASK, [answer(text)]) for text in ("    y = x + 1", "    y = x")]
    figures = quality.figures_of("anchored", rows)
    assert figures["em_anchored"] == 0.5
    assert figures["es_anchored"] == pytest.approx((1 + 9 / 13) / 2)
    assert figures["tokens_anchored"] == 40
    assert figures["ms_anchored"] == 20
    assert figures["em_low_anchored"] < 0.5 < figures["em_high_anchored"]
    assert quality.shown(["anchored"], figures, "one").row_count == 1


def write(folder: Path, count: int) -> Path:
    path = folder / "tasks.jsonl.gz"
    rows = [
        {"task_id": f"t/{n}", "prompt": "p\n", "suffix": "s", "canonical_solution": "x\n"}
        for n in range(count)
    ]
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def test_a_sample_is_drawn_by_its_seed_and_keeps_the_order(tmp_path: Path) -> None:
    tasks = quality.load(write(tmp_path, 40))
    drawn = [[task.name for task in quality.sample(tasks, 10, seed)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] == sorted(drawn[0], key=lambda name: int(name[2:]))
    assert quality.sample(tasks, 500, 1) == tasks


def test_files_of_another_shape_are_named(tmp_path: Path) -> None:
    odd = tmp_path / "odd.jsonl"
    odd.write_text('{"task_id": "x"}\n', encoding="utf-8")
    with pytest.raises(BadRequest, match=r"odd\.jsonl"):
        quality.load(odd)
    with pytest.raises(BadRequest, match="--tasks"):
        quality.load(tmp_path / "none.jsonl.gz")


def test_a_journal_goes_on_where_the_last_run_stopped(tmp_path: Path) -> None:
    key: dict[str, object] = {"model": "m", "variant": "a"}
    first = Journal("quality", key, folder=tmp_path)
    first.add("t/0", {"exact": True})
    with first.path.open("a", encoding="utf-8") as file:
        file.write('{"task": "t/1", "exa')  # killed while writing
    second = Journal("quality", key, folder=tmp_path)
    assert second.rows == {"t/0": {"task": "t/0", "exact": True}}
    second.add("t/1", {"exact": False})
    assert set(Journal("quality", key, folder=tmp_path).rows) == {"t/0", "t/1"}


def test_another_key_or_a_fresh_start_begins_anew(tmp_path: Path) -> None:
    Journal("quality", {"build": 1}, folder=tmp_path).add("t/0", {})
    assert Journal("quality", {"build": 2}, folder=tmp_path).rows == {}
    assert Journal("quality", {"build": 1}, fresh=True, folder=tmp_path).rows == {}
    assert Journal("quality", {"build": 1}, folder=tmp_path).rows == {}


def test_a_journal_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    (tmp_path / "bench").write_text("in the way", encoding="utf-8")
    with pytest.raises(ForetypeError, match="bench"):
        Journal("quality", {}, folder=tmp_path / "bench")
