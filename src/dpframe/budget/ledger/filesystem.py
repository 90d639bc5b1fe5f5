"""A ledger's file must be on a disk of this machine, since locks and shared memory fail on network drives."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dpframe.errors import LedgerUnavailable

REMOTE = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs"}
    | {"fuse.ceph", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs"}
    | {"prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "sshfs", "vboxsf", "webdav", "fuse.gcsfuse", "fuse.blobfuse"}
)


def refuse_network(path: Path) -> None:
    """Refuse a path on a network drive. Errors: LedgerUnavailable."""
    kind = filesystem_of(path)
    if kind in REMOTE:
        raise LedgerUnavailable(
            f"{str(path)!r} is on a network drive ({kind}), where file locks do not hold and two machines could spend "
            "the same budget. Use a local disk, or PostgreSQL for several machines: dp.Ledger('postgresql+psycopg://...')."
        )


def filesystem_of(path: Path, mounts: str | None = None) -> str:
    r"""The type of the file system of a path; "" if it cannot be determined.

    Input:  path, which need not exist; mounts, the text of /proc/self/mountinfo

    >>> mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /home/me rw - nfs4 server:/me rw"
    >>> filesystem_of(Path("/home/me/study.sqlite"), mounts), filesystem_of(Path("/home/you.sqlite"), mounts)
    ('nfs4', 'ext4')
    """
    if mounts is None:
        if sys.platform == "win32":
            return _windows(path)
        try:
            mounts = Path("/proc/self/mountinfo").read_text()
        except OSError:
            return ""
    best, kind = "", ""
    for line in mounts.splitlines():
        mount, _, details = line.partition(" - ")
        point = mount.split(" ")[4].replace("\\040", " ")
        inside = str(path) == point or str(path).startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, details.split(" ")[0]
    return kind


def _windows(path: Path) -> str:
    """The type of the file system on Windows. A share is a network drive, with or without a letter."""
    if str(path).startswith("\\\\"):
        return "smbfs"
    kernel = getattr(__import__("ctypes"), "windll").kernel32  # noqa: B009 (only there on Windows)
    return "smbfs" if kernel.GetDriveTypeW(os.path.splitdrive(path)[0] + "\\") == 4 else ""
