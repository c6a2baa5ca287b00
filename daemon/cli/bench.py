"""`foretype bench`: measurements on this machine. Those of the whole engine are in files of their own."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import Any

from daemon import indexing
from daemon.bench import (
    cancelling,
    coalescing,
    context,
    epochs,
    equivalence,
    exactness,
    index,
    keystrokes,
    outline,
    overhead,
    quality,
    realtime,
    recalling,
    repository,
    soak,
)
from daemon.cli import batchbench, draftbench, floodbench, loadbench, pagingbench, polishbench, wirebench
from daemon.cli.measuring import add as _add
from daemon.cli.measuring import natural as _natural
from daemon.cli.measuring import positive as _positive
from daemon.cli.measuring import show as _show
from daemon.errors import BadRequest
from daemon.settings import Context

_SESSION = Path(__file__).resolve().parent.parent.parent / "tests/data/wire/llama_vim_session.jsonl"
"""Only in a checkout."""


def register(subparsers: Any) -> None:
    """Add the command `bench` with its measurements."""
    words = (
        "measure on this machine: speed while typing, exactness, quality, overheads, index, context, engine"
    )
    top = subparsers.add_parser("bench", help=words, description=words)
    kinds = top.add_subparsers(title="measurements", dest="measurement", metavar="WHAT", required=True)
    _typing(kinds)
    _exactness(kinds)
    parser = _add(
        kinds, "cancel", "requests abandoned by the next: does the engine stop?", cancelling.REQUESTS
    )
    parser.set_defaults(run=_run_cancel)
    words = "keystrokes in bursts, with and without shared runs: how many runs are saved?"
    parser = _add(kinds, "coalesce", words, coalescing.EDITS)
    parser.add_argument("--python", type=Path, metavar="FILE", help="what is typed (default: argparse)")
    parser.set_defaults(run=_run_coalesce)
    _quality(kinds)
    parser = _add(kinds, "overhead", "what daemon and doors add: time, idle CPU, memory", 200)
    parser.add_argument(
        "--idle", type=_positive, default=60, metavar="S", help="seconds of silence (default: 60)"
    )
    parser.set_defaults(run=_run_overhead)
    _index(kinds)
    batchbench.register(kinds)
    draftbench.register(kinds)
    loadbench.register(kinds)
    pagingbench.register(kinds)
    polishbench.register(kinds)
    floodbench.register(kinds)
    wirebench.register(kinds)


def _traced(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", type=Path, metavar="FILE", help="an editing trace (.json.gz)")
    words = "number of the first edit (default: the middle of the trace)"
    parser.add_argument("--start", type=_natural, metavar="N", help=words)


def _peered(parser: argparse.ArgumentParser) -> None:
    words = (
        "`xllamacpp` (pip install xllamacpp), or the http URL of a running llama-server with the same model"
    )
    parser.add_argument("--peer", metavar="xllamacpp|URL", help=words)


def _typing(kinds: Any) -> None:
    parser = _add(kinds, "typing", "type a recorded trace again, beside a peer in the same run", 300)
    _traced(parser)
    _peered(parser)
    words = "a recorded llama.vim session to show beside it (default: the one of the checkout)"
    parser.add_argument("--session", type=Path, metavar="FILE", help=words)
    how = parser.add_mutually_exclusive_group()
    words = "at the recorded times, each edit cancelling the request before it; one-line answers"
    how.add_argument("--realtime", action="store_true", help=words)
    words = (
        "with stable context on: the document is indexed and named, pauses leave time for idle work; no peer"
    )
    how.add_argument("--context", action="store_true", help=words)
    words = "with answers that need no model; each compared with a run of the model; no peer"
    how.add_argument("--recall", action="store_true", help=words)
    words = "with --context: a copy of this folder around the document"
    parser.add_argument("--root", type=Path, metavar="DIR", help=words)
    parser.set_defaults(run=_run_typing)


def _exactness(kinds: Any) -> None:
    parser = _add(kinds, "exactness", "text with the cache against text of a fresh evaluation", 300)
    _traced(parser)
    words = "a Python file to edit (default: argparse of the standard library)"
    parser.add_argument("--python", type=Path, metavar="FILE", help=words)
    parser.set_defaults(run=_run_exactness)


def _quality(kinds: Any) -> None:
    parser = _add(kinds, "quality", "infilling: exact match of several prompts or contexts", 150)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--tasks", type=Path, metavar="FILE", help="single-line tasks (.jsonl.gz)")
    what.add_argument("--root", type=Path, metavar="REPO", help="mask spans in a copy of this repository")
    parser.add_argument("--n", type=_positive, dest="limit", metavar="N", help="the same as --limit")
    _peered(parser)
    words = f"of --tasks: {','.join(quality.VARIANTS)}; of --root: {','.join(repository.VARIANTS)}"
    parser.add_argument("--variants", metavar="A,B", help=words)
    parser.add_argument("--fresh", action="store_true", help="ignore the results of earlier runs")
    words = "what to call the state of a --root without git"
    parser.add_argument("--commit", default="", metavar="NAME", help=words)
    room = Context().extra_tokens
    words = f"tokens of chunks or files that a request may bring (default: {room})"
    parser.add_argument("--room", type=_positive, default=room, metavar="N", help=words)
    parser.set_defaults(run=_run_quality)


def _index(kinds: Any) -> None:
    words = "lines per second, memory, size, restart, change → searchable, queries"
    parser = _add(kinds, "index", words, 300)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--root", type=Path, metavar="DIR", help="a copy of this folder")
    what.add_argument("--generate", type=_positive, metavar="LINES", help="a generated repository")
    words = "random work beside a fresh index instead: after N operations, and --kills, both must be equal"
    what.add_argument("--operations", type=_natural, metavar="N", help=words)
    words = (
        "a long life instead: memory, log and descriptors over so many changes (50000: a day in 10 minutes)"
    )
    what.add_argument("--soak", type=_positive, metavar="CHANGES", help=words)
    words = "with --operations: so often the indexer is killed at a random moment (default: 0)"
    parser.add_argument("--kills", type=_natural, default=0, metavar="K", help=words)
    parser.set_defaults(run=_run_index)
    other = _add(kinds, "outline", "tokens that summaries save, and whether they parse", 200)
    other.add_argument("--root", type=Path, metavar="DIR", help="default: the standard library")
    other.set_defaults(run=_run_outline)
    third = _add(kinds, "context", "milliseconds to classify a cursor and to build its context", 300)
    what = third.add_mutually_exclusive_group(required=True)
    what.add_argument("--root", type=Path, metavar="DIR", help="a copy of this folder")
    what.add_argument("--generate", type=_positive, metavar="LINES", help="a generated repository")
    third.set_defaults(run=_run_context)
    for made in (parser, other, third):
        words = "an exported vocabulary (default: that of the model used last)"
        made.add_argument("--vocabulary", type=Path, metavar="FILE", help=words)


def _run_index(arguments: argparse.Namespace) -> int:
    a = arguments
    if a.operations is not None:
        return _show(a, lambda report: equivalence.run(a.operations, a.kills, a.seed, report))
    if a.soak is not None:
        return _show(a, lambda report: soak.run(a.soak, a.seed, _vocabulary(a), report))
    target = index.Target(a.root, a.generate or 0, a.seed, a.limit, _vocabulary(a))
    return _show(a, lambda report: index.run(target, report))


def _run_context(arguments: argparse.Namespace) -> int:
    a = arguments
    target = context.Target(a.root, a.generate or 0, a.seed, a.limit, _vocabulary(a))
    return _show(a, lambda report: context.run(target, report))


def _run_outline(arguments: argparse.Namespace) -> int:
    a = arguments
    return _show(a, lambda report: outline.run(a.root, a.limit, _vocabulary(a), report))


def _vocabulary(arguments: argparse.Namespace) -> str:
    given: Path | None = arguments.vocabulary
    return str(given.absolute()) if given else indexing.newest_vocabulary()


def _run_typing(arguments: argparse.Namespace) -> int:
    session = arguments.session or (_SESSION if _SESSION.is_file() else None)
    plan = keystrokes.Plan(
        trace=arguments.trace, session=session, start=arguments.start, limit=arguments.limit,
        seed=arguments.seed, model=arguments.model, peer=arguments.peer,
    )  # fmt: skip
    if arguments.root and not arguments.context:
        raise BadRequest("--root means nothing without --context", "Give both or none")
    if arguments.peer and (arguments.context or arguments.recall):
        raise BadRequest("--context and --recall have no peer", "Leave out --peer")
    if arguments.recall:
        return _show(arguments, lambda report: recalling.run(plan, report))
    if arguments.context:
        return _show(arguments, lambda report: epochs.run(plan, arguments.root, report))
    measure = realtime.run if arguments.realtime else keystrokes.run
    return _show(arguments, lambda report: measure(plan, report))


def _run_exactness(arguments: argparse.Namespace) -> int:
    a = arguments
    plan = exactness.Plan(a.trace, a.python, a.start, a.limit, a.seed, a.model)
    return _show(a, lambda report: exactness.run(plan, report))


def _run_cancel(arguments: argparse.Namespace) -> int:
    a = arguments
    return _show(a, lambda report: cancelling.run(a.limit, a.seed, a.model, report))


def _run_coalesce(arguments: argparse.Namespace) -> int:
    a = arguments
    return _show(a, lambda report: coalescing.run(a.python, a.limit, a.seed, a.model, report))


def _run_quality(arguments: argparse.Namespace) -> int:
    a = arguments
    if a.root is not None:
        names = _variants(a.variants, repository.VARIANTS, repository.USUAL)
        place = repository.Plan(a.root, a.limit, a.seed, a.model, names, a.fresh, a.commit, a.room)
        return _show(a, lambda report: repository.run(place, report))
    names = _variants(a.variants, quality.VARIANTS, tuple(quality.VARIANTS))
    plan = quality.Plan(
        tasks=arguments.tasks, limit=arguments.limit, seed=arguments.seed, model=arguments.model,
        peer=arguments.peer, variants=names, fresh=arguments.fresh,
    )  # fmt: skip
    return _show(arguments, lambda report: quality.run(plan, report))


def _variants(given: str | None, known: Collection[str], usual: tuple[str, ...]) -> tuple[str, ...]:
    names = usual if given is None else tuple(name.strip() for name in given.split(",") if name.strip())
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise BadRequest(f"there is no variant {', '.join(unknown)}", f"There is {', '.join(known)}")
    return names


def _run_overhead(arguments: argparse.Namespace) -> int:
    a = arguments
    return _show(a, lambda report: overhead.run(a.limit, a.seed, float(a.idle), a.model, report))
