"""Sockets, slow and vanished clients, and the end."""

import asyncio
import logging
import socket
import stat
import time

import pytest
from support.house import Standing, head_and_body, read_reply, standing

from daemon.doors.house import House, Patience
from daemon.doors.http import build, serve
from daemon.errors import LifecycleError
from daemon.settings import Server

ASK = {"prefix": "x" * 300, "client": "me"}


async def gone(reader: asyncio.StreamReader, seconds: float = 5.0) -> bytes:
    """What still comes until the other side hangs up."""
    async with asyncio.timeout(seconds):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("unix", [False, True])
async def test_a_vanished_client_cancels_at_once(streaming: bool, unix: bool) -> None:
    async with standing(lambda job: "word " * 1000) as house:
        house.engine.hold()
        _, writer = await house.connect(unix)
        writer.write(head_and_body("POST", "/v1/complete", {**ASK, "stream": streaming}))
        await house.engine.until(lambda: len(house.engine.jobs) == 1)
        left = time.perf_counter()
        writer.transport.abort()
        await house.engine.until(lambda: bool(house.engine.ends))
        assert time.perf_counter() - left < 0.5
        assert set(house.engine.ends.values()) == {"cancelled"}
        assert house.engine.work.total() == 0, "nothing was evaluated after the client had gone"
        async with asyncio.timeout(1):
            await house.traffic.empty.wait()
        assert not house.traffic.works
        assert house.metrics.total("answers", "vanished") == 1


async def test_twenty_clients_that_leave_and_one_that_stays() -> None:
    async with standing() as house:
        house.engine.hold()
        writers = []
        for number in range(20):
            _, writer = await house.connect()
            writer.write(head_and_body("POST", "/v1/complete", {**ASK, "client": str(number)}))
            writers.append(writer)
        await house.engine.until(lambda: len(house.engine.jobs) == 20)
        for writer in writers:
            writer.transport.abort()
        await house.engine.until(lambda: len(house.engine.ends) == 20)
        house.engine.go_on()
        assert (await house.ask("POST", "/v1/complete", ASK)).json["text"] == "answer()"
        assert len(house.engine.work) == 1, "the 20 were never started"


async def test_health_is_answered_during_a_generation() -> None:
    async with standing(lambda job: "word " * 4000) as house:
        asked = asyncio.create_task(
            house.ask("POST", "/v1/complete", {**ASK, "max_tokens": 4000, "lines": "free", "time_ms": 60_000})
        )
        await house.engine.until(lambda: len(house.engine.jobs) == 1)
        reader, writer = await house.connect()
        for _ in range(100):
            writer.write(head_and_body("GET", "/health"))
            assert (await read_reply(reader, 5)).json == {"status": "ok"}
        assert (await house.ask("GET", "/slots")).json[0]["is_processing"] is not asked.done()
        writer.close()
        assert (await asked).json["counters"]["generated"] == 4000


async def test_a_head_in_drops_is_cut_off() -> None:
    async with standing(patience=Patience(head=0.2)) as house:
        for start in (b"", b"POST /infill HTTP/1.1\r\nHost: 127"):
            reader, writer = await house.connect()
            writer.write(start)
            assert await gone(reader) == b""
            writer.close()


async def test_a_body_in_drops_is_cut_off_and_counted() -> None:
    async with standing(patience=Patience(body=0.1, linger=0.1)) as house:
        reader, writer = await house.connect()
        writer.write(head_and_body("POST", "/infill", b'{"input_', {"Content-Length": "100"}))
        reply = await read_reply(reader)
        assert (reply.status, reply.json["error"]["type"]) == (408, "timeout")
        assert await gone(reader) == b""
        writer.close()
        assert house.metrics.total("refused", "slow") == 1
        assert house.traffic.inside == 0


async def test_a_reader_that_does_not_read_is_cut_off() -> None:
    script = "w" * 2_000_000 + " "
    async with standing(lambda job: script * 8, patience=Patience(read=0.2)) as house:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        with sock:
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", house.served.port))
            ask = {**ASK, "stream": True, "lines": "free"}
            await asyncio.get_running_loop().sock_sendall(sock, head_and_body("POST", "/v1/complete", ask))
            await house.engine.until(lambda: bool(house.engine.ends))
            async with asyncio.timeout(5):
                await house.traffic.empty.wait()
        assert (await house.ask("GET", "/health")).status == 200


async def test_garbage_is_answered_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with standing() as house:
        for garbage in (
            b"secret\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
            b"GET / HTTP/1.1\r\nsecret\x00: 1\r\n\r\n",
        ):
            reader, writer = await house.connect()
            writer.write(garbage)
            writer.write_eof()
            assert b" 200 " not in await gone(reader)
            writer.close()
        assert (await house.ask("GET", "/health")).status == 200
    assert "secret" not in caplog.text


