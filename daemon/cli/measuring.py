"""What the measurement commands share: flags, a progress bar, showing an outcome."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from daemon.bench.outcome import Outcome

Report = Callable[[int, int], None]
Work = Callable[[Report], Coroutine[Any, Any, Outcome]]


def add(kinds: Any, name: str, words: str, limit: int | None) -> argparse.ArgumentParser:
    """A measurement with the flags that all have; without a `limit` it has no --limit."""
    parser: argparse.ArgumentParser = kinds.add_parser(name, help=words, description=words)
    parser.add_argument("--model", metavar="NAME|PATH", help="a catalogue name or a GGUF file")
    parser.add_argument("--json", action="store_true", help="one JSON object for machines")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of every random choice (default: 1)"
    )
    if limit is not None:
        words = f"how many (default: {limit})"
        parser.add_argument("--limit", type=positive, default=limit, metavar="N", help=words)
    return parser


def positive(text: str) -> int:
    """A number of 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def natural(text: str) -> int:
    """A number of 0 or more."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def show(arguments: argparse.Namespace, work: Work) -> int:
    """Measure, and print the outcome for people or for machines; the exit status."""
    with _bar(arguments.measurement) as report:
        outcome = asyncio.run(_stoppable(work(report)))
    if arguments.json:
        print(outcome.json())
        return 0
    console = Console()
    for made in outcome.tables:
        console.print(made)
    console.print(f"model {outcome.model.get('name')}, seed {outcome.seed}", style="dim", highlight=False)
    for note in outcome.notes:
        console.print(note, style="dim", highlight=False, markup=False)
    return 0


async def _stoppable(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """A TERM ends the measurement as Ctrl-C does: the daemon that it started is taken down first."""
    task = asyncio.ensure_future(work)
    with contextlib.suppress(NotImplementedError):  # Windows has no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Report]:
    """A progress bar on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"{name}: starting", total=None)

        def report(done: int, total: int) -> None:
            progress.update(bar, description=name, completed=done, total=total)

        yield report
