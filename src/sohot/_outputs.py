"""Results that go where the user says: a file, a link to one, a pipe, a device, standard output."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ._files import disk_error, replacing

STDOUT = Path("-")
"""As the name of an output: standard output."""


def write_output(file: Path, content: bytes) -> None:
    """Write a result to where the user wants it, see `writing`."""
    with writing(file) as stream:
        stream.write(content)


@contextmanager
def writing(file: Path) -> Iterator[BinaryIO]:
    """Yield a stream to where the user wants a result.

    A regular file is replaced as a whole, also if a link that the user names points at it. Anything else, such as a
    pipe or a device, is written to; `-` is standard output.
    """
    number = _standard_stream(file)
    if not is_stream(file):
        with replacing(Path(os.path.realpath(file)) if file.is_symlink() else file) as stream:
            yield stream
        return
    try:
        with open(file if number is None else number, "wb", closefd=number is None) as stream:
            yield stream
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise disk_error(error, Path("standard output") if file == STDOUT else file) from error


def is_stream(file: Path) -> bool:
    """Tell whether an output is a pipe, a device or an open descriptor, not a regular file, existing or new.

    >>> is_stream(STDOUT), is_stream(Path("labels.csv"))
    (True, False)
    """
    if _standard_stream(file) is not None or os.path.realpath(file.parent).startswith(("/proc/", "/dev/fd")):
        return True
    try:
        return not stat.S_ISREG(os.stat(file).st_mode)
    except OSError:
        return False


def _standard_stream(file: Path) -> int | None:
    """Return the number of the standard stream that a file is; None if it is another file."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(OSError, ValueError, AttributeError):
            if (number == 1 and file == STDOUT) or os.path.samestat(os.stat(file), os.fstat(number)):
                stream.flush()  # what was printed before comes before
                return number
    return None
