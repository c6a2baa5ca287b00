"""`foretype models`: list, pull, verify, add, remove, and what fits this machine."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from daemon import paths
from daemon.errors import ModelError
from daemon.models import additions, catalogue, fit, verify
from daemon.models.entries import Entry
from daemon.models.partial import Partial
from daemon.models.pull import pull
from daemon.models.sources import Progress, gigabytes


def register(subparsers: Any) -> None:
    """Add `models` and its commands to the command line."""
    parser = subparsers.add_parser("models", help="list, pull, verify, add, remove models; see what fits")
    commands = parser.add_subparsers(
        title="commands", dest="models_command", metavar="COMMAND", required=True
    )
    parser.set_defaults(run=run)

    listing = _command(commands, "list", "the catalogue and what is on this machine")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    fetch = _command(commands, "pull", "fetch a model, or go on with a stopped download")
    fetch.add_argument("name", help="a name from `foretype models list`")
    fetch.add_argument("--source", choices=("hub", "parts", "local"), help="use this kind of source only")
    fetch.add_argument(
        "--from", dest="origin", type=Path, metavar="PATH", help="a file, or a prepared folder"
    )
    fetch.add_argument("--json", action="store_true", help="print one JSON object, no progress")
    check = _command(commands, "verify", "hash pulled models anew and check their headers")
    check.add_argument("names", nargs="*", metavar="name", help="all pulled models when none is given")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    own = _command(commands, "add", "use a GGUF file of your own under a name")
    own.add_argument("path", type=Path, help="the GGUF file; it stays where it is")
    own.add_argument("--name", required=True, help="the name to use it by")
    own.add_argument("--role", choices=("main", "draft", "both"), default="main")
    own.add_argument("--copy", action="store_true", help="copy it into the models folder")
    gone = _command(commands, "rm", "remove a pulled model, or the record of an added one")
    gone.add_argument("name")
    room = _command(
        commands, "fit", "which model, draft, context and KV type fit this machine, with the sums"
    )
    room.add_argument("--context", type=int, metavar="TOKENS", help="this context only")
    room.add_argument("--kv", choices=("f16", "q8_0"), help="this KV type only")
    room.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the chosen command; its exit status. Raises ForetypeError."""
    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "list": _list,
        "pull": _pull,
        "verify": _verify,
        "add": _add,
        "rm": _remove,
        "fit": _fit,
    }
    return commands[args.models_command](args)


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    return parser


def _list(args: argparse.Namespace) -> int:
    packaged_pins, mine = catalogue.pins(), {entry.name for entry in catalogue.user_entries()}
    rows = []
    for entry in catalogue.load().values():
        state = _state(entry)
        hashed = (
            "pinned here" if entry.name in packaged_pins else "catalogue" if entry.sha256 else "first pull"
        )
        hashed = "yours" if entry.name in mine else hashed
        rows.append({**msgspec.to_builtins(entry), "state": state, "hash": hashed})
    if args.json:
        print(json.dumps({"folder": str(paths.models_dir()), "models": rows}, indent=2))
        return 0
    table = _table(
        "Model", "Size", "On disk", "Memory*", "Context", "Role", "FIM", "Licence", "Hash", "State"
    )
    for row in rows:
        fim = "yes" if min(row["fim"][key] for key in ("prefix", "suffix", "middle")) >= 0 else "no"
        numbers = (gigabytes(row["bytes"]), f"{row['memory_mb'] / 1024:.1f} GiB", str(row["context"]))
        cells = (row["size"], *numbers, row["role"], fim, row["licence"], row["hash"], row["state"])
        table.add_row(row["name"], *cells)
    _show(table)
    print(f"* with 8192 tokens of f16 context and 1 GiB to spare. Files: {paths.models_dir()}")
    print("Hash: `first pull` means that the hash is filled at the first pull and pinned on this machine.")
    return 0


def _state(entry: Entry) -> str:
    path = catalogue.file_of(entry)
    if path.is_file():
        known = verify.stamped(path)
        if known is None:
            return "pulled, changed since it was verified"
        return "pulled" if known == entry.sha256 or not entry.sha256 else "damaged: pull it again"
    part = Partial(path).on_disk()
    return f"stopped at {100 * part // entry.bytes} %" if part else "not pulled"


