"""The indexer process: frames come in on standard input and go out on what was standard output.

It ends when its parent does, at the end of its input; a kill at any moment leaves the last transaction.
Started as `python -I -m indexer`; its parsing children as `python -I -m indexer --crew`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading

from indexer import crew, throttle
from indexer.frames import Begin, End, Source, State, ToIndexer, pack, private_pipes
from indexer.worker import Worker

_END_S = 2.0


def main() -> None:
    """Read Begin, then keep the roots until End or the end of input."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    if "--crew" in sys.argv[1:]:
        crew.main()
        return
    stream, sink = private_pipes()
    source: Source[ToIndexer] = Source(stream, ToIndexer)
    begin = source.read()
    if not isinstance(begin, Begin):
        return
    throttle.lower_priority()

    def send(state: State) -> None:
        try:
            sink.write(pack(state))
            sink.flush()
        except OSError:
            os._exit(0)  # the parent is gone

    worker = Worker(begin, send)
    threading.Thread(target=_read, args=(source, worker), daemon=True, name="frames").start()
    worker.run()


def _read(source: Source[ToIndexer], worker: Worker) -> None:
    try:
        while (message := source.read()) is not None:
            worker.post(message)
    except ValueError as error:
        logging.getLogger(__name__).error("the daemon speaks another tongue: %s", error)
    worker.post(End())
    threading.Timer(_END_S, os._exit, (0,)).start()  # nobody waits for a long transaction


if __name__ == "__main__":
    main()
