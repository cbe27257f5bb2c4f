"""Files that are there whole or not at all."""

import importlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, BinaryIO


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk. Not atomic by itself: for files in a folder not yet in place."""
    with open(file, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file so that its name never stands for half of it."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        write_bytes(temporary, content)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def write_json(file: Path, value: Any) -> None:
    """Write JSON atomically."""
    write_atomically(file, to_json(value))


def to_json(value: Any) -> bytes:
    """Give JSON as it is stored: indented where people read it, without NaN."""
    return (json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk (where the system knows how)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def lock_folder(folder: Path) -> BinaryIO | None:
    """Keep a folder for this process until the file returned is closed or the process ends, however it ends.

    Raises:
        BlockingIOError: Another process has it.
    """
    if os.name != "posix":
        return None
    fcntl = importlib.import_module("fcntl")
    file = open(folder / ".lock", "wb")  # noqa: SIM115 - open as long as the lock is held
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    except OSError:  # a file system without locks
        file.close()
        return None
    return file


def remove_folder(folder: Path) -> None:
    """Remove a folder so that its name never stands for half of it."""
    doomed = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    os.replace(folder, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a process that was killed while writing has left in a folder."""
    for pattern in (".*.tmp", ".*.old"):
        for path in folder.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
