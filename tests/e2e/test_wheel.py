"""The packages people get: a wheel that finds its files anywhere, a source archive that can be built."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import daemon, indexer
from daemon import resources, settings
print(json.dumps({
    "daemon": daemon.__file__, "indexer": indexer.__file__, "config": str(resources.folder()),
    "default": resources.read_text("default.toml")[:9], "model": settings.Settings().engine.model,
}))
"""


def build(hook: str, target: Path) -> Path:
    """Call hatchling as pip does, in a child and without a network; the archive it made."""
    code = f"import sys, hatchling.build as b; print(b.{hook}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(target)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return target / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("build_wheel", tmp_path_factory.mktemp("wheel"))


def test_wheel_holds_the_packages_and_their_config_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {"daemon", "indexer"} < tops
    assert all(top in ("daemon", "indexer") or top.endswith(".dist-info") for top in tops)
    assert "daemon/_config/default.toml" in names
    assert "daemon/cli/main.py" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_wheel_names_its_command_and_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(info).decode()
        entries = archive.read(info.replace("METADATA", "entry_points.txt")).decode()
    assert "License-Expression: MIT" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert "foretype = daemon.cli.main:main" in entries


def test_installed_wheel_finds_its_files_and_imports_nothing_from_the_current_directory(
    wheel: Path, tmp_path: Path
) -> None:
    target, hostile = tmp_path / "site", tmp_path / "hostile project"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    hostile.mkdir()
    for name in ("daemon", "indexer", "msgspec", "json", "sitecustomize"):
        (hostile / f"{name}.py").write_text("raise SystemExit('a planted module was executed')\n")
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROBE, str(target)],
        cwd=hostile,
        env={**os.environ, "PYTHONPATH": str(hostile)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(target / "daemon" / "_config") in done.stdout
    assert str(hostile) not in done.stdout


def test_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build("build_sdist", tmp_path)) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames() if "/" in name]
    assert {"pyproject.toml", "README.md", "LICENSE", "config/default.toml", "installers/install.sh"} <= set(
        names
    )
    assert not [name for name in names if name.startswith("tests/")]
    with zipfile.ZipFile(wheel) as packed:
        sources = {n for n in packed.namelist() if n.split("/")[0] in ("daemon", "indexer")}
    assert {n.replace("daemon/_config/", "config/") for n in sources} <= set(names)
