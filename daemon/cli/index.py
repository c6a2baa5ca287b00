"""`foretype index add | rm | list | status | rebuild | files | search | outline | refs | explain`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from daemon import instance, roots
from daemon.cli import common, indexshow, indexwait
from daemon.doors import client
from daemon.errors import BadRequest, ForetypeError, SettingsError
from daemon.settings import Settings
from indexer import statefile
from indexer.errors import IndexDamaged, IndexUnwritable
from indexer.frames import DATABASE, RootState
from indexer.read import Reader
from indexer.records import FileRow

_Command = Callable[[argparse.Namespace, Settings], int]


def register(subparsers: Any) -> None:
    """Add `index` and its commands."""
    words = "the repository index: what is known of your code"
    parser = subparsers.add_parser("index", help=words, description=words)
    commands = parser.add_subparsers(title="commands", dest="index_command", metavar="COMMAND", required=True)
    folder = "a folder inside the root (default: the current one)"
    for name, function, help_, arguments in (
        ("add", _add, "index a repository from now on, and show how it goes", (("folder", folder),)),
        ("rm", _remove, "index it no more and forget what was stored", (("folder", folder),)),
        ("list", _list, "which folders are indexed", ()),
        ("status", _status, "files by language, what is skipped and why, sizes", (("folder", folder),)),
        ("rebuild", _rebuild, "begin again from nothing", (("folder", folder),)),
        ("files", _files, "indexed files, or skipped ones with the reason", ()),
        ("search", _search, "full-text search in the indexed text", (("text", "words to look for"),)),
        ("outline", _outline, "the summary of one file", (("file", "path of the file"),)),
        ("refs", _refs, "where a name is defined and used", (("name", "a symbol's name"),)),
        ("explain", _explain, "why a file is, or is not, in the index", (("file", "path of the file"),)),
    ):  # fmt: skip
        command = commands.add_parser(name, help=help_, description=help_)
        for argument, text in arguments:
            optional: dict[str, Any] = {"nargs": "?", "default": "."} if argument == "folder" else {}
            command.add_argument(argument, help=text, **optional)
        if name in ("files", "search", "refs"):
            command.add_argument("--root", default=".", metavar="DIR", help=folder)
            command.add_argument("--limit", type=int, default=50, metavar="N", help="how many (default: 50)")
        if name == "files":
            command.add_argument("--skipped", action="store_true", help="the skipped ones")
        if name in ("add", "rebuild"):
            command.add_argument("--no-wait", action="store_true", help="do not wait until it is complete")
        command.add_argument("--json", action="store_true", help="one JSON value for machines")
        common.add_config(command)
        command.set_defaults(run=_with_settings(function))


def _with_settings(function: _Command) -> Callable[[argparse.Namespace], int]:
    return lambda arguments: function(arguments, common.load(arguments))


def _add(arguments: argparse.Namespace, settings: Settings) -> int:
    root = roots.normal(Path(arguments.folder))
    if not settings.index.on:
        raise SettingsError("the index is off", "Set index.on = true in your config.toml")
    fresh = roots.add(root)
    if not arguments.json:
        common.note(f"{root} {'is registered' if fresh else 'was registered before'}")
    return _wait(arguments, settings, root)


def _rebuild(arguments: argparse.Namespace, settings: Settings) -> int:
    root = _root(Path(arguments.folder), settings)
    roots.rebuild(root)
    return _wait(arguments, settings, root)


def _wait(arguments: argparse.Namespace, settings: Settings, root: Path) -> int:
    if not arguments.no_wait:
        running = instance.greet(settings.server.token) is not None
        indexwait.until_complete(settings, root, running, quiet=arguments.json)
    state = statefile.load(roots.folder(root)) or RootState(path=str(root), phase="starting")
    _print(arguments, state, indexshow.state(state))
    return 0 if state.complete or arguments.no_wait else 1


def _remove(arguments: argparse.Namespace, settings: Settings) -> int:
    root = roots.normal(Path(arguments.folder))
    roots.remove(root)
    gone = indexwait.forget(roots.folder(root), running=instance.greet(settings.server.token) is not None)
    text = "its index is removed" if gone else "its index will be removed by the next `foretype index rm`"
    _print(arguments, {"path": str(root), "removed": gone}, [f"{root} is indexed no more; {text}"])
    return 0


def _list(arguments: argparse.Namespace, settings: Settings) -> int:
    states = [_state(Path(spec.path)) for spec in roots.specs(settings.index)]
    lines = [indexshow.line(state) for state in states] or ["nothing is indexed: `foretype index add DIR`"]
    _print(arguments, states, lines)
    return 0


def _status(arguments: argparse.Namespace, settings: Settings) -> int:
    state = _state(_root(Path(arguments.folder), settings))
    _print(arguments, state, indexshow.state(state))
    return 0


def _state(root: Path) -> RootState:
    """As the running daemon has it, which also knows what cannot be written; else as it was written last."""
    stored = statefile.load(roots.folder(root)) or RootState(path=str(root), phase="starting")
    try:
        index = client.request("GET", "/v1/status").get("index", {})
    except ForetypeError:
        return stored
    if index.get("pid") is None and index.get("last_failure"):
        why = f"the indexer ended ({index['last_failure']}); it is started again"
        return msgspec.structs.replace(stored, phase="degraded", detail=why, degraded=(why, *stored.degraded))
    told = (found for found in index.get("roots", ()) if found["path"] == str(root))
    return next((msgspec.convert(found, RootState) for found in told), stored)


def _files(arguments: argparse.Namespace, settings: Settings) -> int:
    with _reader(_root(Path(arguments.root), settings)) as reader:
        rows = [row for row in _all_files(reader) if bool(row.reason) == arguments.skipped]
    rows = rows[: arguments.limit]
    lines = [f"{row.path}  {row.reason or row.language or 'text'}  {row.lines} lines" for row in rows]
    _print(arguments, rows, lines)
    return 0


def _all_files(reader: Reader) -> Iterator[FileRow]:
    page: Sequence[FileRow] = reader.files()
    while page:
        yield from page
        page = reader.files(after=page[-1].path)


def _search(arguments: argparse.Namespace, settings: Settings) -> int:
    with _reader(_root(Path(arguments.root), settings)) as reader:
        found = reader.search(arguments.text, arguments.limit)
    _print(arguments, found, indexshow.snippets(found))
    return 0 if found else 1


def _outline(arguments: argparse.Namespace, settings: Settings) -> int:
    root, path = _place(Path(arguments.file), settings)
    with _reader(root) as reader:
        found = reader.outlines(path)
    if not found:
        raise BadRequest(
            f"there is no outline of {path}", f"`foretype index explain {arguments.file}` says why"
        )
    _print(arguments, found, [found[0].text])
    return 0


def _refs(arguments: argparse.Namespace, settings: Settings) -> int:
    with _reader(_root(Path(arguments.root), settings)) as reader:
        defined = reader.definitions(arguments.name, arguments.limit)
        used = reader.callers(arguments.name, arguments.limit)
    lines = [*indexshow.places(defined), *indexshow.uses(used)]
    _print(arguments, {"definitions": defined, "uses": used}, lines or ["no such name"])
    return 0 if lines else 1


def _explain(arguments: argparse.Namespace, settings: Settings) -> int:
    root, path = _place(Path(arguments.file), settings)
    with _reader(root) as reader:
        row = reader.file(path)
    body, lines = indexshow.explanation(root, path, row)
    _print(arguments, body, lines)
    return 0 if row is not None and not row.reason else 1


def _place(file: Path, settings: Settings) -> tuple[Path, str]:
    """The root of a file, and its path there."""
    whole = Path(os.path.realpath(file.expanduser().parent)) / file.name
    root = _root(whole.parent, settings)
    return root, whole.relative_to(root).as_posix()


def _root(folder: Path, settings: Settings) -> Path:
    """The innermost registered root that holds `folder`. Raises SettingsError when there is none."""
    here = roots.normal(folder)
    known = {Path(spec.path) for spec in roots.specs(settings.index)}
    found = next((place for place in (here, *here.parents) if place in known), None)
    if found is None:
        remedy = "`foretype index add DIR` registers one"
        if known:
            remedy += f"; go into one that is, or name it: {', '.join(sorted(map(str, known)))}"
        raise SettingsError(f"{here} is in no indexed folder", remedy)
    return found


def _reader(root: Path) -> Reader:
    try:
        return Reader(roots.folder(root) / DATABASE)
    except (IndexDamaged, IndexUnwritable, OSError) as error:
        raise SettingsError(f"the index of {root} cannot be read: {error}", "`foretype index add`") from error


def _print(arguments: argparse.Namespace, value: object, lines: Iterable[str]) -> None:
    if arguments.json:
        print(json.dumps(msgspec.to_builtins(value, enc_hook=_hook), ensure_ascii=False))
        return
    for line in lines:
        print(line)


def _hook(value: object) -> object:
    return str(value)
