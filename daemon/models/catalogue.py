"""The catalogue: the packaged list, the user's own additions, and the file that a name stands for."""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path

import msgspec

from daemon import paths, resources
from daemon.errors import ModelError
from daemon.models import verify
from daemon.models.entries import Catalogue, Entry, Local, Pin, Record

__all__ = ["Entry", "ModelFile", "find", "load", "resolve"]


class ModelFile(Record, frozen=True):
    """A GGUF that may be mapped: its header is sound and its hash is the expected one."""

    path: Path
    sha256: str
    size: int
    name: str
    entry: Entry | None = None


def user_file() -> Path:
    """Where `models add` records the user's own models."""
    return paths.config_dir() / "models.toml"


def pins_file() -> Path:
    """Hashes taken at the first pull of entries that come without one."""
    return paths.config_dir() / "pins.toml"


def load() -> dict[str, Entry]:
    """All entries by name, pins applied, the user's own last. Raises ModelError naming file and key."""
    packaged = _decode(resources.read_text("models.toml"), "config/models.toml")
    merged: dict[str, Entry] = {}
    for catalogue, where in ((packaged, "config/models.toml"), (_user(), str(user_file()))):
        for entry in catalogue.model:
            if entry.name in merged:
                raise ModelError(
                    f"{where}: model {entry.name} is there twice", "Give one of them another name"
                )
            merged[entry.name] = entry
    known = pins()
    return {name: _pinned(entry, known.get(name)) for name, entry in merged.items()}


def user_entries() -> tuple[Entry, ...]:
    """The models that the user added."""
    return _user().model


def hub() -> str:
    """Base address of the model hub."""
    chosen = os.environ.get("HF_ENDPOINT") or _decode(resources.read_text("models.toml"), "models.toml").hub
    return chosen.rstrip("/")


def pins() -> dict[str, Pin]:
    """Locally pinned hashes by name."""
    return _pins(pins_file())


def find(name: str) -> Entry:
    """The entry of that name. Raises ModelError with the names that come near."""
    entries = load()
    if name in entries:
        return entries[name]
    near = difflib.get_close_matches(name.lower(), entries, n=3, cutoff=0.4)
    near = near or [other for other in entries if name and name.lower() in other]
    hint = f"Did you mean {' or '.join(near)}?" if near else "`foretype models list` shows all names"
    raise ModelError(f"no model is called {name[:80]!r}", hint)


def file_of(entry: Entry) -> Path:
    """Where the entry's file is, or will be: the models folder, or where the user keeps it."""
    pulled = paths.models_dir() / f"{entry.name}.gguf"
    first = entry.source[0]
    if isinstance(first, Local) and "$" not in first.path and not pulled.exists():
        return Path(first.path).expanduser()
    return pulled


def resolve(name_or_path: str) -> ModelFile:
    """The verified file for a catalogue name or for a path to a GGUF.

    Hashes the file when its size or time changed since it was last verified (seconds for a large model:
    not for the event loop). Raises ModelError: unknown name, not pulled, changed, unsound header.
    """
    entries = load()
    if name_or_path not in entries and _looks_like_path(name_or_path):
        path = Path(name_or_path).expanduser()
        if not path.is_file():
            raise ModelError(
                f"there is no model file {path}", "`foretype models list` shows names to use instead"
            )
        return checked(path, path.stem, None)
    entry = find(name_or_path)
    path = file_of(entry)
    if not path.is_file():
        raise ModelError(f"model {entry.name} is not on this machine", f"`foretype models pull {entry.name}`")
    return checked(path, entry.name, entry)


def pin(name: str, value: Pin) -> None:
    """Record the hash that the first pull of `name` brought."""
    values = {**pins(), name: value}
    tables = [f'["{key}"]\nsha256 = "{p.sha256}"\nbytes = {p.bytes}\n' for key, p in sorted(values.items())]
    note = "# Hashes taken at the first pull of models that come without one; remove a table to take anew.\n"
    verify.write_atomically(pins_file(), "\n".join([note, *tables]).encode())


def _looks_like_path(text: str) -> bool:
    return text.lower().endswith(".gguf") or "/" in text or os.sep in text or text.startswith("~")


def checked(path: Path, name: str, entry: Entry | None) -> ModelFile:
    """The file at `path`, verified by its stamp or anew, as `resolve` answers it. Raises ModelError."""
    sha256 = verify.verified(path)
    if entry and entry.sha256 and sha256 != entry.sha256:
        raise ModelError(
            f"{path} is not the {entry.name} it should be: its SHA-256 is {sha256}, expected {entry.sha256}",
            f"`foretype models pull {entry.name}` fetches it again",
        )
    return ModelFile(path=path, sha256=sha256, size=path.stat().st_size, name=name, entry=entry)


def _pinned(entry: Entry, value: Pin | None) -> Entry:
    if entry.sha256 or value is None:
        return entry
    return msgspec.structs.replace(entry, sha256=value.sha256, bytes=value.bytes)


def _user() -> Catalogue:
    file = user_file()
    return _decode(_read(file), str(file)) if file.exists() else Catalogue()


def _pins(file: Path) -> dict[str, Pin]:
    if not file.exists():
        return {}
    try:
        return msgspec.convert(tomllib.loads(_read(file)), dict[str, Pin])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ModelError(f"{file}: {error}", "Mend the file or move it away") from error


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{file} cannot be read: {error}", "Mend the file or move it away") from error


def _decode(text: str, where: str) -> Catalogue:
    try:
        return msgspec.convert(tomllib.loads(text), Catalogue)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ModelError(f"{where}: {error}", "config/models.toml shows the form of an entry") from error
