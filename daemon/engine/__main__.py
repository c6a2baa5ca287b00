"""The engine process: frames come in on standard input and go out on what was standard output.

It ends when its parent does (end of input), whatever it is computing.
Started as `python -I -m daemon.engine`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

import psutil

from daemon.engine import frames
from daemon.engine.frames import Ask, Cancel, Failed, Follow, Message, Start, Stop, Submit
from daemon.engine.loop import Loop
from daemon.engine.startup import build
from daemon.errors import ForetypeError

_CHUNK = 1 << 16
_LEAVE_S = 0.25
"""For keeping what is evaluated, after Stop: the parent does not wait long."""


class Outbox:
    """Serialises frames of several threads onto one pipe."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Write one frame; a gone parent ends the process."""
        with self._lock:
            try:
                self._stream.write(frames.pack(message))
                self._stream.flush()
            except OSError:
                os._exit(0)


def main() -> None:
    """Read Start, load, then serve until Stop or end of input."""
    source, sink = _private_pipes()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    outbox = Outbox(sink)
    loaded = threading.Event()
    holder: list[Loop] = []
    threading.Thread(target=_read, args=(source, outbox, holder, loaded), daemon=True, name="frames").start()
    loaded.wait()
    if holder:
        holder[0].run()
        holder[0].leave(_LEAVE_S)
    os._exit(0)


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep the frame pipe to ourselves: whatever a library prints goes to the log instead."""
    sink = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return os.fdopen(os.dup(0), "rb", buffering=0), sink


def _read(source: BinaryIO, outbox: Outbox, holder: list[Loop], loaded: threading.Event) -> None:
    unpacker = frames.Unpacker()
    while data := source.read(_CHUNK):
        for message in unpacker.feed(data):
            if isinstance(message, Start):
                threading.Thread(
                    target=_load, args=(message, outbox, holder, loaded), daemon=True, name="load"
                ).start()
            elif isinstance(message, Stop):
                if not holder:
                    os._exit(0)
                holder[0].lanes.close()
            elif holder:
                _handle(message, holder[0], outbox.send)
            elif isinstance(message, Submit):
                outbox.send(Failed(id=message.id, message="the model is still loading"))
    os._exit(0)  # the parent is gone; nobody waits for what is being computed


def _load(start: Start, outbox: Outbox, holder: list[Loop], loaded: threading.Event) -> None:
    try:
        loop, ready = build(start, outbox.send)
    except ForetypeError as error:
        outbox.send(Failed(message=error.message, remedy=error.remedy))
        os._exit(1)
    except MemoryError:
        outbox.send(Failed(message="not enough memory to load the model", memory=True))
        os._exit(1)
    holder.append(loop)
    outbox.send(ready)
    loaded.set()


def _handle(message: Message, loop: Loop, send: Callable[[Message], None]) -> None:
    if isinstance(message, Submit):
        loop.lanes.submit(message)
    elif isinstance(message, Cancel):
        loop.lanes.cancel(message.id, "superseded" if message.superseded else "cancelled")
    elif isinstance(message, Follow):
        loop.lanes.follow(message.id)
    elif isinstance(message, Ask):
        send(loop.report(psutil.Process().memory_info().rss))


if __name__ == "__main__":
    main()
