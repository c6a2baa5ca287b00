"""The installers, run for real into throw-away folders; the checkout's path and the target hold spaces."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLANTED = ("daemon", "indexer", "llama_cpp", "pip", "venv", "ensurepip", "site", "sitecustomize", "json")

pytestmark = pytest.mark.xdist_group("install")


class Machine:
    """A throw-away home, a copy of the checkout with a space in its path, and a hostile current directory."""

    def __init__(self, place: Path) -> None:
        self.home, self.bin = place / "user home", place / "user bin"
        self.data = self.home / "app"
        self.checkout, self.project = place / "a checkout", place / "hostile project"
        self.trace = place / "planted module was executed"
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            self.checkout.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.checkout)
        for name in ("daemon", "indexer", "config", "installers"):
            shutil.copytree(ROOT / name, self.checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        self.project.mkdir()
        for name in PLANTED:
            (self.project / f"{name}.py").write_text(f"open({str(self.trace)!r}, 'a').write({name!r})\n")

    def run(self, script: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run one installer from the hostile directory, its path relative as a person would type it."""
        shell = shutil.which("dash") or "sh"
        return subprocess.run(
            [shell, f"../a checkout/installers/{script}", *arguments],
            cwd=self.project,
            env={
                **{k: v for k, v in os.environ.items() if k != "CMAKE_ARGS"},
                "FORETYPE_HOME": str(self.home),
                "XDG_BIN_HOME": str(self.bin),
                "PYTHONPATH": str(self.project),
                **env,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def listing(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of everything that was installed."""
        files = [p for top in (self.data, self.bin) for p in top.rglob("*") if not p.is_dir()]
        return {str(p): (p.lstat().st_size, p.lstat().st_mtime_ns) for p in files}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.timeout(900)
def test_install_twice_then_uninstall(machine: Machine) -> None:
    first = machine.run("install.sh", "--no-model", "--backend", "cpu", "--python", sys.executable)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "Backend: cpu (you asked for it)" in first.stdout
    assert "is not on your PATH" in first.stdout
    launcher = machine.bin / "foretype"
    told = subprocess.run(
        [launcher, "--version"], cwd=machine.project, capture_output=True, text=True, check=True
    )
    assert told.stdout.startswith("foretype ")

    before = machine.listing()
    second = machine.run("install.sh", "--no-model", "--backend", "cpu", "--python", sys.executable)
    assert second.returncode == 0, second.stderr
    assert "up to date" in second.stdout
    assert machine.listing() == before

    assert not machine.trace.exists(), machine.trace.read_text()
    kept = machine.run("uninstall.sh")
    assert kept.returncode == 1
    assert launcher.exists()
    for kind in ("config", "cache", "state"):
        (machine.home / kind).mkdir()
        (machine.home / kind / "file of the user").write_text("")
    gone = machine.run("uninstall.sh", "--yes", "--purge")
    assert gone.returncode == 0, gone.stderr
    assert list(machine.home.iterdir()) == []
    assert not launcher.exists()
    assert not machine.trace.exists(), machine.trace.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--offline", "nowhere"), "holds no folder wheels"),
        (("--offline",), "needs a value"),
        (("--backend", "abacus"), "--backend is one of"),
        (("--python", "./daemon.py"), "is not a program"),
        (("--frobnicate",), "there is no option --frobnicate"),
    ],
)
def test_bad_arguments_are_named_before_anything_is_made(
    machine: Machine, arguments: tuple[str, ...], words: str
) -> None:
    done = machine.run("install.sh", *arguments)
    assert done.returncode == 1
    assert words in done.stderr
    assert not machine.home.exists()
    assert not machine.trace.exists()


def test_an_unfit_python_is_refused_with_its_reason(machine: Machine, tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\necho is Python 3.8 >&2\nexit 1\n")
    old.chmod(0o755)
    done = machine.run("install.sh", "--python", str(old))
    assert done.returncode == 1
    assert "is Python 3.8" in done.stderr


@pytest.mark.timeout(300)
def test_an_unreachable_index_is_told_in_words(machine: Machine) -> None:
    """Port 9 of this machine (discard) answers nobody; pip's own settings are shut out."""
    index = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    done = machine.run(
        "install.sh",
        *("--no-model", "--backend", "cpu", "--python", sys.executable),
        **{"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", **index},
    )
    assert done.returncode == 1
    assert "could not be installed" in done.stderr
    assert "The whole log: " in done.stderr
    assert not (machine.bin / "foretype").exists()


@pytest.mark.timeout(900)
def test_a_prepared_folder_installs_without_any_index(machine: Machine) -> None:
    folder = machine.project / "prepared folder"
    made = machine.run(
        "bundle.sh", "prepared folder", "--no-model", "--backend", "cpu", "--python", sys.executable
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert list(folder.glob("wheels/llama_cpp_python-*.whl"))
    nowhere = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    done = machine.run(
        "install.sh",
        *("--no-model", "--offline", "prepared folder", "--python", sys.executable),
        **{
            **nowhere,
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "PIP_CACHE_DIR": str(machine.home / "none"),
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = subprocess.run([machine.bin / "foretype", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("foretype ")
    assert not machine.trace.exists(), machine.trace.read_text()


def test_a_command_of_another_program_is_not_overwritten(machine: Machine) -> None:
    machine.bin.mkdir()
    (machine.bin / "foretype").write_text("#!/bin/sh\necho mine\n")
    done = machine.run("uninstall.sh", "--yes")
    assert done.returncode == 0
    assert "not installed" in done.stdout
    assert "mine" in (machine.bin / "foretype").read_text()


@pytest.mark.parametrize("script", ["install.sh", "uninstall.sh", "bundle.sh"])
def test_help_names_every_option(machine: Machine, script: str) -> None:
    done = machine.run(script, "--help")
    assert done.returncode == 0
    text = (ROOT / "installers" / script).read_text()
    options = set(re.findall(r"^ +(?:\S+ \| )*(--[a-z-]+)(?: \||\))", text, re.MULTILINE))
    assert options
    assert all(option in done.stdout for option in options)