async def test_an_unexpected_failure_is_placed_but_not_quoted(caplog: pytest.LogCaptureFixture) -> None:
    async with standing(lambda job: str(1 // len(job.suffix)) + "secret") as house:
        reply = await house.ask("POST", "/v1/complete", ASK)
        assert (reply.status, reply.json["error"]["type"]) == (500, "internal")
        assert "division" not in reply.json["error"]["message"]
    assert "ZeroDivisionError in a door" in caplog.text
    assert not [record for record in caplog.records if record.exc_info]
    assert caplog.records[0].levelno == logging.ERROR


async def test_the_end_tells_streams_and_waits_for_nobody() -> None:
    async with standing(lambda job: "word " * 1000) as house:
        house.engine.hold_after = 5
        streams = []
        for number in range(3):
            reader, writer = await house.connect()
            body = {**ASK, "client": str(number), "stream": True, "lines": "free"}
            writer.write(head_and_body("POST", "/v1/complete", body))
            streams.append((reader, writer))
        whole = asyncio.create_task(house.ask("POST", "/infill", {"input_prefix": "x", "client": "whole"}))
        idle, idle_writer = await house.connect()
        await house.engine.until(lambda: len(house.engine.jobs) == 4)
        begun = time.perf_counter()
        await house.served.close()
        assert time.perf_counter() - begun < 1.5
        texts: list[str] = []
        for reader, writer in streams:
            *pieces, last = (await read_reply(reader)).events
            texts.append(last["text"])
            assert "".join(piece["text"] for piece in pieces) == last["text"]
            assert (last["stop"], last["done"], last["note"]) == ("cancelled", True, "the daemon is stopping")
            writer.close()
        assert any(texts), "the stream that had begun ends with what it had said"
        reply = await whole
        assert (reply.status, reply.json["content"], reply.json["stop_type"]) == (200, "", "none")
        assert await gone(idle) == b""
        idle_writer.close()
        assert len(house.engine.ends) == 4
        assert house.served.socket_path is not None
        assert not house.served.socket_path.exists()


async def test_who_comes_while_it_ends_is_told() -> None:
    async with standing() as house:
        reader, writer = await house.connect()
        writer.write(head_and_body("GET", "/health"))
        await read_reply(reader)
        house.traffic.draining = True
        writer.write(head_and_body("POST", "/infill", {}))
        reply = await read_reply(reader)
        assert (reply.status, reply.json["error"]["type"]) == (503, "unavailable")
        writer.close()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def spare(house: Standing, server: Server) -> House:
    return House(
        pipeline=house.pipeline,
        settings=type(house.house.settings)(server=server),
        status=house.house.status,
        hello=house.house.hello,
        stop=house.house.stop,
        engine=house.engine,
        metrics=house.metrics,
        documents=house.mirror,
        ledger=house.house.ledger,
        feedback=house.house.feedback,
    )


async def test_a_taken_port_is_named() -> None:
    async with standing() as house:
        other = spare(house, Server(port=house.served.port))
        with pytest.raises(LifecycleError, match=f"port {house.served.port} is taken.*--port"):
            await serve(build(other), other, None, house.served.port)
        assert (await house.ask("GET", "/health")).status == 200


async def test_only_the_socket() -> None:
    async with standing() as house:
        assert house.served.addresses == (
            f"http://127.0.0.1:{house.served.port}",
            f"unix:{house.served.socket_path}",
        )
        assert house.served.socket_path is not None
        path = house.served.socket_path.with_name("e.sock")
        other = spare(house, Server(tcp=False))
        served = await serve(build(other), other, path, 0)
        assert (served.port, served.addresses) == (0, (f"unix:{path}",))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await served.close()
        with pytest.raises(LifecycleError, match="no address"):
            await serve(build(other), other, None, None)


async def test_the_sockets_folder_must_be_ours_alone() -> None:
    async with standing() as house:
        assert house.served.socket_path is not None
        folder = house.served.socket_path.parent
        other = spare(house, Server())
        with pytest.raises(LifecycleError, match="cannot be used"):
            await serve(build(other), other, folder / "absent" / "d.sock", None)
        (folder / "file.sock").write_text("mine", encoding="utf-8")
        with pytest.raises(LifecycleError, match="is no socket"):
            await serve(build(other), other, folder / "file.sock", None)
        (folder / "link.sock").symlink_to(house.served.socket_path)
        with pytest.raises(LifecycleError, match="is no socket"):
            await serve(build(other), other, folder / "link.sock", None)
        folder.chmod(0o755)
        with pytest.raises(LifecycleError, match="open to other users"):
            await serve(build(other), other, folder / "f.sock", None)


async def test_a_dead_daemons_socket_is_replaced_and_a_successors_is_kept() -> None:
    async with standing() as house:
        path = house.served.socket_path
        assert path is not None
        other = spare(house, Server())
        successor = await serve(build(other), other, path, None)
        await house.served.close()
        assert (await house.ask("GET", "/health", unix=True)).status == 200
        await successor.close()
        assert not path.exists()


async def test_extra_ports_are_guarded_as_the_first() -> None:
    async with standing() as house:
        port = free_port()
        other = spare(house, Server(port=0, extra_ports=(port, house.served.port)))
        served = await serve(build(other), other, None, 0)
        assert served.extra == (port,)
        assert served.addresses == (f"http://127.0.0.1:{served.port}", f"http://127.0.0.1:{port}")
        (refused,) = served.refused
        assert refused == f"port {house.served.port} is taken by another program: nothing is answered there"
        for each in (served.port, port):
            for headers, status in (({}, 200), ({"Host": "evil.test"}, 403), ({"Origin": "null"}, 403)):
                reader, writer = await asyncio.open_connection("127.0.0.1", each)
                writer.write(head_and_body("GET", "/health", headers=headers))
                assert (await read_reply(reader)).status == status
                writer.close()
        await served.close()


async def test_without_a_first_port_there_are_no_others() -> None:
    async with standing() as house:
        port = free_port()
        path = house.served.socket_path
        assert path is not None
        other = spare(house, Server(tcp=False, extra_ports=(port,)))
        served = await serve(build(other), other, path.with_name("e.sock"), 0)
        assert (served.port, served.extra, served.refused) == (0, (), ())
        await served.close()
