"""Tabby's dialect as tabby-agent uses it: a recorded session, segments, events, health."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.house import Standing, standing

from daemon.documents.opening import known
from daemon.doors import tabby
from daemon.doors.steady import PAUSE_S, Steady
from daemon.nouns import Extra

SESSION = Path(__file__).parent.parent / "data" / "wire" / "tabby_agent_session.jsonl"
PREFIX, SUFFIX = "def total(rows):\n    return ", "\n\n\nprint(total([]))\n"
SEGMENTS = {"prefix": PREFIX, "suffix": SUFFIX}


async def ask(house: Standing, segments: dict[str, Any] | None = None, **more: Any) -> Any:
    body = {"language": "python", "segments": {**SEGMENTS, **(segments or {})}, **more}
    reply = await house.ask("POST", "/v1/completions", body, {"User-Agent": "node"})
    assert reply.status == 200, reply.body
    return reply.json


async def test_the_recorded_session_is_answered() -> None:
    async with standing("total += row.price") as house:
        found = []
        for line in SESSION.read_text("utf-8").splitlines():
            sent = json.loads(line)
            headers = {k.title(): v for k, v in sent["headers"].items() if k != "content-length"}
            reply = await house.ask(sent["method"], sent["path"], sent["body"], headers)
            assert reply.status == 200, reply.body
            found.append(reply.json)
        health, setting, completion = found
        assert health["model"] == "scripted", "else the client thinks that there is no completion"
        assert setting == {"disable_client_side_telemetry": True}
        assert re.fullmatch(r"cmpl-\w+", completion["id"])
        assert completion["choices"] == [{"index": 0, "text": "total += row.price"}]
        asked = house.pipeline.requests[0]
        assert (asked.door, asked.language, asked.prefix) == ("tabby", "python", "import csv\n\n")
        assert (asked.path, asked.whole, asked.replaces) == (None, False, False)


async def test_health_has_every_key_by_both_methods() -> None:
    async with standing() as house:
        health = (await house.ask("GET", "/v1/health")).json
        assert health == (await house.ask("POST", "/v1/health", {})).json
        assert {
            "model",
            "device",
            "arch",
            "cpu_info",
            "cpu_count",
            "cuda_devices",
            "models",
            "version",
        } <= set(health)
        assert set(health["version"]) == {"build_date", "build_timestamp", "git_sha", "git_describe"}
        major, minor = re.match(r"v(\d+)\.(\d+)\.", health["version"]["git_describe"]).groups()  # type: ignore[union-attr]
        assert (int(major), int(minor)) >= (0, 9), "older servers are not asked for their settings"


async def test_no_health_before_the_model() -> None:
    """tabby-agent asks again after an error, and never after a health without a model."""
    async with standing(loaded=False) as house:
        assert (await house.ask("GET", "/v1/health")).status == 503
        assert (await house.ask("GET", "/v1beta/server_setting")).status == 200
        reply = await house.ask("POST", "/v1/completions", {"segments": SEGMENTS})
        assert (reply.status, reply.json["error"]["type"]) == (503, "unavailable")


async def test_what_the_editor_found_becomes_context() -> None:
    async with standing() as house:
        piece = {"filepath": "src/x.py", "body": "X = 1"}
        await ask(
            house,
            {
                "filepath": "src/a%20b.py",
                "git_url": "https://example.test/r.git",
                "declarations": [
                    {"filepath": "file:///usr/lib/d1.py", "body": "D1"},
                    {"filepath": "d2.py", "body": "D2"},
                ],
                "relevant_snippets_from_changed_files": [
                    {**piece, "score": 1.5},
                    {"filepath": "y.py", "body": " "},
                ],
                "relevant_snippets_from_recently_opened_files": [
                    {"filepath": "o.py", "body": "O", "score": 1}
                ],
                "clipboard": "copied",
                "edit_history": None,
            },
        )
        asked = house.pipeline.requests[0]
        assert asked.path == "src/a b.py"
        assert asked.extras == (
            Extra(text="O", filename="o.py"),
            Extra(text="X = 1", filename="src/x.py"),
            Extra(text="D2", filename="d2.py"),
            Extra(text="D1", filename="/usr/lib/d1.py"),
            Extra(text="copied", kind="clipboard"),
        )
        await ask(house, {"declarations": [piece], "clipboard": " "}, debug_options={})
        assert house.pipeline.requests[1].extras == (Extra(text="X = 1", filename="src/x.py"),)
        await ask(house, {"declarations": [{"filepath": "d2.py", "body": "D2"}], "clipboard": "c"})
        assert house.pipeline.requests[2].extras == (
            Extra(text="X = 1", filename="src/x.py"),
            Extra(text="c", kind="clipboard"),
        )


async def test_typing_costs_little_whatever_the_editor_finds_meanwhile() -> None:
    async with standing("1") as house:
        for number, typed in enumerate(("x", "xy", "xyz")):
            snippets = [{"filepath": f"d{number}.py", "body": f"D = {number}"}]
            await ask(house, {"prefix": f"{PREFIX}{typed}", "declarations": snippets})
        first, *others = (house.engine.work[job.id] for job in house.engine.jobs)
        assert first > 60
        assert max(others) < 8


def test_snippets_stay_while_a_person_types() -> None:
    now = 0.0
    steady = Steady(lambda: now)
    one, two = (Extra(text="one"),), (Extra(text="two"),)
    assert steady.extras("c", "a.py", ()) == ()
    assert steady.extras("c", "a.py", one) == one
    for _ in range(9):
        now += PAUSE_S - 0.5
        assert steady.extras("c", "a.py", two) == one
    assert steady.extras("d", "a.py", two) == two
    now += PAUSE_S
    assert steady.extras("c", "a.py", two) == two
    assert steady.extras("c", "b.py", one) == one
    for number in range(100):
        steady.extras(f"c{number}", "b.py", two)
    assert steady.extras("c", "b.py", two) == two, "the oldest are forgotten"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("src/a.py", "src/a.py"),
        ("file:///home/u/a%20b.py", "/home/u/a b.py"),
        ("file:///C:/src/a.py", "C:/src/a.py"),
        ("untitled:Untitled-1", "untitled:Untitled-1"),
        ("100%.py", "100%.py"),
    ],
)
def test_file_names(name: str, path: str) -> None:
    assert tabby.path_of(name) == path


@pytest.mark.parametrize(
    "version", [lambda text: text, lambda text: {"content": text, "cursor_position": {}}]
)
async def test_the_edited_version_is_the_document(version: Any) -> None:
    async with standing() as house:
        text = f"import csv\r\n\r\n{PREFIX}{SUFFIX}# the end\r\n".replace("\r\n", "\n").replace("\n", "\r\n")
        window = {"prefix": PREFIX.replace("\n", "\r\n"), "suffix": SUFFIX.replace("\n", "\r\n")}
        history = {"original_code": "", "edits_diff": "", "current_version": version(text)}
        await ask(house, {**window, "filepath": "a.py", "edit_history": history})
        asked = house.pipeline.requests[0]
        assert (asked.whole, asked.newline) == (True, "\r\n")
        assert (asked.prefix, asked.suffix) == (f"import csv\n\n{PREFIX}", f"{SUFFIX}# the end\n")
        document = known(house.mirror, "a.py")
        assert document is not None
        assert document.text == text.replace("\r\n", "\n")
        for other in ("elsewhere", 2 * text):
            history = {"current_version": version(other)}
            await ask(house, {**window, "filepath": "b.py", "edit_history": history})
            assert (house.pipeline.requests[-1].whole, house.pipeline.requests[-1].prefix) == (False, PREFIX)


async def test_line_ends_come_back_as_they_were() -> None:
    async with standing("(\n    1)") as house:
        answer = await ask(house, {"prefix": PREFIX.replace("\n", "\r\n"), "suffix": ""})
        assert answer["choices"][0]["text"] == "(\r\n    1)"


async def test_sampling() -> None:
    async with standing() as house:
        await ask(house)
        await ask(house, temperature=0.8, seed=7)
        await ask(house, temperature=0.8)
        await ask(house, temperature=0.8)
        greedy, fixed, *others = (request.sampling for request in house.pipeline.requests)
        assert (greedy.temperature, greedy.seed) == (0.0, 0)
        assert (fixed.temperature, fixed.seed) == (0.8, 7)
        assert others[0].seed != others[1].seed, "who asks again wants another one"


async def test_what_other_dialects_understand_is_understood() -> None:
    async with standing() as house:
        await ask(house, lines="free", client="mine", path="a.py", temperature=-1, seed=-1)
        await ask(house, {"filepath": "b.py"}, path="a.py")
        off = {"User-Agent": "node", "x-foretype-context": "off"}
        assert (await house.ask("POST", "/v1/completions", {"segments": SEGMENTS}, off)).status == 200
        first, named, alone = house.pipeline.requests
        assert (first.client, first.path, first.limits.lines) == ("mine", "a.py", "free")
        assert (first.sampling.temperature, first.sampling.seed, first.context) == (0.0, 0, "auto")
        assert named.path == "b.py"
        assert alone.context == "none"


async def test_next_edits_are_not_invented() -> None:
    async with standing() as house:
        answer = await ask(house, mode="next_edit_suggestion")
        assert (answer["choices"], answer["mode"]) == ([{"index": 0, "text": ""}], "next_edit_suggestion")
        assert house.pipeline.requests == []
        assert (await ask(house, mode="standard"))["mode"] == "standard"


async def test_a_raw_prompt_goes_as_it_is() -> None:
    async with standing() as house:
        body = {"debug_options": {"raw_prompt": "x = "}}
        assert (await house.ask("POST", "/v1/completions", body)).json["choices"][0]["text"] == "answer()"
        asked = house.pipeline.requests[0]
        assert (asked.prefix, asked.suffix, asked.context, asked.path) == ("x = ", "", "none", None)
        options = {"disable_retrieval_augmented_code_completion": True}
        await ask(house, debug_options=options)
        assert house.pipeline.requests[1].context == "none"


async def test_the_prompt_is_told_when_asked_for() -> None:
    async with standing() as house:
        snippets = [{"filepath": "b.py", "body": "price = 1"}]
        options = {"return_prompt": True, "return_snippets": True}
        data = (await ask(house, {"declarations": snippets}, debug_options=options))["debug_data"]
        assert "price = 1" in data["prompt"]
        assert "<|fim_middle|>" in data["prompt"]
        (snippet,) = data["snippets"]
        assert (snippet["filepath"], snippet["score"]) == ("b.py", 1.0)
        assert "price = 1" in snippet["body"]
        assert "debug_data" not in await ask(house, debug_options={"return_prompt": False})


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"debug_options": {}}, "segments"),
        ({"segments": []}, "segments"),
        ({"segments": SEGMENTS, "temperature": "warm"}, "temperature"),
        ({"segments": SEGMENTS, "seed": 2**65}, "seed"),
        ({"segments": {"prefix": 3}}, "prefix"),
    ],
)
async def test_what_is_wrong_is_named(body: Any, named: str) -> None:
    async with standing() as house:
        reply = await house.ask("POST", "/v1/completions", body)
        assert reply.status == 400
        assert named in reply.json["error"]["message"]


async def test_events_say_what_became_of_answers() -> None:
    async with standing("for row in rows:\n    pass") as house:

        async def tell(query: str = "", **body: Any) -> None:
            reply = await house.ask("POST", f"/v1/events{query}", {"choice_index": 0, "view_id": "v", **body})
            assert (reply.status, reply.body) == (200, b"")

        names = [(await ask(house, {"prefix": f"{PREFIX}{n} "}))["id"] for n in range(3)]
        for name in names:
            await tell(type="view", completion_id=name)
        await tell(type="select", completion_id=names[0], elapsed=1200)
        await tell("?select_kind=line", type="select", completion_id=names[1], elapsed=900)
        await tell(type="dismiss", completion_id=names[2], elapsed=300)
        await tell(type="view", completion_id="cmpl-unknown")
        total = (await house.ask("GET", "/v1/stats")).json["total"]
        assert (total["answers"], total["shown"]) == (3, 3)
        assert (total["whole"], total["line"], total["dismissed"]) == (1, 1, 1)
        assert house.metrics.total("feedback", "unknown") == 1
        assert (await house.ask("POST", "/v1/events", {"type": "like"})).status == 400


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.test:8012"}, {"Origin": "http://evil.test"}, {"Content-Type": "text/plain"}]
)
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/events", "/v1/health", "/v1/feedback"])
async def test_the_doors_are_guarded(path: str, headers: dict[str, str | None]) -> None:
    async with standing() as house:
        assert (await house.ask("POST", path, {"segments": SEGMENTS}, headers)).status in (403, 415)
        assert house.pipeline.requests == []
