"""What holds at the doors of every dialect."""

from typing import Any

import pytest
from support.house import standing

DIALECTS = [
    ("POST", "/completion"),
    ("POST", "/completions"),
    ("POST", "/chat/completions"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/fim/completions"),
    ("POST", "/v1/fim/completions"),
    ("POST", "/api/generate"),
    ("POST", "/api/chat"),
    ("POST", "/api/show"),
    ("GET", "/api/tags"),
    ("GET", "/api/ps"),
    ("GET", "/api/version"),
]
"""Doors whose errors have another shape."""


@pytest.mark.parametrize(("method", "path"), DIALECTS)
async def test_other_dialects_are_guarded_the_same(method: str, path: str) -> None:
    async with standing() as house:
        body = {"prompt": "x"} if method == "POST" else None
        cases: list[tuple[dict[str, str | None], int]] = [
            ({"Host": "evil.test"}, 403),
            ({"Origin": "http://127.0.0.1:8012"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
        ]
        if method == "POST":
            cases += [({"Content-Type": kind}, 415) for kind in ("text/plain", None, "multipart/form-data")]
        for headers, status in cases:
            reply = await house.ask(method, path, body, headers)
            assert (reply.status, list(reply.json)) == (status, ["error"])
            assert not [name for name in reply.headers if name.startswith("access-control")]
        assert not house.pipeline.requests


@pytest.mark.parametrize(
    ("body", "door"),
    [
        ({"prompt": "x"}, "openai"),
        ({"prompt": "x", "segments": None, "debug_options": None}, "openai"),
        ({"segments": {"prefix": "x"}}, "tabby"),
        ({"prompt": "x", "segments": {"prefix": "x"}, "stream": True}, "tabby"),
        ({"debug_options": {"raw_prompt": "x"}}, "tabby"),
    ],
)
async def test_one_address_of_two_dialects(body: dict[str, Any], door: str) -> None:
    async with standing() as house:
        assert (await house.ask("POST", "/v1/completions", body)).status == 200
        assert [request.door for request in house.pipeline.requests] == [door]


@pytest.mark.parametrize("samplers", [["top_k", "top_p", "infill"], [], None, 3])
async def test_how_a_client_would_sample_is_no_matter(samplers: object) -> None:
    async with standing() as house:
        more = {"samplers": samplers, "id_slot": 0, "t_max_prompt_ms": 500, "lora": [{"id": 0, "scale": 1}]}
        reply = await house.ask("POST", "/infill", {"input_prefix": "x", **more})
        assert (reply.status, reply.json["content"]) == (200, "answer()")
