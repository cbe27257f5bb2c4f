"""Whether a folder lies on a file system that several machines share."""

import os
from pathlib import Path

_SHARED = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "afs",
    "glusterfs",
    "pvfs",
    "orangefs",
    "fuse",
)
"""Beginnings of the names of such file systems; through "fuse" come sshfs and many others."""


def is_shared(folder: Path, mounts: str | None = None) -> bool:
    r"""Tell whether other machines may have the same folder open; False where the system does not tell.

    Args:
        folder: The folder.
        mounts: What is mounted, as Linux lists it; None to look.

    Example:
        >>> is_shared(Path("/home/ada/runs"), "disk / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0")
        True
        >>> is_shared(Path("/homes"), "disk / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0")
        False
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return False
    place, kind = Path(os.path.realpath(folder)), ""
    longest = -1
    for line in mounts.splitlines():
        _, point, name, *_ = line.split(" ")
        mounted = Path(point.replace("\\040", " "))
        if place.is_relative_to(mounted) and len(mounted.parts) >= longest:
            longest, kind = len(mounted.parts), name
    return kind.startswith(_SHARED)
