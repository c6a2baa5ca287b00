"""The indexer stays behind everything else, whatever the system divides time by first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GROUP = Path("/proc/self/autogroup")
LOWERED = (
    "from indexer import throttle; throttle.lower_priority(); print(open('/proc/self/autogroup').read())"
)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has groups of sessions")
@pytest.mark.parametrize("own", [True, False])
def test_a_session_of_its_own_is_lowered_as_a_whole_no_other_one_is(own: bool) -> None:
    command = LOWERED if GROUP.exists() else LOWERED.rpartition(";")[0]
    done = subprocess.run(
        [sys.executable, "-I", "-c", command],
        start_new_session=own,
        capture_output=True,
        text=True,
        check=True,
    )
    before = GROUP.read_text(encoding="ascii").split()[-2:] if GROUP.exists() else []
    expected = ["nice", "19"] if own and before else before
    assert done.stdout.split()[-2:] == expected
