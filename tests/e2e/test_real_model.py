"""The pinned 0.5B model, end to end: ghost text that makes sense, from every door, with the cache kept."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.living import Home, until

from daemon.doors import client
from daemon.errors import ForetypeError

pytestmark = [pytest.mark.xdist_group("real_model"), pytest.mark.timeout(300)]

SAMPLES = Path(__file__).resolve().parent.parent / "data/samples"
SESSION = Path(__file__).resolve().parent.parent / "data/wire/llama_vim_session.jsonl"
FACTORIAL = "def factorial(n):\n    if n == 0:\n        return 1\n    return "


@pytest.fixture(scope="module")
def house() -> Iterator[Home]:
    folder = Path(tempfile.mkdtemp(prefix="ft-"))
    made = Home(folder)
    made.environment["FORETYPE_MODELS"] = os.environ["FORETYPE_MODELS"]
    made.up()
    until(lambda: made.status()["model"]["phase"] == "ready", 120)
    yield made
    made.run("down", cwd=Path("/"))
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def where(house: Home) -> client.Address:
    return client.Address(house.socket)


def port(house: Home) -> int:
    (address,) = [a for a in house.status()["addresses"] if a.startswith("http")]
    return int(address.rsplit(":", 1)[1])


def post(house: Home, path: str, body: Any) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port(house), timeout=60)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200
    data = answer.read()
    connection.close()
    return data


def complete(house: Home, **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(post(house, "/v1/complete", {"recall": False, **body}))
    return answer


def test_ghost_text_on_the_command_line(house: Home) -> None:
    done = house.run("complete", str(SAMPLES / "orders.py:10:5"), "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["text"].strip().startswith("return")
    counters = answer["counters"]
    assert counters["prompt"] == counters["reused"] + counters["evaluated"] > 0
    assert sum(segment["tokens"] for segment in answer["segments"]) == counters["prompt"]


def test_a_known_function_is_completed(house: Home) -> None:
    answer = complete(house, prefix=FACTORIAL, suffix="\n")
    assert re.fullmatch(r"n \* factorial\(n ?- ?1\)", answer["text"])
    assert answer["stop"] == "line"


def test_streamed_pieces_are_the_text(house: Home) -> None:
    data = post(house, "/v1/complete", {"prefix": FACTORIAL, "suffix": "\n", "stream": True}).decode()
    events = [
        json.loads(line.removeprefix("data: ")) for line in data.splitlines() if line.startswith("data: ")
    ]
    assert events[-1]["done"] is True
    assert "".join(e["text"] for e in events[:-1]) == events[-1]["text"] != ""


def test_half_a_word_is_healed(house: Home) -> None:
    answer = complete(house, prefix=FACTORIAL + "n * fact", suffix="\n")
    assert answer["text"].startswith("orial(")


def test_crlf_gives_the_same_answer_in_its_own_line_ends(house: Home) -> None:
    body = "\nclass Point:\n    def __init__(self, x, y):\n        self.x = x\n        "
    plain = complete(house, prefix=body, suffix="\n", lines="block", max_tokens=24)
    windows = complete(house, prefix=body.replace("\n", "\r\n"), suffix="\r\n", lines="block", max_tokens=24)
    assert windows["text"] == plain["text"].replace("\n", "\r\n")
    assert windows["counters"]["prompt"] == plain["counters"]["prompt"]


def test_typing_evaluates_a_few_tokens_a_key(house: Home) -> None:
    document = (SAMPLES / "orders.py").read_text()
    typed, evaluated = "", []
    for key in "\n\ndef most_expensive(lines):\n    return ":
        typed += key
        evaluated.append(
            complete(house, prefix=document + typed, suffix="\n", max_tokens=4)["counters"]["evaluated"]
        )
    assert sorted(evaluated[1:])[len(evaluated) // 2] <= 2
    assert max(evaluated[1:]) <= 8


def test_the_recorded_vim_session_is_answered(house: Home) -> None:
    bodies = [json.loads(line)["body"] for line in SESSION.read_text().splitlines()]
    shown = 0
    for body in bodies[:24:2]:
        data = post(house, "/infill", body).decode()
        assert data.startswith("{")
        assert re.search(r'"content"\s*:"', data)
        answer = json.loads(data)
        assert set(answer) == set(body["response_fields"])
        shown += bool(answer["content"].strip())
    assert shown >= 8


def test_warm_up_spares_the_next_request(house: Home) -> None:
    extra = [{"text": "def helper(value):\n    return value * 2\n" * 8, "filename": "helper.py", "time": 1}]
    common = {
        "input_extra": extra,
        "input_prefix": "def f(x):\n    return ",
        "input_suffix": "\n",
        "prompt": "",
    }
    post(house, "/infill", {**common, "n_predict": 0})
    answer = json.loads(post(house, "/infill", {**common, "n_predict": 8}))
    assert answer["timings"]["prompt_n"] <= 2


def test_control_strings_in_the_source_do_no_harm(house: Home) -> None:
    source = 'MARKERS = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|endoftext|>"]\n\n'
    answer = complete(house, prefix=source + FACTORIAL, suffix="\n")
    assert re.fullmatch(r"n \* factorial\(n ?- ?1\)", answer["text"])


@pytest.mark.parametrize(
    "body",
    [
        {"prefix": "", "suffix": ""},
        {"prefix": "", "suffix": "\n    return total\n"},
        {"prefix": "\ud800\udc00 \ud800 \0 é", "suffix": "\udfff"},
        {"prefix": "x" * 500_000, "suffix": "y" * 500_000, "max_tokens": 4},
        {"text": "a\nb", "cursor": {"line": 900, "character": 900}},
    ],
)
def test_strange_documents_are_answered(house: Home, body: dict[str, Any]) -> None:
    answer = complete(house, **body)
    assert answer["counters"]["prompt"] == answer["counters"]["reused"] + answer["counters"]["evaluated"]


def test_a_killed_engine_ends_the_answer_and_comes_back(house: Home, where: client.Address) -> None:
    """The running request ends empty with a reason; the next is answered by the new engine."""
    ended: list[dict[str, Any]] = []
    body = {
        "prefix": "# a long story\n" * 40,
        "suffix": "",
        "lines": "free",
        "max_tokens": 400,
        "time_ms": 60_000,
    }
    thread = threading.Thread(target=lambda: ended.append(complete(house, **body)))
    thread.start()
    until(lambda: house.status()["queue"]["idle"] is False, 20)
    os.kill(house.status()["children"][0]["pid"], signal.SIGKILL)
    thread.join(30)
    assert ended[0]["stop"] == "engine"
    assert "SIGKILL" in ended[0]["note"]
    assert "SIGKILL" in json.dumps(house.status()["children"])

    def answered() -> bool:
        try:
            return (
                client.request("POST", "/v1/complete", {"prefix": FACTORIAL, "suffix": "\n"}, at=where)[
                    "text"
                ]
                != ""
            )
        except ForetypeError:
            return False

    until(answered, 20)
