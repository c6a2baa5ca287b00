"""The user's own models: `models add` records them in models.toml beside config.toml, `models rm` removes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from daemon import paths
from daemon.errors import ModelError
from daemon.models import catalogue, fit, header, verify
from daemon.models.entries import Entry, Fim, Local, Shape
from daemon.models.header import Header
from daemon.models.partial import Partial
from daemon.models.pull import pull
from daemon.models.sources import Progress

_HEAD = "# Your own models, written by `foretype models add`; the form is that of config/models.toml.\n"
Role = Literal["main", "draft", "both"]


def add(
    path: Path,
    name: str,
    role: Role = "main",
    copy: bool = False,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Entry:
    """Record the GGUF at `path` under `name`, where it is or as a copy in the models folder.

    Raises ModelError: the name is taken or malformed, the file is not a usable GGUF.
    """
    path = path.expanduser().absolute()
    if name in catalogue.load():
        raise ModelError(f"the name {name} is taken", "Choose another --name, or remove that model first")
    if not path.is_file():
        raise ModelError(f"there is no file {path}", "Check the path")
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise ModelError("the file's path is not UTF-8", "Rename it, or move it elsewhere") from None
    found = header.check(path)
    entry = _entry(found, path, name, role, verify.verified(path))
    _write([*catalogue.user_entries(), entry])
    if copy:
        try:
            pull(entry, progress, origin=path)
        except ModelError:
            _write([own for own in catalogue.user_entries() if own.name != name])
            raise
    return entry


def remove(name: str) -> tuple[list[Path], bool]:
    """Remove what was pulled of a model, and the record where the user added it; (files, record removed).

    A file outside the models folder belongs to the user and stays.
    """
    entry = catalogue.find(name)
    final = paths.models_dir() / f"{entry.name}.gguf"
    partial = Partial(final)
    files = [file for file in (final, partial.path, partial.journal_path) if file.exists()]
    try:
        for file in files:
            file.unlink()
        for folder in final.parent.glob(f".{partial.path.name}.*.pip"):
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise ModelError(
            f"{error.filename} cannot be removed ({error.strerror})", "Stop what uses it"
        ) from error
    verify.forget(final)
    own = [other for other in catalogue.user_entries() if other.name != name]
    recorded = len(own) < len(catalogue.user_entries())
    if recorded:
        _write(own)
    return files, recorded


def _entry(found: Header, path: Path, name: str, role: Role, sha256: str) -> Entry:
    fim = found.fim
    shape = Shape(
        layers=found.blocks,
        kv_heads=sum(found.kv_heads) / found.blocks,
        head_dim=(found.key_length + found.value_length) / 2,
        embedding=found.embedding,
        vocabulary=found.vocabulary,
    )
    try:
        entry = Entry(
            name=name,
            family=f"{found.architecture}/{found.pretokenizer or found.tokenizer}",
            size=_parameters(found),
            quantization=found.file_type,
            bytes=found.file_bytes,
            sha256=sha256,
            licence=found.licence or "not stated",
            context=found.context,
            role=role,
            memory_mb=1,
            fim=Fim(
                prefix=fim.pre, middle=fim.mid, suffix=fim.suf, pad=fim.pad, repo=fim.rep, file_sep=fim.sep
            ),
            shape=shape,
            source=(Local(path=str(path)),),
        )
    except ValueError as error:
        raise ModelError(str(error), "Choose another --name") from error
    return msgspec.structs.replace(entry, memory_mb=fit.memory_mb(entry))


def _parameters(found: Header) -> str:
    millions = found.parameters / 1e6
    return f"{millions / 1000:.1f}B" if millions >= 950 else f"{millions:.0f}M"


def _write(entries: list[Entry]) -> None:
    file = catalogue.user_file()
    try:
        if entries:
            verify.write_atomically(file, "\n".join([_HEAD, *map(_table, entries)]).encode())
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise ModelError(f"{file} cannot be written ({error.strerror})", "Check its permissions") from error


def _table(entry: Entry) -> str:
    plain = msgspec.to_builtins(entry)
    return "\n".join(["[[model]]", *(f"{key} = {_value(value)}" for key, value in plain.items()), ""])


def _value(value: object) -> str:
    """A TOML value; JSON's strings and numbers are TOML's too, apart from the escape of DEL."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
