"""Who is refused: every rule on real sockets, before any work, counted by reason."""

import asyncio

import msgspec
import pytest
from support.house import Standing, head_and_body, read_reply, standing

from daemon.doors.wire import scrub
from daemon.settings import Server

ASK = {"prefix": "def f():\n", "suffix": "\n"}
ROUTES = [
    ("GET", "/health"),
    ("GET", "/props"),
    ("GET", "/slots"),
    ("GET", "/v1/models"),
    ("GET", "/v1/hello"),
    ("GET", "/v1/status"),
    ("POST", "/v1/stop"),
    ("POST", "/v1/complete"),
    ("POST", "/infill"),
    ("GET", "/nowhere"),
]


async def refused(
    house: Standing, status: int, reason: str, method: str, path: str, **headers: str | None
) -> None:
    """The request is answered `status` in our shape, counted under `reason`, and reaches no pipeline."""
    before = house.metrics.total("refused", reason)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = await house.ask(method, path, ASK if method == "POST" else None, sent)
    assert reply.status == status
    assert reply.json["error"]["code"] == status
    assert house.metrics.total("refused", reason) == before + 1
    assert not house.pipeline.requests
    assert not house.stopped.is_set()
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_a_foreign_host_is_refused_on_every_route(method: str, path: str) -> None:
    async with standing() as house:
        await refused(house, 403, "host", method, path, Host="evil.test:8012")


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.test",
        "127.0.0.1.evil.test",
        "127.0.0.1@evil.test",
        "127.0.0.1 evil.test",
        "[::1].evil.test",
        "127.0.0.1:x",
        "127.0.0.2",
        "0.0.0.0:8012",
        "localhost.",
        "foretype",
        "foretype:8012",
    ],
)
async def test_hosts_that_are_not_loopback(host: str) -> None:
    async with standing() as house:
        await refused(house, 403, "host", "POST", "/infill", Host=host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:1", "localhost", "LOCALHOST:8012", "[::1]", "[::1]:8399"]
)
async def test_hosts_that_are_loopback(host: str) -> None:
    async with standing() as house:
        assert (await house.ask("GET", "/health", headers={"Host": host})).status == 200


async def test_our_own_host_name_is_good_on_the_unix_socket_only() -> None:
    async with standing() as house:
        assert (await house.ask("GET", "/health", headers={"Host": "foretype"}, unix=True)).status == 200
        assert (await house.ask("GET", "/health", headers={"Host": "evil.test"}, unix=True)).status == 403


async def test_no_host_two_hosts_or_an_absolute_target_are_refused() -> None:
    async with standing() as house:
        for head in (
            b"GET /health HTTP/1.0\r\n\r\n",
            b"GET /health HTTP/1.1\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.test\r\n\r\n",
            b"GET http://evil.test/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        ):
            reader, writer = await house.connect()
            writer.write(head)
            assert (await read_reply(reader)).status in (400, 403)
            writer.close()


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_pages_are_refused_on_every_route(method: str, path: str) -> None:
    async with standing() as house:
        await refused(house, 403, "origin", method, path, Origin="http://127.0.0.1:8012")
        await refused(house, 403, "origin", method, path, Origin="null")
        await refused(house, 403, "origin", method, path, Sec_Fetch_Site="cross-site")
        await refused(house, 403, "origin", method, path, Sec_Fetch_Site="same-site")


@pytest.mark.parametrize("method", ["OPTIONS", "HEAD", "PUT", "DELETE", "PATCH", "TRACE"])
async def test_only_get_and_post(method: str) -> None:
    async with standing() as house:
        if method == "HEAD":
            reader, writer = await house.connect()
            writer.write(head_and_body("HEAD", "/health"))
            assert (await reader.readline()).split()[1] == b"405"
            writer.close()
        else:
            await refused(house, 405, "method", method, "/infill")


async def test_a_preflight_gets_no_permission() -> None:
    async with standing() as house:
        await refused(
            house, 403, "origin", "OPTIONS", "/infill", Origin="null", Access_Control_Request_Method="POST"
        )


@pytest.mark.parametrize("path", ["/health", "/v1/complete", "/nowhere"])
async def test_no_websockets(path: str) -> None:
    async with standing() as house:
        key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec_WebSocket_Version": "13"}
        await refused(house, 403, "upgrade", "GET", path, Upgrade="websocket", Connection="Upgrade", **key)


async def test_an_offer_of_http2_is_not_taken_up_but_answered() -> None:
    async with standing() as house:
        offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"}
        assert (await house.ask("GET", "/health", headers=offer)).status == 200


@pytest.mark.parametrize(
    "kind",
    [None, "", "text/plain", "text/plain;a=application/json", "multipart/form-data", "application/jsonp"],
)
async def test_posts_must_be_json(kind: str | None) -> None:
    async with standing() as house:
        await refused(house, 415, "type", "POST", "/infill", Content_Type=kind)
        await refused(house, 415, "type", "POST", "/v1/stop", Content_Type=kind)


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
async def test_json_with_a_charset_is_fine(kind: str) -> None:
    async with standing() as house:
        assert (await house.ask("POST", "/v1/complete", ASK, {"Content-Type": kind})).status == 200


async def test_compressed_bodies_are_refused() -> None:
    async with standing() as house:
        await refused(house, 415, "type", "POST", "/infill", Content_Encoding="gzip")


@pytest.mark.parametrize(
    "bearer", [None, "", "Bearer ", "Bearer wrong", "Basic right", "Bearer right2", "right"]
)
async def test_a_configured_token_is_needed_on_every_route(bearer: str | None) -> None:
    async with standing(server=Server(port=0, token="right")) as house:
        for method, path in ROUTES:
            await refused(house, 401, "token", method, path, Authorization=bearer)


async def test_the_right_token_opens() -> None:
    async with standing(server=Server(port=0, token="rüght")) as house:
        for value in ("Bearer rüght", "bearer rüght"):
            encoded = value.encode().decode("latin-1")
            assert (await house.ask("GET", "/health", headers={"Authorization": encoded})).status == 200


@pytest.mark.parametrize("bearer", ["Bearer ", "Bearer undefined", "Bearer", "x"])
async def test_without_a_token_any_bearer_is_fine(bearer: str) -> None:
    async with standing() as house:
        assert (await house.ask("POST", "/infill", {}, {"Authorization": bearer})).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/v1/complete/",
        "/v1/%2e%2e/health2",
        "/static/x",
        "/%00",
    ],
)
async def test_unknown_addresses_and_traversal_are_not_found(path: str) -> None:
    async with standing() as house:
        reply = await house.ask("GET", path)
        assert reply.status == 404
        assert reply.json["error"]["type"] == "not_found"
        assert reply.headers["server"] == "foretype"
        wrong = await house.ask("GET", "/infill")
        assert wrong.status == 405


