"""The indexer stays behind everything else, whatever the system divides time by first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GROUP = Path("/proc/self/autogroup")
"""`/autogroup-N nice M` on a Linux that divides time among sessions, empty or missing elsewhere."""
LOWER = "from indexer import throttle; throttle.lower_priority()"
SHOW = f"""
from pathlib import Path
group = Path("{GROUP.as_posix()}")
print(group.read_text() if group.exists() else "")
"""


def _group(own: bool, first: str) -> list[str]:
    """What a process says of its session's group after running `first`: the words behind the group's name.
    It is asked of a new process each time, as a session may have a group where the tests' own has none."""
    command = [sys.executable, "-I", "-c", first + SHOW]
    done = subprocess.run(command, start_new_session=own, capture_output=True, text=True, check=True)
    return done.stdout.split()[1:]


@pytest.mark.parametrize("own", [True, False])
def test_a_session_of_its_own_is_lowered_as_a_whole_no_other_one_is(own: bool) -> None:
    before = _group(own, "")
    assert _group(own, LOWER) == (["nice", "19"] if own and before else before)
