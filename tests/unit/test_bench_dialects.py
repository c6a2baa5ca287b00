"""What a client needs of an answer: real doors give it, and what lacks something is found out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.house import Standing, standing

from daemon.bench import dialects, sessions
from daemon.bench.sessions import Sent
from daemon.bench.wire import Endpoint, Reply, exchange

SESSIONS = sorted((Path(__file__).parent.parent / "data" / "wire").glob("*.jsonl"))
FIELDS = ["content", "timings/prompt_n", "truncated"]
INFILL = {"input_prefix": "x = ", "response_fields": FIELDS}
WHOLE = '{"content":"1","timings/prompt_n":1,"truncated":false}'
CHOICE = {"index": 0, "text": "1", "finish_reason": "stop"}
OPENAI = {
    "id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [CHOICE],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}  # fmt: skip
HEALTH = {
    "model": "m", "device": "cpu", "arch": "x", "cpu_info": "", "cpu_count": 1, "cuda_devices": [],
    "version": {},
}  # fmt: skip
LINE = {"model": "m", "created_at": "", "response": "1", "done": False}


def sent(path: str, body: Any = None, method: str = "POST") -> Sent:
    raw = b"" if body is None else json.dumps(body).encode()
    return Sent(method, path, {"Content-Type": "application/json"}, raw)


def without(whole: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in whole.items() if name != key}


def broken() -> Iterator[tuple[Sent, str, int, str]]:
    """(request, answer, status, a word of the reason)."""
    infill, openai = sent("/infill", INFILL), sent("/v1/completions", {"prompt": "x"})
    tabby = sent("/v1/completions", {"segments": {"prefix": "x"}})
    yield infill, WHOLE, 500, "status 500"
    yield infill, WHOLE.replace('t":"1', 't": "1'), 200, "blank"
    yield infill, " " + WHOLE, 200, "brace"
    yield infill, WHOLE.replace(",", ",\n"), 200, "one line"
    yield infill, WHOLE.replace("timings/prompt_n", "timings"), 200, "timings/prompt_n"
    yield infill, WHOLE.replace('"1"', '"<|fim_suffix|>"'), 200, "control"
    for key in OPENAI:
        yield openai, json.dumps(without(OPENAI, key)), 200, key
    yield openai, json.dumps({**OPENAI, "choices": [without(CHOICE, "finish_reason")]}), 200, "finish_reason"
    yield (
        sent("/v1/completions", {"prompt": "x", "stream": True}),
        f"data: {json.dumps(OPENAI)}\n\n",
        200,
        "end",
    )
    yield tabby, json.dumps({"id": "x", "choices": []}), 200, "id"
    yield tabby, json.dumps({"id": "cmpl-1", "choices": [{"index": 1, "text": ""}]}), 200, "order"
    yield sent("/v1/events?select_kind=line", {"type": "view"}), "{}", 200, "body"
    yield sent("/v1/health", method="GET"), json.dumps(without(HEALTH, "cpu_count")), 200, "cpu_count"
    yield sent("/v1/health", method="GET"), json.dumps({**HEALTH, "model": ""}), 200, "model"
    yield sent("/v1beta/server_setting", method="GET"), "{}", 200, "telemetry"
    yield sent("/health", method="GET"), '{"status":"loading"}', 200, "ok"
    yield sent("/api/generate", {"prompt": "x"}), json.dumps(LINE), 200, "done"


@pytest.mark.parametrize(("request_", "raw", "status", "word"), list(broken()))
def test_what_a_client_cannot_use_is_found_out(request_: Sent, raw: str, status: int, word: str) -> None:
    with pytest.raises(dialects.Wrong, match=word):
        dialects.check(request_, Reply(status, "", raw.encode()))


async def replayed(house: Standing, request: Sent) -> str:
    endpoint = Endpoint("127.0.0.1", house.served.port)
    reply = await exchange(endpoint, request.method, request.path, request.body, request.headers)
    return dialects.check(request, reply)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
async def test_recorded_sessions_get_what_they_need(path: Path) -> None:
    async with standing("answer()") as house:
        for request in sessions.load_sent(path):
            text = await replayed(house, request)
            asks = request.path in ("/infill", "/v1/completions") and b'"n_predict": 0' not in request.body
            assert text == ("answer()" if asks else "")


@pytest.mark.parametrize(
    "request_",
    [
        sent("/v1/completions", {"prompt": "x = ", "suffix": "\n"}),
        sent("/v1/completions", {"prompt": "x = ", "stream": True}),
        sent("/v1/completions", {"segments": {"prefix": "x = "}}),
        sent("/api/generate", {"prompt": "x = ", "suffix": "\n"}),
        sent("/api/generate", {"prompt": "x = ", "stream": False}),
        sent("/infill", {"input_prefix": "x = "}),
    ],
)
async def test_other_clients_do_too(request_: Sent) -> None:
    async with standing("answer()") as house:
        assert await replayed(house, request_) == "answer()"
        for path in ("/health", "/v1/health"):
            assert await replayed(house, sent(path, method="GET")) == ""
