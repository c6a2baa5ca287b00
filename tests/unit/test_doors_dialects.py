"""What holds at the doors of every dialect."""

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
