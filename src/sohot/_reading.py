"""Reading files that a stranger may have made: only regular files of a sane size, and JSON of a sane depth."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

MOST_BYTES = 1 << 29
"""The longest file that is read into memory as a whole: far above a list of a million images."""


class UnsuitableFile(OSError, ValueError):  # noqa: N818 - it is the file that is at fault
    """A file that is never read: a pipe or device, which may block or never end, or one that is too large."""

    def __str__(self) -> str:
        return str(self.strerror)


def require_regular(file: str | os.PathLike[str]) -> os.stat_result:
    """Check that a name leads to a regular file, directly or by a link, before a library opens it.

    Returns:
        What the system knows about the file.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a folder.
        UnsuitableFile: It is a named pipe, a device or a socket.
    """
    found = os.stat(file)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(file))
    if not stat.S_ISREG(found.st_mode):
        raise UnsuitableFile(errno.EINVAL, "it is a pipe or a device, not a regular file", os.fspath(file))
    return found


def open_regular(file: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; see `require_regular`."""
    require_regular(file)
    return open(file, "rb")


def read_regular(file: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """Read a regular file into memory, unless it has more than `most` bytes; see `require_regular`."""
    size = require_regular(file).st_size
    if size > most:
        raise UnsuitableFile(errno.EFBIG, f"it has {size} bytes, more than {most}", os.fspath(file))
    with open(file, "rb") as stream:
        return stream.read()


def read_text(file: str | os.PathLike[str], errors: str = "strict") -> str:
    """Read a regular file of UTF-8 text; a UnicodeDecodeError is a ValueError."""
    return read_regular(file).decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n")


def read_json(file: str | os.PathLike[str]) -> Any:
    """Read a regular file of JSON; raises ValueError for anything else."""
    return parse_json(read_regular(file))


def parse_json(content: str | bytes) -> Any:
    """Parse JSON; raises ValueError for anything else, also for what is nested too deeply to read.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
        ...
    ValueError: it is nested too deeply
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file that a folder lists; the name must be a plain one, which cannot lead elsewhere.

    >>> inside(Path("step-1"), "model.safetensors").as_posix()
    'step-1/model.safetensors'
    >>> inside(Path("step-1"), "../other")
    Traceback (most recent call last):
        ...
    ValueError: the name '../other' leads out of the folder
    """
    if name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
        raise ValueError(f"the name {name!r} leads out of the folder")
    return folder / name
