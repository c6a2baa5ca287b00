"""Whose process is at the other end, by netlink, by table and by credentials."""

import asyncio
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from support.house import Standing, standing

from daemon.doors import peers
from daemon.doors.peers import find_uid, table_uid

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(mine: str, other: str, state: str, uid: int) -> str:
    return f"   0: {mine} {other} {state} 00000000:00000000 00:00000000 00000000  {uid}        0 123 1 0\n"


def word(number: int) -> str:
    """A 32-bit word in network order as /proc prints it on this machine."""
    return f"{struct.unpack('=I', struct.pack('>I', number))[0]:08X}"


LOOPBACK = word(0x7F000001)
MAPPED = word(0) * 2 + word(0xFFFF) + LOOPBACK
CLIENT, SERVER = ("127.0.0.1", 0xB5CA), ("127.0.0.1", 0x1F4C)


@pytest.mark.parametrize("host", [LOOPBACK, MAPPED])
@pytest.mark.parametrize("state", ["01", "04", "05", "08"])
def test_the_row_seen_from_the_client_decides(host: str, state: str) -> None:
    ours, theirs = f"{host}:1F4C", f"{host}:B5CA"
    text = HEAD + row(ours, theirs, "01", 1000) + row(theirs, ours, state, 65534)
    assert find_uid(text, CLIENT, SERVER) == 65534
    assert find_uid(text, SERVER, CLIENT) == 1000


@pytest.mark.parametrize("state", ["06", "0A", "07"])
def test_rows_without_an_owner_do_not_count(state: str) -> None:
    text = HEAD + row(f"{LOOPBACK}:B5CA", f"{LOOPBACK}:1F4C", state, 0)
    assert find_uid(text, CLIENT, SERVER) is None


def test_other_ports_and_broken_rows_do_not_count() -> None:
    text = HEAD + row(f"{LOOPBACK}:B5CB", f"{LOOPBACK}:1F4C", "01", 0) + "   1: half a row\n\n"
    assert find_uid(text, CLIENT, SERVER) is None
    assert find_uid("", CLIENT, SERVER) is None


def test_tables_that_cannot_be_read_say_nothing(tmp_path: Path) -> None:
    second = tmp_path / "tcp6"
    second.write_text(HEAD + row(f"{MAPPED}:B5CA", f"{MAPPED}:1F4C", "01", 7), encoding="ascii")
    assert table_uid(CLIENT, SERVER, (tmp_path / "absent", second)) == 7
    assert table_uid(CLIENT, SERVER, (tmp_path / "absent",)) is None


def test_real_connections_of_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = listener.getsockname()
        with socket.create_connection(server) as client:
            end = client.getsockname()
            if sys.platform.startswith("linux"):
                assert peers.netlink_uid(end, server) == os.getuid()
                assert table_uid(end, server) == os.getuid()
                assert peers.netlink_uid(("127.0.0.1", 1), server) is None


def test_real_unix_peers_of_ours() -> None:
    left, right = socket.socketpair()
    with left, right:
        assert peers.unix_uid(left) in (os.getuid(), None)


KNOCK = """
import os, socket, sys
kind, where, uid = sys.argv[1:]
if kind == "tcp":
    client = socket.socket()
    address = ("127.0.0.1", int(where))
else:
    client = socket.socket(socket.AF_UNIX)
    address = where
"host".encode("idna")
if int(uid) != os.getuid():
    client.close()
    os.setgroups([]); os.setgid(int(uid)); os.setuid(int(uid))
    client = socket.socket(client.family)
try:
    client.connect(address)
except PermissionError:
    sys.exit("shut out")
client.sendall(b"POST /v1/stop HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n"
               b"Content-Length: 2\\r\\n\\r\\n{}")
print(client.recv(4096).split()[1].decode())
"""


async def knock(house: Standing, kind: str, uid: int) -> str:
    """What a process of `uid` is told at the door: a status, or `shut out` by the file system."""
    where = str(house.served.port if kind == "tcp" else house.served.socket_path)
    command = [sys.executable, "-I", "-c", KNOCK, kind, where, str(uid)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=30)
    return (done.stdout or done.stderr).strip()


@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_our_own_processes_come_in(kind: str) -> None:
    async with standing() as house:
        assert await knock(house, kind, os.getuid()) == "200"
        assert house.stopped.is_set()


async def test_another_user_is_refused() -> None:
    """Needs root to become somebody else; without it our verdict on a synthetic table must do."""
    if os.getuid() != 0:
        text = HEAD + row(f"{LOOPBACK}:B5CA", f"{LOOPBACK}:1F4C", "01", os.getuid() + 1)
        assert find_uid(text, CLIENT, SERVER) != os.getuid()
        return
    async with standing() as house:
        assert await knock(house, "tcp", 65534) == "403"
        assert await knock(house, "unix", 65534) == "shut out"
        path = house.served.socket_path
        assert path is not None
        path.chmod(0o777)
        path.parent.chmod(0o755)
        assert await knock(house, "unix", 65534) == "403"
        assert house.metrics.total("refused", "user") == 2
        assert not house.stopped.is_set()