def _pull(args: argparse.Namespace) -> int:
    entry = catalogue.find(args.name)
    try:
        with _bar(entry.name, quiet=args.json) as told:
            file = pull(entry, told, only=args.source, origin=args.origin)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    facts = {"name": file.name, "path": str(file.path), "bytes": file.size, "sha256": file.sha256}
    if args.json:
        print(json.dumps({**facts, "licence": entry.licence}))
    else:
        pinned = "" if entry.sha256 else "; this hash is pinned on this machine from now on"
        print(f"{file.name}: {file.path}")
        print(f"{gigabytes(file.size)}, licence {entry.licence}, SHA-256 {file.sha256}{pinned}")
    return 0


@contextlib.contextmanager
def _bar(name: str, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A progress line on stderr: bytes, rate, time left. Without a terminal only changes of the note."""
    console = Console(stderr=True)
    notes = [""]
    if quiet or not console.is_terminal:

        def told(at: Progress) -> None:
            if not quiet and at.note != notes[-1]:
                notes.append(at.note)
                console.print(f"{name}: {at.note}", highlight=False, markup=False, soft_wrap=True)

        yield told
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Bar(*columns, TransferSpeedColumn(), TimeRemainingColumn(), console=console) as bar:
        line = bar.add_task(name)

        def drawn(at: Progress) -> None:
            if ": " in at.note and at.note != notes[-1]:
                notes.append(at.note)
                bar.console.print(at.note, highlight=False, markup=False, soft_wrap=True)
            elif ": " not in at.note:
                bar.update(line, completed=at.done, total=at.total, description=f"{name} ({at.note})")

        yield drawn


def _verify(args: argparse.Namespace) -> int:
    entries = [catalogue.find(name) for name in args.names] if args.names else list(catalogue.load().values())
    rows, worst = [], 0
    for entry in entries:
        path = catalogue.file_of(entry)
        if not args.names and not path.is_file():
            continue
        try:
            verify.verified(path, force=True)
            found = catalogue.checked(path, entry.name, entry)
            rows.append({"name": entry.name, "ok": True, "sha256": found.sha256, "path": str(path)})
        except ModelError as error:
            worst = error.exit_code
            rows.append({"name": entry.name, "ok": False, "problem": str(error), "path": str(path)})
    if args.json:
        print(json.dumps({"models": rows}))
    for row in [] if args.json else rows:
        print(f"{row['name']}: {'sound, SHA-256 ' + str(row['sha256']) if row['ok'] else row['problem']}")
    if not rows and not args.json:
        print("no model is on this machine; `foretype models pull NAME` fetches one")
    return worst


def _add(args: argparse.Namespace) -> int:
    with _bar(args.name, quiet=False) as told:
        entry = additions.add(args.path, args.name, args.role, args.copy, told)
    print(f"{entry.name}: {entry.family} {entry.size} {entry.quantization}, SHA-256 {entry.sha256}")
    if not entry.fim.ids.usable:
        print("It has no fill-in-the-middle tokens: completions will see only the text before the cursor.")
    return 0


def _remove(args: argparse.Namespace) -> int:
    files, recorded = additions.remove(args.name)
    for file in files:
        print(f"removed {file}")
    if recorded:
        print(f"{args.name} is no longer in your catalogue")
    if not files and not recorded:
        print(f"nothing of {args.name} is on this machine")
    return 0


def _fit(args: argparse.Namespace) -> int:
    contexts = (args.context,) if args.context else fit.CONTEXTS
    if min(contexts) < 256:
        raise ModelError(f"a context of {args.context} tokens is too small", "Give --context from 256 up")
    memory = fit.probe()
    kinds: tuple[fit.KvType, ...] = (args.kv,) if args.kv else ("f16", "q8_0")
    rows = fit.plan(memory, catalogue.load().values(), contexts, kinds)
    if args.json:
        print(json.dumps(msgspec.to_builtins({"memory": memory, "rows": rows}), indent=2))
        return 0
    for device in memory:
        print(f"{device.device}: {gigabytes(device.free)} free of {gigabytes(device.total)}")
        table = _table("Main", "Draft", "Context", "KV", "Verdict", "MiB")
        for row in rows:
            if row.device == device.device:
                cells = (row.draft or "–", str(row.context), row.kv_type, row.verdict, row.arithmetic)
                table.add_row(row.main, *cells)
        _show(table)
    return 0


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _show(table: Table) -> None:
    # Files and pipes get whole lines; a terminal folds at its own width.
    console = Console()
    Console(width=None if console.is_terminal else 240).print(table)
