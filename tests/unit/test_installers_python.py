"""The lines of Python in the installers speak of modules and names of ours that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

INSTALLERS = Path(__file__).resolve().parents[2] / "installers"
QUOTED = re.compile(r"'([^']*\bfrom daemon\b[^']*)'")


def snippets() -> list[tuple[str, str]]:
    """(script, code) of each quoted text that imports from `daemon`."""
    scripts = sorted((*INSTALLERS.glob("*.sh"), *INSTALLERS.glob("*.ps1")))
    return [(script.name, code) for script in scripts for code in QUOTED.findall(script.read_text("utf-8"))]


@pytest.mark.parametrize(("script", "code"), snippets())
def test_it_runs(script: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", code, "qwen2.5-coder-0.5b-q4_k_m"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}: {done.stderr}"
    assert done.stdout.strip()


def test_every_import_of_ours_was_tried() -> None:
    tried = {name for name, _ in snippets()}
    scripts = [*INSTALLERS.glob("*.sh"), *INSTALLERS.glob("*.ps1")]
    assert tried == {script.name for script in scripts if "from daemon" in script.read_text("utf-8")}
