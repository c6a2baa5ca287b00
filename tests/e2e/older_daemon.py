"""A daemon of an older build, another implementation: it holds the lock and speaks the
two frozen verbs. Usage: older_daemon.py LOCK SOCKET MANNER, MANNER one of

    polite    ends when asked          deaf      knows no stop verb
    stubborn  ignores SIGTERM too      hung      accepts connections and never answers
    foreign   answers hello as another program
"""

import fcntl
import json
import os
import signal
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

LOCK, SOCKET, MANNER = sys.argv[1:]
KEPT: list[object] = []
NAME = "something else" if MANNER == "foreign" else "foretype"


class Handler(BaseHTTPRequestHandler):
    def answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        hello = {
            "name": NAME,
            "version": "0.0.9",
            "build": "older",
            "pid": os.getpid(),
            "started": 1.0,
            "new": 1,
        }
        self.answer(200, hello)

    def do_POST(self) -> None:
        # Unread bytes would turn the closing of this socket into a reset, and the answer be lost.
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != "/v1/stop" or MANNER != "polite":
            self.answer(404, {"error": "no such thing"})
            return
        self.answer(200, {"stopping": True})
        threading.Thread(target=self.server.shutdown).start()

    def log_message(self, *_: object) -> None: ...

    def address_string(self) -> str:
        return "unix"


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def process_request(self, request, client_address):  # type: ignore[no-untyped-def]
        if MANNER == "hung":
            KEPT.append(request)
        else:
            super().process_request(request, client_address)


if MANNER == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, json.dumps({"pid": os.getpid(), "build": "older", "started": time.time(), "port": 0}).encode())
Path(SOCKET).unlink(missing_ok=True)
with Server(SOCKET, Handler) as server:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.serve_forever(poll_interval=0.02)
