"""The pinned versions cover what pyproject.toml asks for, exactly and without naming any index."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LINES = (ROOT / "installers" / "constraints.txt").read_text("utf-8").splitlines()
PINS = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in LINES if "==" in line}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_line_is_a_comment_or_an_exact_version() -> None:
    wrong = [ln for ln in LINES if ln and not re.fullmatch(r"#.*|[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*", ln)]
    assert wrong == []
    assert not any("://" in line for line in LINES)


def test_every_requirement_is_pinned_within_its_range() -> None:
    asked = PROJECT["dependencies"] + [
        r for group in PROJECT["optional-dependencies"].values() for r in group
    ]
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)]), requirement


def test_what_the_requirements_need_is_pinned_too() -> None:
    waiting = [Requirement(r).name for r in PROJECT["dependencies"]]
    seen: set[str] = set()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in seen or name in ("pip", "setuptools"):  # the environment's own
            continue
        seen.add(name)
        assert name in PINS, f"{name} is not pinned"
        for needed in map(Requirement, metadata.requires(name) or []):
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
