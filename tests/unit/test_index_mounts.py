"""Which file systems tell of changes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from indexer import mounts


class Row(NamedTuple):
    mountpoint: str
    fstype: str
    opts: str


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        ([("/", "ext4", "rw")], ""),
        ([("/", "ext4", "rw"), ("/mnt/c", "9p", "rw")], "9p"),
        ([("/", "ext4", "rw"), ("/mnt", "nfs4", "rw")], "nfs4"),
        ([("/", "nfs", "rw"), ("/mnt/c", "ext4", "rw")], ""),
        ([("/mnt/c", "ext4", "rw"), ("/mnt/c", "fuse.sshfs", "rw")], "fuse.sshfs"),
        ([("/mnt/cc", "cifs", "rw"), ("/", "overlay", "rw")], ""),
        ([("/", "ntfs", "rw,remote")], "ntfs"),
    ],
)
def test_network_file_systems_are_known(rows: list[tuple[str, str, str]], want: str) -> None:
    table = [Row(*r) for r in rows]
    assert mounts.unreliable("/mnt/c/project", table) == want


def test_this_machines_own_mounts_are_read(tmp_path: Path) -> None:
    assert mounts.unreliable(str(tmp_path)) in {"", *mounts.NETWORK}
