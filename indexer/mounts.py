"""Where change notices cannot be trusted: network file systems and folders of another operating system."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

import psutil

NETWORK: frozenset[str] = frozenset((
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse.ceph", "fuse.davfs2",
    "fuse.glusterfs", "fuse.gvfsd-fuse", "fuse.portal", "fuse.rclone", "fuse.s3fs", "fuse.sshfs",
    "fuse.vmhgfs-fuse", "gfs2", "glusterfs", "gpfs", "lustre", "macfuse", "ncpfs", "nfs", "nfs3", "nfs4",
    "ocfs2", "orangefs", "osxfuse", "prl_fs", "smb2", "smb3", "smbfs", "vboxsf", "vmhgfs", "webdav", "wslfs",
))  # fmt: skip
"""Types of file systems that other machines change without a notice here."""


class Mount(Protocol):
    """A row of psutil.disk_partitions."""

    @property
    def mountpoint(self) -> str: ...  # noqa: D102
    @property
    def fstype(self) -> str: ...  # noqa: D102
    @property
    def opts(self) -> str: ...  # noqa: D102


def unreliable(path: str, mounts: Iterable[Mount] | None = None) -> str:
    """The type of the network file system that holds `path`; empty when notices work there.

    `mounts`: the machine's own when not given.
    """
    real = os.path.realpath(path)
    if real.startswith(("\\\\", "//")):
        return "network share"
    rows: Iterable[Mount] = psutil.disk_partitions(all=True) if mounts is None else mounts
    holding = [m for m in rows if f"{real}{os.sep}".startswith(m.mountpoint.rstrip("/\\") + os.sep)]
    if not holding:
        return ""
    # Of several mounts on one point the last is the visible one.
    nearest = max(enumerate(holding), key=lambda pair: (len(pair[1].mountpoint), pair[0]))[1]
    kind = nearest.fstype.lower()
    return kind if kind in NETWORK or "remote" in nearest.opts.split(",") else ""