async def test_a_body_that_says_it_is_too_long_is_not_read() -> None:
    async with standing(server=Server(port=0, max_body_mb=1)) as house:
        reader, writer = await house.connect()
        length = {"Content-Length": str(10 * 1024 * 1024), "Expect": "100-continue"}
        writer.write(head_and_body("POST", "/infill", b"{", length))
        reply = await read_reply(reader)
        assert reply.status == 413
        assert "max_body_mb" in reply.json["error"]["message"]
        writer.close()
        assert house.metrics.total("refused", "size") == 1


async def test_ten_megabytes_are_refused_while_they_are_sent() -> None:
    async with standing(server=Server(port=0, max_body_mb=1)) as house:
        body = b'{"prefix":"' + b"x" * 10_000_000 + b'"}'
        assert (await house.ask("POST", "/v1/complete", body)).status == 413
        chunked = {"Content-Length": None, "Transfer-Encoding": "chunked"}
        pieces = b"".join(b"10000\r\n" + b"x" * 65536 + b"\r\n" for _ in range(40)) + b"0\r\n\r\n"
        assert (await house.ask("POST", "/v1/complete", pieces, chunked)).status == 413
        assert house.metrics.total("refused", "size") == 2
        assert (await house.ask("GET", "/health")).status == 200


async def test_eight_megabytes_within_the_limit_are_answered() -> None:
    async with standing() as house:
        body = b'{"prefix":"' + b"x" * 8_000_000 + b'","warm":true}'
        assert (await house.ask("POST", "/v1/complete", body)).status == 200


async def test_expect_is_invited_after_the_rules() -> None:
    async with standing() as house:
        reader, writer = await house.connect()
        body = msgspec.json.encode(ASK)
        whole = head_and_body("POST", "/v1/complete", body, {"Expect": "100-continue"})
        writer.write(whole[: -len(body)])
        async with asyncio.timeout(5):
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await read_reply(reader)).status == 200
        writer.close()


async def test_a_full_house_says_when_to_come_back_and_still_answers_status() -> None:
    async with standing(server=Server(port=0, max_concurrent=2)) as house:
        house.engine.hold()
        asked = [
            asyncio.create_task(house.ask("POST", "/v1/complete", {**ASK, "client": str(n)}))
            for n in range(2)
        ]
        await house.engine.until(lambda: len(house.engine.jobs) == 2)
        busy = await house.ask("POST", "/infill", {})
        assert busy.status == 429
        assert busy.headers["retry-after"] == "1"
        assert (await house.ask("GET", "/v1/status")).json["metrics"]["counters"]["refused"] == {"busy": 1}
        house.engine.go_on()
        assert [(await reply).status for reply in asked] == [200, 200]


async def test_refusals_show_in_status() -> None:
    async with standing() as house:
        await house.ask("GET", "/health", headers={"Host": "evil.test"})
        await house.ask("POST", "/infill", {}, {"Content-Type": "text/plain"})
        counters = (await house.ask("GET", "/v1/status")).json["metrics"]["counters"]
        assert counters["refused"] == {"host": 1, "type": 1}


async def test_errors_name_no_path() -> None:
    async with standing() as house:
        house.pipeline.refuse = True
        reply = await house.ask("POST", "/infill", {"input_prefix": "secret = 1"})
        assert reply.status == 501
        assert reply.json["error"] == {
            "code": 501,
            "message": "the model in x.gguf cannot do that",
            "type": "not_supported",
        }


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("/a/b/c.gguf is cut", "c.gguf is cut"),
        ("cannot open '/a/b c'", "cannot open 'b c'"),
        (r"C:\Users\me\m.gguf is cut", "m.gguf is cut"),
        ("a/b and 1/2 stay", "a/b and 1/2 stay"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
    ],
)
def test_scrub(message: str, shown: str) -> None:
    assert scrub(message) == shown
