"""The indexer stays behind everything else, whatever the system divides time by first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GROUP = Path("/proc/self/autogroup")
"""`/autogroup-N nice M` on a Linux that divides time among sessions, nowhere else."""
LOWERED = f"""
from pathlib import Path
from indexer import throttle
throttle.lower_priority()
group = Path("{GROUP.as_posix()}")
print(group.read_text() if group.exists() else "")
"""


@pytest.mark.parametrize("own", [True, False])
def test_a_session_of_its_own_is_lowered_as_a_whole_no_other_one_is(own: bool) -> None:
    before = GROUP.read_text(encoding="ascii").split()[1:] if GROUP.exists() else []
    command = [sys.executable, "-I", "-c", LOWERED]
    done = subprocess.run(command, start_new_session=own, capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:] == (["nice", "19"] if own and before else before)
